#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""run-tests.py [ARGUMENTS]   builds the tests of the workspace, runs them, and says how long each test program took

`cargo test` runs one test program after the other. Most tests of the real kernel wait for something, so test programs
run side by side here. ARGUMENTS go to each of them. What measures a rate or a delay, or looks at all transfers of the
machine, runs alone. A new test program is in no list, and runs with others: list it where that is wrong.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time

# They compute: as many at a time as there are processors.
COMPUTING = {
    "lowtide-cc", "lowtide-deadline", "lowtide-draw", "lowtide-lab", "lowtide-net", "lowtide-port", "lowtide-sim",
    "lowtide-socket",
}
# They wait: so many at a time.
WAITING_AT_ONCE = 4
# They measure, or see what others do. The name of a package stands for all of its test programs.
ALONE = {
    "lowtide-emu", "lowtide downloads", "lowtide operate", "lowtide prices", "lowtide socket_api", "lowtide trace",
}
# What takes longest begins first.
LONGEST = [
    "lowtide-port conformance", "lowtide-lab running", "lowtide-lab experiments",
    "lowtide-kernel kernel", "lowtide lifecycle", "lowtide reach", "lowtide testbed", "lowtide line", "lowtide streams",
]

CARGO = os.environ.get("CARGO", "cargo")
RESULT = re.compile(r"^test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", re.M)


class Program:
    """A test program, and what came of it."""

    def __init__(self, artifact):
        self.directory = os.path.dirname(artifact["manifest_path"])
        self.package = os.path.basename(self.directory)
        self.name = f"{self.package} {artifact['target']['name']}"
        self.path = artifact["executable"]
        self.seconds, self.counts, self.status, self.failures = 0.0, [0, 0, 0], None, ""

    def is_in(self, names):
        return self.name in names or self.package in names

    def run(self, arguments, lock):
        started = time.monotonic()
        environment = {**os.environ, "CARGO_MANIFEST_DIR": self.directory}
        ended = subprocess.run(
            [self.path, *arguments], cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )
        self.seconds = time.monotonic() - started
        text = ended.stdout.decode(errors="replace")
        for found in RESULT.findall(text):
            self.counts = [a + int(b) for a, b in zip(self.counts, found)]
        self.status = ended.returncode
        self.failures = text[text.find("\nfailures:\n") + 1:].strip()
        with lock:
            print(f"\n     Running {self.name} ({self.path})\n{text.strip()}", flush=True)
            if self.status != 0:
                print(f"{self.name} failed (status {self.status})", flush=True)


def built():
    """All test programs, after they have been built."""
    command = [CARGO, "test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"]
    build = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if build.returncode != 0:
        sys.exit(build.returncode)
    messages = (json.loads(line) for line in build.stdout.splitlines() if line.startswith(b"{"))
    artifacts = (it for it in messages if it["reason"] == "compiler-artifact" and it["profile"]["test"])
    return [Program(it) for it in artifacts if it["executable"]]


def run_all(programs, at_once, arguments):
    """So many at a time."""
    order = {name: number for number, name in enumerate(LONGEST)}
    waiting = sorted(programs, key=lambda program: (order.get(program.name, len(order)), program.name))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                program = waiting.pop(0)
            program.run(arguments, lock)

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    arguments = sys.argv[1:]
    started = time.monotonic()
    programs = built()
    after_build = time.monotonic()
    alone = [it for it in programs if it.is_in(ALONE)]
    computing = [it for it in programs if it.is_in(COMPUTING)]
    waiting = [it for it in programs if it not in alone and it not in computing]
    run_all(computing, os.cpu_count() or 1, arguments)
    run_all(waiting, WAITING_AT_ONCE, arguments)
    run_all(alone, 1, arguments)
    documentation = subprocess.run([CARGO, "test", "--workspace", "--locked", "--doc"], check=False)

    print("\nseconds  test program: tests passed, failed, ignored")
    for program in sorted(programs, key=lambda program: -program.seconds):
        print(f"{program.seconds:7.1f}  {program.name}: {', '.join(map(str, program.counts))}")
    passed, failed, ignored = (sum(counts) for counts in zip(*(it.counts for it in programs)))
    wrong = [it.name for it in programs if it.status != 0] + ["the documentation"] * (documentation.returncode != 0)
    print(
        f"built in {after_build - started:.0f} s, run in {time.monotonic() - after_build:.0f} s: "
        f"{passed} passed, {failed} failed, {ignored} ignored"
    )
    # once more where it is seen: much has been printed since
    for program in programs:
        if program.status != 0:
            print(f"\n{program.name}, status {program.status}:\n{program.failures}")
    sys.exit(f"failed: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
