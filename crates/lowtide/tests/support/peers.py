# SPDX-License-Identifier: MIT OR Apache-2.0
# The two ends of a transfer whose data are compared: each connection carries its number and its length, and then bytes
# that follow from the number.
#   peers.py receive HOST PORT            a line for each connection that came through whole: number, length, SHA-256
#   peers.py expect CONNECTIONS LENGTH    the same lines for what is sent
#   peers.py send HOST PORT CONNECTIONS LENGTH [PAUSE_S]   one after the other by so much, all at once if it is 0;
#                                                          opened again after a failure
import hashlib
import random
import socket
import struct
import sys
import threading
import time

HEAD = struct.Struct("!QQ")


def payload(number, length):
    return random.Random(number).randbytes(length)


def read(stream, length):
    data = bytearray()
    while len(data) < length:
        part = stream.recv(min(1 << 16, length - len(data)))
        if not part:
            raise ConnectionError("it ended early")
        data += part
    return bytes(data)


def tell(number, length, digest):
    sys.stdout.write(f"{number} {length} {digest}\n")  # whole, whatever other threads do
    sys.stdout.flush()


def receive(stream):
    try:
        number, length = HEAD.unpack(read(stream, HEAD.size))
        digest = hashlib.sha256(read(stream, length)).hexdigest()
        tell(number, length, digest)
        stream.sendall(b"!")
    except OSError:
        pass
    finally:
        stream.close()


def send(address, number, length):
    data = HEAD.pack(number, length) + payload(number, length)
    for attempt in range(40):
        try:
            with socket.create_connection(address, timeout=300) as stream:
                stream.sendall(data)
                if read(stream, 1) == b"!":
                    return
        except OSError as error:
            print(f"connection {number}: {error}", file=sys.stderr, flush=True)
            time.sleep(1)
    sys.exit(f"connection {number} never came through")


def main():
    role, host, port, *rest = sys.argv[1:]
    if role == "expect":
        for number in range(int(host)):
            tell(number, int(port), hashlib.sha256(payload(number, int(port))).hexdigest())
        return
    address = (host, int(port))
    if role == "receive":
        listener = socket.create_server(address, backlog=4096)
        print("listening", flush=True)
        while True:
            threading.Thread(target=receive, args=(listener.accept()[0],), daemon=True).start()
    threading.stack_size(128 * 1024)
    connections, length, pause = int(rest[0]), int(rest[1]), float(rest[2]) if len(rest) > 2 else 0
    threads = [threading.Thread(target=send, args=(address, number, length)) for number in range(connections)]
    for thread in threads:
        thread.start()
        time.sleep(pause)
    for thread in threads:
        thread.join()


main()
