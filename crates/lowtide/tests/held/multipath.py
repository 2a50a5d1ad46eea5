# SPDX-License-Identifier: MIT OR Apache-2.0
"""Both ends of an MPTCP connection within the machine, of two subflows, which want Reno and a code point of their own:
multipath.py before|after FILE. It stays until there is a file of that name."""

import errno
import os
import socket
import struct
import sys
import time

MPTCP = 262
SOL_MPTCP, MPTCP_INFO = 284, 1
SOL_LOWTIDE, GOAL, LATENCY = 0x4C54, 1, 3
CS1 = 8 << 2


def mptcp():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)


def choose(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CS1)
    # after which a subflow that joins is given all that is set on the whole
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def exchange():
    for sock in ends:
        sock.sendall(bytes(2000))
    for sock in ends:
        assert sock.recv(1 << 16)


def error(call, *arguments):
    try:
        call(*arguments)
    except OSError as refusal:
        return errno.errorcode[refusal.errno]
    return "taken"


before = sys.argv[1] == "before"
listener, client = mptcp(), mptcp()
listener.bind(("127.0.0.1", 0))
listener.listen()
if before:
    choose(client)
client.connect(listener.getsockname())
ends = [client, listener.accept()[0]]
if before:
    choose(ends[1])
limit = time.monotonic() + 20
for sock in ends:
    while not sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)[0]:
        assert time.monotonic() < limit, "no subflow has joined"
        exchange()
        time.sleep(0.02)
if not before:
    for sock in ends:
        choose(sock)
for option, value in [(GOAL, struct.pack("=QQ", 1000, 10**9)), (LATENCY, struct.pack("=I", 1000))]:
    answer = error(client.setsockopt, SOL_LOWTIDE, option, value)
    assert answer in ("EOPNOTSUPP", "ENOTSUP"), answer
for _ in range(20):
    exchange()
    time.sleep(0.02)
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
