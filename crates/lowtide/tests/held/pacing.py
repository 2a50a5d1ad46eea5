# SPDX-License-Identifier: MIT OR Apache-2.0
"""Limits of the program's own on its pacing, in 32 bits and in 64, and what is in force once the law has had its say:
pacing.py HOST PORT LEAST, where LEAST is the least that the law itself may set; 0: it sets none."""

import socket
import struct
import sys
import time

SO_MAX_PACING_RATE = 47


def pacing_limit(sock):
    """tcpi_max_pacing_rate"""
    return struct.unpack_from("=Q", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 112)[0]


def acknowledged(sock):
    """tcpi_bytes_acked"""
    return struct.unpack_from("=Q", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]


def send(sock, size):
    goal = acknowledged(sock) + size
    sock.sendall(bytes(size))
    limit = time.monotonic() + 20
    while acknowledged(sock) < goal:
        assert time.monotonic() < limit, "nothing gets through"
        time.sleep(0.01)


for form, limit in [
    ("=I", 100_000),
    ("=Q", 100_000),
    # of these 32 bits are 1000, 705,032,704 and 0
    ("=Q", (1 << 32) + 1000),
    ("=Q", 5_000_000_000),
    ("=Q", 1 << 40),
]:
    sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    for _ in range(2):
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack(form, limit))
        send(sock, 30_000)
        found = pacing_limit(sock)
        print(f"{form} {limit}: {found}")
        assert min(limit, int(sys.argv[3]) or limit) <= found <= limit, f"{limit} as {form}: {found}"
    sock.close()
