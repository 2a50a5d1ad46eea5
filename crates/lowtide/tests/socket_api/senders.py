# SPDX-License-Identifier: MIT OR Apache-2.0
"""senders.py HOST PORT SECONDS GOAL... - a greedy sender for each GOAL: its size in bytes, due at the end, or 0 for none. In the end says what
each has had acknowledged, when its goal was reached, and the greatest weight."""

import select
import socket
import struct
import sys
import time

SOL_LOWTIDE, GOAL, STATUS = 0x4C54, 1, 2


class Sender:
    def __init__(self, address, seconds, size):
        self.sock = socket.create_connection(address)
        self.size, self.done, self.weight = size, 0.0, 0.0
        if size:
            self.sock.setsockopt(SOL_LOWTIDE, GOAL, struct.pack("=QQ", size, int(seconds * 1e9)))
        self.sock.setblocking(False)
        # what is unsent at the end stays so
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))

    def fileno(self):
        return self.sock.fileno()

    def look(self, elapsed):
        status = struct.unpack("=IIdQQQQqq", self.sock.getsockopt(SOL_LOWTIDE, STATUS, 64))
        self.weight = max(self.weight, status[2])
        if self.size and status[4] >= self.size and not self.done:
            self.done = elapsed

    def acknowledged(self):
        return struct.unpack_from("=Q", self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]


host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
senders = [Sender((host, port), seconds, int(size)) for size in sys.argv[4:]]
block, start, looked = bytes(1 << 16), time.monotonic(), 0.0
while (elapsed := time.monotonic() - start) < seconds:
    for sender in select.select([], [s for s in senders if not s.done], [], 0.1)[1]:
        sender.sock.send(block)
    if elapsed - looked >= 0.1:
        looked = elapsed
        for sender in senders:
            sender.look(elapsed)
for sender in senders:
    print(f"{sender.acknowledged()} {sender.done:.2f} {sender.weight:.4f}")
