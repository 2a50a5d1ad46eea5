# SPDX-License-Identifier: MIT OR Apache-2.0
# The two ends of one connection, and how it closes: `half` only at the sender's side, where its FIN is acknowledged
# long before the end; `both` at the same time, so that the two FINs cross on the way.
#   closing.py receive HOST PORT half|both
#   closing.py send HOST PORT BYTES half|both
import socket
import sys
import time

MEET = 0.5  # seconds after all has arrived


def receive(host, port, how):
    with socket.create_server((host, port)) as server:
        print("ready", flush=True)
        stream, _ = server.accept()
    with stream:
        length = int(stream.recv(16, socket.MSG_WAITALL))
        while length > 0:
            length -= len(stream.recv(1 << 16))
        at = time.monotonic() + MEET
        stream.sendall(b"%16.6f" % at)
        if how == "both":
            time.sleep(at - time.monotonic())
            stream.shutdown(socket.SHUT_WR)
        stream.recv(1)
        time.sleep(1)


def send(host, port, length, how):
    with socket.create_connection((host, port)) as stream:
        stream.sendall(b"%16d" % length + bytes(length))
        at = float(stream.recv(16, socket.MSG_WAITALL))
        if how == "both":
            time.sleep(at - time.monotonic())
        stream.shutdown(socket.SHUT_WR)
        time.sleep(0.5)


if sys.argv[1] == "receive":
    receive(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else:
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
