#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sends BYTES to HOST:PORT in the background, done within SECONDS, and says once a second how it is doing.

    lowtide run -- python3 examples/deadline.py HOST PORT BYTES SECONDS

Outside `lowtide run` it sends all the same, as an ordinary program. The numbers are those of lowtide.h.
"""

import errno
import socket
import struct
import sys
import time

SOL_LOWTIDE = 0x4C54
GOAL, STATUS = 1, 2
HAS_GOAL = 1


def set_goal(sock, size, seconds):
    """False where there is no Lowtide."""
    try:
        sock.setsockopt(SOL_LOWTIDE, GOAL, struct.pack("=QQ", size, int(seconds * 1e9)))
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        return False
    return True


def tell(sock):
    answer = struct.unpack("=IIdQQQQqq", sock.getsockopt(SOL_LOWTIDE, STATUS, 64))
    flags, outlook, weight, size, acknowledged, target_rate, achieved_rate, left_ns, expected_ns = answer
    if flags & HAS_GOAL:
        expected = expected_ns / 1e9 if expected_ns >= 0 else -1.0
        print(
            f"w {weight:.4f} needs {target_rate} has {achieved_rate} bytes/s acknowledged {acknowledged} "
            f"left {max(left_ns, 0) / 1e9:.1f} s expected in {expected:.1f} s",
            flush=True,
        )


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: deadline.py HOST PORT BYTES SECONDS")
    host, port, size, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    sock = socket.create_connection((host, port))
    start = told = time.monotonic()
    governed = set_goal(sock, size, seconds)
    print(f"goal {size} bytes within {sys.argv[4]} s" if governed else "no Lowtide here: an ordinary transfer", flush=True)

    block, left = bytes(1 << 16), size
    sock.settimeout(0.2)
    while left:
        try:
            left -= sock.send(block[:left])
        except socket.timeout:
            pass  # a status may be due
        if governed and time.monotonic() - told >= 1:
            told = time.monotonic()
            tell(sock)
    sock.settimeout(None)
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(1 << 16):
        pass  # until the other side has it all and closes
    print(f"done after {time.monotonic() - start:.2f} s")


main()
