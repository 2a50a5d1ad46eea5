#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""start-up.py [LAW ...]   how long `lowtide run -- true` takes with each law, the median of twenty; root

The laws take turns, so that the machine's moods meet all of them. LOWTIDE names another binary than target/release.
"""

import os
import statistics
import subprocess
import sys
import time

RUNS = 20
LOWTIDE = os.environ.get("LOWTIDE", "target/release/lowtide")


def run(law):
    begun = time.monotonic()
    subprocess.run([LOWTIDE, "run", "--quiet", "--history", "none", "--cc", law, "--", "true"], check=True)
    return 1e3 * (time.monotonic() - begun)


def main():
    laws = sys.argv[1:] or ["tide", "cdg", "cubic"]
    times = {law: [] for law in laws}
    for _ in range(RUNS):
        for law in laws:
            times[law].append(run(law))
    for law, taken in times.items():
        print(f"{law}: {statistics.median(taken):.0f} ms, {min(taken):.0f} to {max(taken):.0f}")


if __name__ == "__main__":
    main()
