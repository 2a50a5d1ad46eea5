#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `--direction both` costs a program that sends, where nothing limits the network: iperf3 over a veth pair under
`lowtide run` with one direction and then the other, in pairs whose order alternates. A line for each run, and medians.

    sudo scripts/compare-directions.py target/release/lowtide

Processor time is the machine's, so others must not use it. `--server`: the receiving iperf3 is under `lowtide run`,
too. `--bpf`: how much of the processor time each BPF program takes, as the kernel counts it, which adds to it. Needs
root and iperf3, and bpftool for `--bpf`.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

WAYS = ["up", "both"]
NAMES = [f"cdA{os.getpid()}", f"cdB{os.getpid()}"]
STATS = "/proc/sys/kernel/bpf_stats_enabled"


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lowtide")
    p.add_argument("--pairs", type=int, default=6)
    p.add_argument("--seconds", type=int, default=5, help="for each run")
    p.add_argument("--flows", type=int, default=1)
    p.add_argument("--weight", type=float, default=1)
    p.add_argument("--server", action="store_true")
    p.add_argument("--bpf", action="store_true")
    return p.parse_args()


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def start(a, side, way, words):
    run = [a.lowtide, "run", "--quiet", "--history", "none", "--w-min", str(a.weight), "--direction", way, "--"]
    command = ["ip", "netns", "exec", NAMES[side], *(run if way else []), "iperf3", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def busy():
    """Seconds of all processors, without idle time and time waited for devices."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def programs():
    """Seconds that each BPF program of the machine has taken, by its number, and its name."""
    listed = json.loads(subprocess.run(["bpftool", "prog", "show", "-j"], stdout=subprocess.PIPE, check=True).stdout)
    return {p["id"]: (p.get("name", "?"), p.get("run_time_ns", 0) * 1e-9) for p in listed}


def taken(seconds):
    """Percent of the processor time of so many seconds, by program."""
    before, spent = programs(), busy()
    time.sleep(seconds)
    after, spent = programs(), busy() - spent
    parts = {}
    for number, (name, total) in after.items():
        part = 100 * (total - before.get(number, ("", 0))[1]) / spent
        if part >= 0.05:
            parts[name] = round(parts.get(name, 0) + part, 1)
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def measure(a, way):
    server = start(a, 1, way if a.server else None, ["-s", "-1"])
    try:
        time.sleep(1)
        spent = busy()
        client = start(a, 0, way, ["-c", "10.91.0.2", "-C", "cubic", "-t", str(a.seconds), "-P", str(a.flows), "-J"])
        told = {}
        if a.bpf:
            time.sleep(1)
            told["bpf"] = taken(a.seconds / 2)
        end = json.loads(client.communicate(timeout=60 + a.seconds)[0])["end"]
        spent = busy() - spent
        rate, cost = end["sum_received"]["bits_per_second"] / 1e9, spent * 1e9 / end["sum_received"]["bytes"]
        server.wait(timeout=60)
    finally:
        server.terminate()
        server.wait()
    told = {"direction": way, "gbit_s": round(rate, 2), "cpu_s_per_gb": round(cost, 4),
            "retransmits": end["sum_sent"].get("retransmits"), "load": round(os.getloadavg()[0], 1)} | told
    print(json.dumps(told), flush=True)
    return rate, cost


def compare(a):
    pairs = [{way: measure(a, way) for way in (WAYS if number % 2 == 0 else WAYS[::-1])} for number in range(a.pairs)]
    for column, name in enumerate(["throughput", "processor time per byte"]):
        ratio = statistics.median(pair["both"][column] / pair["up"][column] for pair in pairs)
        print(f"{name}, both over up, median of {len(pairs)} pairs: {ratio:.3f}")


def main():
    a = parse()
    with open(STATS, encoding="ascii") as file:
        counted = file.read()
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        ip(f"-n {NAMES[0]} link add veth0 type veth peer name veth0 netns {NAMES[1]}")
        for side, name in enumerate(NAMES):
            ip(f"-n {name} address add 10.91.0.{side + 1}/30 dev veth0")
            ip(f"-n {name} link set veth0 up")
        if a.bpf:
            with open(STATS, "w", encoding="ascii") as file:
                file.write("1")
        compare(a)
    finally:
        with open(STATS, "w", encoding="ascii") as file:
            file.write(counted)
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)


main()
