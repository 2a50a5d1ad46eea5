#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a governed download does on an emulated link: alone, beside a CUBIC download, and after it. One line of JSON.

    sudo scripts/measure-downloads.py target/release/lowtide --server bbr --buffer 4bdp
    sudo scripts/measure-downloads.py target/release/lowtide --program rclone

The download is iperf3's, or that of a program that fetches four files at once (`curl --parallel`, `rclone copy
--transfers 4`). Then `whole` says whether all bytes have arrived as they were sent.

`used`: percent of an idle link, over the second half of the time alone. `kept`: what the foreground has of the link
from its first second on. `takes`: what the download has of it then. `yields_s`, `back_s`: seconds until the download
has less than a tenth, and after the foreground's end 0.8 of the link. `pause_s`: the longest time in which one of the
connections received nothing. `load`: of the machine. Needs root, iperf3, and the program.
"""

import argparse
import filecmp
import json
import os
import re
import subprocess
import tempfile
import threading
import time

NAMES = [f"mdA{os.getpid()}", f"mdB{os.getpid()}"]
FILES = 4
FILES_PORT = 8000


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lowtide")
    p.add_argument("--server", default="cubic", help="the sender's law")
    p.add_argument("--rate", type=float, default=20, help="Mbit/s")
    p.add_argument("--rtt", type=float, default=40, help="ms")
    p.add_argument("--buffer", default="1bdp")
    p.add_argument("--connections", type=int, default=1, help="of iperf3")
    p.add_argument("--program", choices=["curl", "rclone"], help="in place of iperf3; it ends when all has arrived")
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


def all_connected(program, port, connections):
    """Waits until so many connections of the program are there."""
    while program.poll() is None and len(connected(port)) < connections:
        time.sleep(0.05)
    return time.time()


def connected(port):
    """Connections to this port: bytes that each has received, by its own port."""
    words = ["ip", "netns", "exec", NAMES[0], "ss", "-HtinO", "state", "established", f"dport = :{port}"]
    lines = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    received = [re.search(r"bytes_received:(\d+)", line) for line in lines]
    return {line.split()[2]: int(it.group(1)) if it else 0 for line, it in zip(lines, received)}


def intervals(process, begins):
    """(end, seconds, bytes, bytes of each connection), by the time since the start."""
    rows = json.loads(process.communicate(timeout=300)[0])["intervals"]
    return [(begins + r["sum"]["end"], r["sum"]["seconds"], r["sum"]["bytes"],
             dict(enumerate(s["bytes"] for s in r["streams"]))) for r in rows]


def watch(program, began, rows):
    """The same of a program with connections to FILES_PORT, until it ends."""
    last, before = began, connected(FILES_PORT)
    while program.poll() is None:
        time.sleep(0.1)
        now, counts = time.time(), connected(FILES_PORT)
        each = {port: count - before.get(port, 0) for port, count in counts.items()}
        rows.append((now - began, now - last, sum(each.values()), each))
        last = now
        before |= counts  # ss may leave one out


# serves a directory: address, port, directory, law
SERVER = """
import functools, http.server, socket, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[3])
server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), handler)
server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[4].encode())
server.serve_forever()
"""


def serve(a, address, directory):
    """Files that keep the program busy for the time alone and after, and their server, with the sender's law."""
    length = int(a.rate * 125_000 * (a.alone + a.after) / FILES)
    for number in range(FILES):
        with open(f"{directory}/{number}", "wb") as file:
            file.write(os.urandom(length))
    words = ["python3", "-c", SERVER, address, str(FILES_PORT), directory, a.server]
    return subprocess.Popen(["ip", "netns", "exec", NAMES[1], *words], stderr=subprocess.DEVNULL)


def fetch(a, address, directory, words):
    url = f"http://{address}:{FILES_PORT}"
    if a.program == "curl":
        return start(0, [*words, "curl", "-sSf", "--no-progress-meter", "--parallel", "--parallel-immediate",
                         f"{url}/[0-{FILES - 1}]", "-o", f"{directory}/#1"])
    return start(0, [*words, "rclone", "copy", "--config", "", "--transfers", str(FILES), "--multi-thread-streams", "0",
                     "--http-url", url, ":http:", directory])


def mean(rows, since, until):
    rows = [r for r in rows if since < r[0] <= until]
    return 8e-6 * sum(r[2] for r in rows) / max(sum(r[1] for r in rows), 1e-9)


def first(rows, since, holds):
    return next((round(r[0] - since, 1) for r in rows if r[0] > since and holds(8e-6 * r[2] / r[1])), None)


def pause(rows):
    longest, last = 0, {}
    for end, _, _, each in rows:
        for connection, received in each.items():
            if received or connection not in last:
                last[connection] = end
            longest = max(longest, end - last[connection])
    return round(longest, 1)


def measure(a, address, served, arrives):
    carries = a.rate * 1448 / 1500
    run = [a.lowtide, "run", "--progress", "never", "--direction", "down", "--"]
    beside = client(a, address, 5203, a.alone + a.beside + a.after, "cubic", upload=True) if a.upload else None
    rows, watcher = [], None
    if a.program:
        governed = fetch(a, address, arrives, run)
        began = all_connected(governed, FILES_PORT, FILES)
        watcher = threading.Thread(target=watch, args=(governed, began, rows))
        watcher.start()
    else:
        governed = client(a, address, 5201, a.alone + a.beside + a.after, a.server, run, a.connections)
        # one of them is for control; as soon as all are there data begin
        began = all_connected(governed, 5201, a.connections + 1)
    time.sleep(a.alone)
    comes = time.time() - began
    foreground = client(a, address, 5202, a.beside, "cubic") if a.beside else None
    others = intervals(foreground, comes) if foreground else []
    if watcher:
        watcher.join()
    else:
        rows = intervals(governed, 0)
    told = {"server": a.server, "rate": a.rate, "rtt": a.rtt, "buffer": a.buffer}
    told |= {"program": a.program} if a.program else {"connections": a.connections}
    told["used"] = round(100 * mean(rows, a.alone / 2, a.alone) / carries, 1)
    if others:
        told["kept"] = round(100 * mean(others, comes + 1, comes + a.beside) / carries, 1)
        told["takes"] = round(100 * mean(rows, comes + 1, comes + a.beside) / carries, 1)
        told["yields_s"] = first(rows, comes, lambda rate: rate < 0.1 * carries)
        told["back_s"] = first(rows, others[-1][0], lambda rate: rate > 0.8 * carries)
    if beside:
        told["upload"] = round(100 * mean(intervals(beside, 0), 0, a.alone) / carries, 1)
    if a.program or a.connections > 1:
        told["pause_s"] = pause(rows)
    if a.program:
        names = [str(number) for number in range(FILES)]
        told["whole"] = filecmp.cmpfiles(served, arrives, names, shallow=False)[0] == names
    return told | {"load": round(os.getloadavg()[0], 1)}


def main():
    a = parse()
    link, address = emulate(a)
    servers = []
    try:
        servers = [start(1, ["iperf3", "-s", "-p", str(port)]) for port in (5201, 5202, 5203)]
        with tempfile.TemporaryDirectory() as served, tempfile.TemporaryDirectory() as arrives:
            if a.program:
                servers.append(serve(a, address, served))
            time.sleep(1)
            print(json.dumps(measure(a, address, served, arrives)), flush=True)
    finally:
        for server in servers:
            server.kill()
        link.terminate()
        link.wait(timeout=20)


main()
