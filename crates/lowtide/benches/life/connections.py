# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many short connections, each answered with the SHA-256 of what it brought.

connections.py serve ADDRESS PORT
connections.py at-once|in-turn|RATE ADDRESS PORT COUNT BYTES    RATE: connections begun per second

A sender ends with status 1 if any connection failed or got another digest than that of what it sent.
"""
import asyncio
import hashlib
import os
import resource
import sys


async def receive(reader, writer):
    digest = hashlib.sha256()
    try:
        while block := await reader.read(65536):
            digest.update(block)
        writer.write(digest.digest())
        await writer.drain()
    except OSError:
        pass  # the sender finds out: it gets no digest
    finally:
        writer.close()


async def serve(address, port):
    server = await asyncio.start_server(receive, address, port, backlog=4096)
    await server.serve_forever()


async def send(address, port, payload):
    """Whether it arrived as it was sent."""
    try:
        reader, writer = await asyncio.open_connection(address, port)
        try:
            writer.write(payload)
            writer.write_eof()
            answer = await reader.read()
        finally:
            writer.close()
    except OSError as error:
        print(error, file=sys.stderr)
        return False
    return answer == hashlib.sha256(payload).digest()


async def send_all(how, address, port, count, size):
    payloads = (os.urandom(size) for _ in range(count))
    if how == "in-turn":
        return [await send(address, port, payload) for payload in payloads]
    gap = 0 if how == "at-once" else 1 / float(how)
    clock = asyncio.get_running_loop().time
    start, tasks = clock(), []
    for number, payload in enumerate(payloads):
        if gap:
            await asyncio.sleep(max(0, start + number * gap - clock()))
        tasks.append(asyncio.create_task(send(address, port, payload)))
    return await asyncio.gather(*tasks)


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    how, address, port, *rest = sys.argv[1:]
    if how == "serve":
        asyncio.run(serve(address, int(port)))
        return
    count, size = map(int, rest)
    arrived = asyncio.run(send_all(how, address, int(port), count, size))
    if sum(arrived) < count:
        sys.exit(f"{count - sum(arrived)} of {count} connections failed")


main()
