#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a governed download does on an emulated link: alone, beside a CUBIC download, and after it. One line of JSON.

    sudo scripts/measure-downloads.py target/release/lowtide --server bbr --buffer 4bdp
    sudo scripts/measure-downloads.py target/release/lowtide --last
    sudo scripts/measure-downloads.py target/release/lowtide --due 50 --megabytes 40
    sudo scripts/measure-downloads.py target/release/lowtide --short 20000 --runs 20

The downloads are iperf3's; programs of every day are in the battery of programs (`make life LIFE=downloads`).

First the foreground is alone (`--first`), then the download (`--alone`), then both are there (`--beside`), then the
download alone (`--after`). With `--last` the foreground stays from the start until the end of `--beside`. `used`:
percent of an idle link, over the second half of the time alone. `solo`, `kept`: what the foreground has of the link
from its first second on, alone and beside the download. `takes`: what the download has of it then. `yields_s`,
`back_s`: seconds until the download has less than a tenth, and after the foreground's end 0.8 of the link. `pause_s`:
the longest time in which one of the connections received nothing.

With `--due` there is a download of so many `--megabytes`, due after so many seconds, beside a foreground that stays.
`took`: percent of the time given until the last byte. `kept`: what the foreground has of the link until then.

With `--short` curl downloads so many bytes on an idle link, without Lowtide and with it in turn, and `plain_ms` and
`governed_ms` are the medians of its own times.

`load`: of the machine. Needs root, iperf3 and curl.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import threading
import time

NAMES = [f"mdA{os.getpid()}", f"mdB{os.getpid()}"]
FILE_PORT = 8000


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lowtide")
    p.add_argument("--server", default="cubic", help="the sender's law")
    p.add_argument("--rate", type=float, default=20, help="Mbit/s")
    p.add_argument("--rtt", type=float, default=40, help="ms")
    p.add_argument("--buffer", default="1bdp")
    p.add_argument("--connections", type=int, default=1, help="of iperf3")
    p.add_argument("--first", type=float, default=0, help="seconds of the foreground alone; 0: it is not measured")
    p.add_argument("--last", action="store_true", help="the download begins last, and is alone only after")
    p.add_argument("--alone", type=float, default=12, help="seconds")
    p.add_argument("--beside", type=float, default=12, help="seconds, 0: no foreground")
    p.add_argument("--after", type=float, default=6, help="seconds")
    p.add_argument("--upload", action="store_true", help="an ordinary upload all the time")
    p.add_argument("--due", type=float, help="seconds until a download of iperf3 is due")
    p.add_argument("--megabytes", type=float, default=40, help="that are due")
    p.add_argument("--short", type=int, help="bytes of a download that has an idle link")
    p.add_argument("--runs", type=int, default=20, help="of short downloads, with Lowtide and without")
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


# answers each request with so many bytes: address, port, bytes, law
SERVER = """
import http.server, os, socket, sys
body = os.urandom(int(sys.argv[3]))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler)
server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[4].encode())
server.serve_forever()
"""


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


def carries(a):
    """What the link carries of data, Mbit/s."""
    return a.rate * 1448 / 1500


def percent(a, rows, since, until):
    return round(100 * mean(rows, since, until) / carries(a), 1)


def run(a, *options):
    return [a.lowtide, "run", "--progress", "never", "--direction", "down", *options, "--"]


def alone_and_beside(a, address):
    solo = None
    if a.first:
        solo = percent(a, intervals(client(a, address, 5202, a.first, "cubic"), 0), 1, a.first)
        time.sleep(1)  # the queue empties
    every = a.beside + a.after + (0 if a.last else a.alone)
    upload = client(a, address, 5203, every, "cubic", upload=True) if a.upload else None
    foreground, came = None, None
    if a.last:
        foreground, came = client(a, address, 5202, a.alone + a.beside, "cubic"), time.time()
        time.sleep(a.alone)
    governed = client(a, address, 5201, every, a.server, run(a), a.connections)
    # one of them is for control; as soon as all are there data begin
    began = all_connected(governed, 5201, a.connections + 1)
    if a.last:
        comes, kept_from, kept_until = came - began, 1, a.alone + a.beside + came - began
    else:
        time.sleep(a.alone)
        comes = time.time() - began
        foreground = client(a, address, 5202, a.beside, "cubic") if a.beside else None
        kept_from, kept_until = comes + 1, comes + a.beside
    others = intervals(foreground, comes) if foreground else []
    rows = intervals(governed, 0)
    told = {"connections": a.connections}
    if not a.last:
        told["used"] = percent(a, rows, a.alone / 2, a.alone)
    if others:
        told |= {"solo": solo} if solo is not None else {}
        told["kept"] = percent(a, others, kept_from, kept_until)
        told["takes"] = percent(a, rows, kept_from, kept_until)
        told["yields_s"] = first(rows, max(comes, 0), lambda rate: rate < 0.1 * carries(a))
        told["back_s"] = first(rows, others[-1][0], lambda rate: rate > 0.8 * carries(a))
    if upload:
        told["upload"] = percent(a, intervals(upload, 0), 0, a.alone)
    if a.connections > 1:
        told["pause_s"] = pause(rows)
    return told


def due(a, address):
    """A download that has to be there in time, beside a foreground that was there before."""
    size = round(a.megabytes * 1e6)
    foreground, came = client(a, address, 5202, 1.3 * a.due + 4, "cubic"), time.time()
    time.sleep(3)
    words = run(a, "--deadline", f"{a.due}s", "--size", str(size))
    governed = start(0, [*words, "iperf3", "-c", address, "-p", "5201", "-C", a.server, "-n", str(size), "-R"]
                     + ["-l", "16K", "-i", "0.1", "-J"])
    began = time.time()
    rows = intervals(governed, all_connected(governed, 5201, 2) - began)
    others = intervals(foreground, came - began)
    done = next((row[0] for row in rows if sum(r[2] for r in rows if r[0] <= row[0]) >= 0.999 * size), None)
    told = {"megabytes": a.megabytes, "due_s": a.due, "took": done and round(100 * done / a.due, 1)}
    return told | {"kept": percent(a, others, 1, done or a.due), "takes": percent(a, rows, 1, done or a.due)}


def short(a, address):
    server = subprocess.Popen(["ip", "netns", "exec", NAMES[1], "python3", "-c", SERVER, address, str(FILE_PORT)]
                              + [str(a.short), a.server], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        curl = ["curl", "-sSf", "-o", "/dev/null", "-w", "%{time_total}", f"http://{address}:{FILE_PORT}/"]
        took = {"plain_ms": [], "governed_ms": []}
        for _ in range(a.runs):
            for name, words in (("plain_ms", []), ("governed_ms", run(a))):
                took[name].append(1000 * float(start(0, [*words, *curl]).communicate(timeout=60)[0]))
    finally:
        server.kill()
    medians = {name: round(statistics.median(times), 1) for name, times in took.items()}
    return {"bytes": a.short, "runs": a.runs} | medians | {
        "ratio": round(medians["governed_ms"] / medians["plain_ms"], 3)}


def measure(a, address):
    how = due if a.due else short if a.short else alone_and_beside
    told = {"server": a.server, "rate": a.rate, "rtt": a.rtt, "buffer": a.buffer}
    return told | how(a, address) | {"load": round(os.getloadavg()[0], 1)}


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
