#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""start-up.py [LAW ...]   how long `lowtide run -- true` takes with each law, and `lowtide status` of twenty transfers

Medians of twenty; root. The laws take turns, so that the machine's moods meet all of them. LOWTIDE names another binary
than target/release/lowtide.
"""

import os
import statistics
import subprocess
import sys
import time

RUNS = 20
TRANSFERS = 20
LOWTIDE = os.environ.get("LOWTIDE", "target/release/lowtide")


def run(law, *program):
    return [LOWTIDE, "run", "--quiet", "--history", "none", "--cc", law, "--", *program]


def timed(command):
    """Milliseconds, and what it printed."""
    begun = time.monotonic()
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return 1e3 * (time.monotonic() - begun), printed


def show(what, taken):
    print(f"{what}: {statistics.median(taken):.0f} ms, {min(taken):.0f} to {max(taken):.0f}")


def main():
    laws = sys.argv[1:] or ["tide", "cdg", "cubic"]
    times = {law: [] for law in laws}
    for _ in range(RUNS):
        for law in laws:
            times[law].append(timed(run(law, "true"))[0])
    for law, taken in times.items():
        show(law, taken)

    transfers = [subprocess.Popen(run("reno", "sleep", "600")) for _ in range(TRANSFERS)]
    try:
        status = [LOWTIDE, "status", "--prometheus"]
        while timed(status)[1].count("lowtide_connections{") < TRANSFERS:
            time.sleep(0.2)
        show(f"status of {TRANSFERS} transfers", [timed([LOWTIDE, "status"])[0] for _ in range(RUNS)])
    finally:
        for transfer in transfers:
            transfer.terminate()
        for transfer in transfers:
            transfer.wait()


if __name__ == "__main__":
    main()
