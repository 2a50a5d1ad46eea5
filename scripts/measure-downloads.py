#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a governed download does on an emulated link: alone, beside a CUBIC download, and after it. One line of JSON.

    sudo scripts/measure-downloads.py target/release/lowtide --server bbr --buffer 4bdp

`used`: percent of an idle link, over the second half of the time alone. `kept`: what the foreground has of the link
from its first second on. `yields_s`, `back_s`: seconds until the download has less than a tenth, and after the
foreground's end 0.8 of the link. `pause_s`: the longest time in which one of the connections received nothing.
`load`: of the machine. Needs root and iperf3.
"""

import argparse
import json
import os
import re
import subprocess
import threading
import time

NAMES = [f"mdA{os.getpid()}", f"mdB{os.getpid()}"]


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lowtide")
    p.add_argument("--server", default="cubic", help="the sender's law")
    p.add_argument("--rate", type=float, default=20, help="Mbit/s")
    p.add_argument("--rtt", type=float, default=40, help="ms")
    p.add_argument("--buffer", default="1bdp")
    p.add_argument("--connections", type=int, default=1)
    p.add_argument("--alone", type=float, default=12, help="seconds")
    p.add_argument("--beside", type=float, default=12, help="seconds, 0: no foreground")
    p.add_argument("--after", type=float, default=6, help="seconds")
    p.add_argument("--upload", action="store_true", help="an ordinary upload all the time")
    return p.parse_args()


def emulate(a):
    """The link, and the far side's address."""
    link = subprocess.Popen(
        [a.lowtide, "emulate", "--between", ",".join(NAMES), "--rate", f"{a.rate}mbit", "--rtt", f"{a.rtt}ms"]
        + ["--buffer", a.buffer], stdout=subprocess.PIPE, text=True)
    for line in link.stdout:
        if line.startswith(NAMES[1] + ":"):
            threading.Thread(target=link.stdout.read, daemon=True).start()
            return link, re.search(r"\d+\.\d+\.\d+\.\d+", line).group()
    raise SystemExit("lowtide emulate did not start")


def start(side, words):
    return subprocess.Popen(["ip", "netns", "exec", NAMES[side], *words], stdout=subprocess.PIPE, text=True)


def client(a, address, port, seconds, law, words=(), connections=1, upload=False):
    # blocks that fit into a send buffer: at the end a server that is inside a longer one may wait for ever for iperf3
    way = ["-l", "16K"] if upload else ["-R", "-l", "16K"]
    return start(0, [*words, "iperf3", "-c", address, "-p", str(port), "-C", law, "-t", str(round(seconds))]
                 + ["-i", "0.1", "-P", str(connections), "-J", *way])


def all_connected(a, governed):
    """Waits until all connections of the governed client are there, one of them for control, as then data begin."""
    words = ["ip", "netns", "exec", NAMES[0], "ss", "-Htn", "state", "established", "dport = :5201"]
    while governed.poll() is None:
        if len(subprocess.run(words, capture_output=True, text=True).stdout.splitlines()) > a.connections:
            break
        time.sleep(0.05)
    return time.time()


def intervals(process, begins):
    """(end, seconds, bytes, bytes of each connection), by the time since the start."""
    rows = json.loads(process.communicate(timeout=300)[0])["intervals"]
    return [(begins + r["sum"]["end"], r["sum"]["seconds"], r["sum"]["bytes"], [s["bytes"] for s in r["streams"]])
            for r in rows]


def mean(rows, since, until):
    rows = [r for r in rows if since < r[0] <= until]
    return 8e-6 * sum(r[2] for r in rows) / max(sum(r[1] for r in rows), 1e-9)


def first(rows, since, holds):
    return next((round(r[0] - since, 1) for r in rows if r[0] > since and holds(8e-6 * r[2] / r[1])), None)


def pause(rows):
    longest, last = 0, [rows[0][0]] * len(rows[0][3])
    for row in rows:
        last = [row[0] if received else seen for seen, received in zip(last, row[3])]
        longest = max(longest, row[0] - min(last))
    return round(longest, 1)


def measure(a, address):
    carries = a.rate * 1448 / 1500
    run = [a.lowtide, "run", "--progress", "never", "--direction", "down", "--"]
    beside = client(a, address, 5203, a.alone + a.beside + a.after, "cubic", upload=True) if a.upload else None
    governed = client(a, address, 5201, a.alone + a.beside + a.after, a.server, run, a.connections)
    began = all_connected(a, governed)
    time.sleep(a.alone)
    comes = time.time() - began
    foreground = client(a, address, 5202, a.beside, "cubic") if a.beside else None
    others = intervals(foreground, comes) if foreground else []
    rows = intervals(governed, 0)
    told = {"server": a.server, "rate": a.rate, "rtt": a.rtt, "buffer": a.buffer, "connections": a.connections,
            "used": round(100 * mean(rows, a.alone / 2, a.alone) / carries, 1)}
    if others:
        told["kept"] = round(100 * mean(others, comes + 1, comes + a.beside) / carries, 1)
        told["yields_s"] = first(rows, comes, lambda rate: rate < 0.1 * carries)
        told["back_s"] = first(rows, others[-1][0], lambda rate: rate > 0.8 * carries)
    if beside:
        told["upload"] = round(100 * mean(intervals(beside, 0), 0, a.alone) / carries, 1)
    if a.connections > 1:
        told["pause_s"] = pause(rows)
    return told | {"load": round(os.getloadavg()[0], 1)}


def main():
    a = parse()
    link, address = emulate(a)
    servers = []
    try:
        servers = [start(1, ["iperf3", "-s", "-p", str(port)]) for port in (5201, 5202, 5203)]
        time.sleep(1)
        print(json.dumps(measure(a, address)), flush=True)
    finally:
        for server in servers:
            server.kill()
        link.terminate()
        link.wait(timeout=20)


main()
