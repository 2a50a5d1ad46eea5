# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a program sees of Lowtide's socket options: options.py CHECK, where CHECK is one of the functions below without check_."""

import array
import errno
import os
import socket
import struct
import sys
import threading
import time

SOL_LOWTIDE = 0x4C54
GOAL, STATUS, LATENCY, PARAMETER = 1, 2, 3, 4
HAS_GOAL, GOVERNED, OWN_LAW = 1, 2, 4
MS, SECOND = 10**6, 10**9
YEAR = 366 * 86400 * SECOND
FAMILIES = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def goal(size, within_ns):
    return struct.pack("=QQ", size, within_ns)


def set_goal(sock, size, within_ns):
    sock.setsockopt(SOL_LOWTIDE, GOAL, goal(size, within_ns))


def set_parameter(sock, name, value):
    sock.setsockopt(SOL_LOWTIDE, PARAMETER, struct.pack("=24sd", name, value))


def cwnd_after_an_ack(sock):
    """tcpi_snd_cwnd, in segments, once there is a tcpi_bytes_acked of more than the SYN; 0 before."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
    return struct.unpack_from("=I", info, 80)[0] if struct.unpack_from("=Q", info, 120)[0] > 1 else 0


class Status:
    def __init__(self, sock):
        answer = sock.getsockopt(SOL_LOWTIDE, STATUS, 64)
        fields = struct.unpack("=IIdQQQQqq", answer)
        (self.flags, self.outlook, self.weight, self.size, self.acknowledged) = fields[:5]
        (self.target_rate, self.achieved_rate, self.left_ns, self.expected_ns) = fields[5:]

    def __repr__(self):
        return repr(vars(self))


def refused(call, *arguments):
    """The name of the error that a call ends with."""
    try:
        call(*arguments)
    except OSError as error:
        # another name of the same number
        return "EOPNOTSUPP" if error.errno == errno.EOPNOTSUPP else errno.errorcode[error.errno]
    return "taken"


def is_(found, meant, what):
    assert found == meant, f"{what}: {found}, not {meant}"


def until(what, question):
    """Asks until there is an answer."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        answer = question()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within 30 s")


def swallow(sock):
    while sock.recv(1 << 16):
        pass


class Pair:
    """A connection, both ends of it."""

    def __init__(self, family=socket.AF_INET, before_connect=lambda sock: None):
        self.listener = socket.socket(family)
        self.listener.bind((FAMILIES[family], 0))
        before_connect(self.listener)
        self.listener.listen()
        self.client = socket.socket(family)
        before_connect(self.client)
        self.client.connect(self.listener.getsockname())
        self.server = self.listener.accept()[0]

    def drain(self, sock):
        threading.Thread(target=swallow, args=(sock,), daemon=True).start()


def check_absent():
    """No Lowtide: the kernel's own answers, by which a program can probe."""
    for family, address in FAMILIES.items():
        sock = socket.socket(family)
        is_(refused(set_goal, sock, 1, SECOND), "ENOPROTOOPT", f"{address}: set")
        is_(refused(sock.setsockopt, SOL_LOWTIDE, LATENCY, 1), "ENOPROTOOPT", f"{address}: latency")
        answer = refused(sock.getsockopt, SOL_LOWTIDE, STATUS, 64)
        is_(answer, "EOPNOTSUPP" if family == socket.AF_INET else "ENOPROTOOPT", f"{address}: get")


def check_values():
    """Every value is looked at."""
    for family in FAMILIES:
        sock = Pair(family).client
        for size, within_ns, meant in [
            (1, MS, "taken"),
            (1 << 60, YEAR, "taken"),
            (0, SECOND, "EINVAL"),
            (1, 0, "EINVAL"),
            ((1 << 60) + 1, SECOND, "EINVAL"),
            ((1 << 64) - 1, SECOND, "EINVAL"),
            (1, MS - 1, "EINVAL"),
            (1, YEAR + 1, "EINVAL"),
            (1, time.time_ns(), "EINVAL"),
            (0, 0, "taken"),
        ]:
            is_(refused(set_goal, sock, size, within_ns), meant, f"{size} bytes within {within_ns} ns")
        for extra, meant in [
            (b"\0" * 8, "taken"),
            (b"\0" * 48, "taken"),
            (b"\0" * 7 + b"\1", "E2BIG"),
            (b"\1", "E2BIG"),
            (b"\0" * 49, "E2BIG"),
        ]:
            answer = refused(sock.setsockopt, SOL_LOWTIDE, GOAL, goal(1, SECOND) + extra)
            is_(answer, meant, f"{extra} after the goal")
        for short in [b"", b"\1", goal(1, SECOND)[:15]]:
            is_(refused(sock.setsockopt, SOL_LOWTIDE, GOAL, short), "EINVAL", f"{len(short)} bytes of a goal")
        for latency, meant in [(0, "taken"), (1000, "taken"), (1_000_000, "taken"), (1_000_001, "EINVAL"), (-1, "EINVAL")]:
            is_(refused(sock.setsockopt, SOL_LOWTIDE, LATENCY, latency), meant, f"latency {latency}")
        is_(refused(sock.setsockopt, SOL_LOWTIDE, LATENCY, b"\1"), "EINVAL", "one byte of a latency")
        is_(sock.getsockopt(SOL_LOWTIDE, LATENCY), 1_000_000, "the last good latency")
        # a longer buffer gets what there is, a shorter one nothing
        is_(len(sock.getsockopt(SOL_LOWTIDE, STATUS, 1000)), 64, "length of a status")
        is_(refused(sock.getsockopt, SOL_LOWTIDE, STATUS, 63), "EINVAL", "a short buffer")
        is_(refused(sock.getsockopt, SOL_LOWTIDE, LATENCY, 3), "EINVAL", "a short buffer for the latency")
        # what there is not
        is_(refused(sock.setsockopt, SOL_LOWTIDE, 99, 1), "ENOPROTOOPT", "an unknown option")
        is_(refused(sock.setsockopt, SOL_LOWTIDE, STATUS, bytes(64)), "ENOPROTOOPT", "setting the status")
        assert refused(sock.getsockopt, SOL_LOWTIDE, GOAL, 16) in ("EOPNOTSUPP", "ENOPROTOOPT"), "reading the goal"


def check_parameters():
    """Parameters of LEDBAT on single sockets."""
    for family in FAMILIES:
        sock = Pair(family).client
        for name, value, meant in [
            (b"target", 0.05, "taken"),
            (b"target", 100e-6, "taken"),
            (b"target", 10.0, "taken"),
            (b"target", 99e-6, "EINVAL"),
            (b"target", 10.001, "EINVAL"),
            (b"target", 0.0, "EINVAL"),
            (b"target", -0.05, "EINVAL"),
            (b"target", float("nan"), "EINVAL"),
            (b"target", float("inf"), "EINVAL"),
            (b"target", 1e300, "EINVAL"),
            (b"target", 1e-300, "EINVAL"),
            (b"gain", 0.125, "taken"),
            (b"gain", 101, "EINVAL"),
            (b"base_history", 3, "taken"),
            (b"base_history", 3.5, "EINVAL"),
            (b"base_history", 33, "EINVAL"),
            (b"slow_start", 1, "taken"),
            (b"slow_start", 2, "EINVAL"),
            (b"targe", 0.05, "EINVAL"),
            (b"targets", 0.05, "EINVAL"),
            (b"", 0.05, "EINVAL"),
        ]:
            is_(refused(set_parameter, sock, name, value), meant, f"{name} = {value}")
        short = struct.pack("=24sd", b"target", 0.05)[:-1]
        is_(refused(sock.setsockopt, SOL_LOWTIDE, PARAMETER, short), "EINVAL", "a short structure")
        # what is not in flight does not stay in LEDBAT's window, but for the least that it has: 40 segments, or a part
        # of them beside other sockets
        windows = []
        for segments in [None, 40]:
            before = lambda sock: segments and set_parameter(sock, b"min_cwnd", segments)
            pair = Pair(family, before_connect=before)
            pair.drain(pair.server)
            pair.client.sendall(bytes(1000))
            windows.append(until("an acknowledgement", lambda: cwnd_after_an_ack(pair.client)))
        assert windows[0] < 5 and windows[1] >= 10, f"windows of {windows} segments"


def check_no_parameters():
    """A law that has none of single sockets."""
    is_(refused(set_parameter, Pair().client, b"g", 3.0), "EOPNOTSUPP", "a parameter")


def check_sockets():
    """Which sockets can have a goal."""
    for family, address in FAMILIES.items():
        pair = Pair(family)
        is_(refused(set_goal, pair.listener, 1, SECOND), "EOPNOTSUPP", "a goal on a listener")
        is_(Status(pair.listener).flags, 0, "status of a listener")
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        is_(refused(set_goal, datagrams, 1, SECOND), "ENOPROTOOPT", "a goal over UDP")
        assert refused(datagrams.getsockopt, SOL_LOWTIDE, STATUS, 64) in ("EOPNOTSUPP", "ENOPROTOOPT"), "status over UDP"
        # what was set before listen does not bind what is accepted
        pair = Pair(family, before_connect=lambda sock: set_goal(sock, 1000, 60 * SECOND))
        is_(Status(pair.client).flags & HAS_GOAL, HAS_GOAL, f"{address}: set before connect")
        is_(Status(pair.server).flags, 0, f"{address}: accepted")
    local = socket.socketpair()[0]
    is_(refused(set_goal, local, 1, SECOND), "EOPNOTSUPP", "a goal on a local socket")


def check_own_law():
    """Under --allow-own-cc: no weight has an effect on a law of the program's choice."""
    sock = Pair().client
    set_goal(sock, 1000, 60 * SECOND)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    is_(Status(sock).flags & OWN_LAW, OWN_LAW, "flag")
    is_(refused(set_goal, sock, 1000, 60 * SECOND), "EOPNOTSUPP", "another goal")
    is_(refused(set_goal, sock, 0, 0), "taken", "no goal")


def check_counting():
    """What counts, from when, and until when."""
    for family, address in FAMILIES.items():
        for sender in ("client", "server"):
            pair = Pair(family)
            ends = {"client": pair.client, "server": pair.server}
            sock = ends.pop(sender)
            pair.drain(*ends.values())
            what = f"{address}, {sender}"
            sock.sendall(bytes(300_000))
            until("the bytes before", lambda: acknowledged(sock) >= 300_000)
            set_goal(sock, 200_000, 60 * SECOND)
            status = Status(sock)
            is_((status.flags & HAS_GOAL, status.size, status.acknowledged), (HAS_GOAL, 200_000, 0), what)
            assert 55 * SECOND < status.left_ns <= 60 * SECOND, status
            sock.sendall(bytes(100_000))
            until("half of it", lambda: Status(sock).acknowledged == 100_000)
            status = until("a governor", lambda: governed(sock))
            is_((status.weight, status.acknowledged), (0.004, 100_000), what)
            # another one: counts anew
            set_goal(sock, 50_000, 30 * SECOND)
            status = Status(sock)
            is_((status.size, status.acknowledged, status.target_rate), (50_000, 0, 0), what)
            assert status.left_ns <= 30 * SECOND, status
            # given the governor for this one has looked, it says what is needed now
            status = until("a look at the new goal", lambda: Status(sock).target_rate and Status(sock))
            assert 50_000 / 30 <= status.target_rate < 50_000 / 25, status
            sock.sendall(bytes(50_000))
            until("done", lambda: Status(sock).outlook == 6)
            # none
            set_goal(sock, 0, 0)
            status = Status(sock)
            is_((status.flags, status.size, status.left_ns, status.expected_ns), (0, 0, 0, -1), what)


def check_before_connect():
    """Bytes count from the connection's first, time from the call."""
    for family in FAMILIES:
        unused = socket.socket(family)
        set_goal(unused, 1000, 60 * SECOND)
        pair = Pair(family, before_connect=lambda sock: set_goal(sock, 100_000, 60 * SECOND))
        pair.drain(pair.server)
        pair.client.sendall(bytes(100_000))
        until("all of it", lambda: Status(pair.client).acknowledged == 100_000)
        until("a governor", lambda: governed(pair.client))
        status = Status(unused)
        is_((status.flags, status.acknowledged), (HAS_GOAL, 0), "never connected")
        assert 0 < status.left_ns < 60 * SECOND, status


def check_overdue():
    """Past its deadline with bytes left a socket is an ordinary flow; with its goal met it is one of the others again."""
    pair = Pair()
    pair.drain(pair.server)
    set_goal(pair.client, 100_000, 300 * MS)
    status = until("past the deadline", lambda: Status(pair.client).outlook == 5 and Status(pair.client))
    is_((status.weight, status.target_rate, status.left_ns < 0), (1.0, 0, True), "overdue")
    pair.client.sendall(bytes(100_000))
    until("over", lambda: Status(pair.client).outlook == 6 and not governed(pair.client))
    is_(Status(pair.client).weight, 0.004, "the run's weight")


def check_shared_descriptors():
    """A goal belongs to the connection, whoever holds it."""
    pair = Pair()
    copy = socket.socket(fileno=os.dup(pair.client.fileno()))
    set_goal(copy, 1000, 60 * SECOND)
    is_(Status(pair.client).size, 1000, "set on the copy")
    copy.close()
    child = os.fork()
    if child == 0:
        set_goal(pair.client, 2000, 60 * SECOND)
        os._exit(0)
    os.waitpid(child, 0)
    is_(Status(pair.client).size, 2000, "set by a child")


def check_nested_group():
    """Processes in groups below the run's are covered."""
    group = own_group() + "/below"
    os.mkdir(group)
    child = os.fork()
    if child == 0:
        with open(group + "/cgroup.procs", "w") as file:
            file.write("0")
        try:
            check_before_connect()
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
        os._exit(0)
    result = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    until("an empty group", lambda: refused(os.rmdir, group) == "taken")
    is_(result, 0, "below")


def check_nested_run():
    """Under two runs every group takes the goal, and refuses what is refused."""
    check_values()
    check_sockets()
    check_before_connect()


def check_other_options():
    """What is not ours passes untouched, however long it is."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        sock = socket.socket(socket.AF_INET, kind)
        for length in (4, 4096, 4097, 65536):
            value = struct.pack("=i", 20_000 + length) + bytes(length - 4)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, value)
            is_(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), 2 * (20_000 + length), f"SO_RCVBUF of {length} bytes")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 3)
        is_(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY), 3, "SO_PRIORITY")
        is_(refused(sock.setsockopt, 0x4C55, 1, 1), "ENOPROTOOPT", "another level")
        is_(refused(sock.setsockopt, socket.SOL_SOCKET, 9999, 1), "ENOPROTOOPT", "an unknown option")
    tcp = Pair().client
    info = tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1024)
    assert 100 < len(info) < 1024, len(info)
    # Python reads no more than 1024 bytes
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    buffer, length = ctypes.create_string_buffer(65536), ctypes.c_uint32(65536)
    result = libc.getsockopt(tcp.fileno(), socket.IPPROTO_TCP, socket.TCP_INFO, buffer, ctypes.byref(length))
    is_((result, length.value), (0, len(info)), "TCP_INFO into 64 KiB")
    # a filter that lets everything pass: a pointer inside the option
    code = array.array("H", [0x6, 0, 0xFFFF, 0xFFFF])
    program = struct.pack("=HxxxxxxQ", 1, code.buffer_info()[0])
    tcp.setsockopt(socket.SOL_SOCKET, 26, program)


def check_brief():
    """Set, met and closed between two looks at the sockets."""
    pair = Pair()
    set_goal(pair.client, 1000, 60 * SECOND)
    pair.client.sendall(bytes(1000))
    pair.client.close()
    swallow(pair.server)


def check_orphaned():
    """When Lowtide dies the options go and the connection stays."""
    pair = Pair()
    pair.drain(pair.server)
    set_goal(pair.client, 1 << 30, 60 * SECOND)
    print("ready", flush=True)
    until("no Lowtide", lambda: refused(set_goal, pair.client, 1, SECOND) == "ENOPROTOOPT")
    is_(refused(pair.client.getsockopt, SOL_LOWTIDE, STATUS, 64), "EOPNOTSUPP", "get")
    before = acknowledged(pair.client)
    pair.client.sendall(bytes(3_000_000))
    until("it goes on", lambda: acknowledged(pair.client) >= before + 3_000_000)
    print("goes on", flush=True)


def check_limit():
    """So many sockets can have a goal, and no more."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
    listener = socket.create_server(("127.0.0.1", 0), backlog=8192)
    sockets = []

    def one_more():
        sockets.append(socket.create_connection(listener.getsockname()))
        listener.accept()
        return refused(set_goal, sockets[-1], 1000, 60 * SECOND)

    for _ in range(4096):
        is_(one_more(), "taken", f"goal {len(sockets)}")
    for _ in range(100):
        is_(one_more(), "ENOBUFS", f"goal {len(sockets)}")
    set_goal(sockets[0], 2000, 60 * SECOND)  # one that has a goal may change it
    is_(refused(set_goal, sockets[-1], 1000, 60 * SECOND), "ENOBUFS", "and one that has none does not get it")
    set_goal(sockets[0], 0, 0)
    is_(one_more(), "taken", "in place of one that was cleared")
    is_(one_more(), "ENOBUFS", "and no more")
    sockets[1].close()
    until("room for one that has closed", lambda: one_more() == "taken")
    is_(one_more(), "ENOBUFS", "and no more")
    for sock in sockets:
        sock.close()
    until("room again", lambda: one_more() == "taken")


def check_limit_before_connect():
    """Sockets that are no connection count, too, until they are closed, and as many as there are processes at it."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))

    def all_at_once():
        """How many goals four processes get that ask for 1500 each; whoever has none left goes when all have."""
        reader, writer = os.pipe()
        go_reader, go_writer = os.pipe()
        children = []
        for _ in range(4):
            children.append(os.fork())
            if children[-1] == 0:
                os.close(go_writer)
                sockets = [socket.socket() for _ in range(1500)]
                answers = [refused(set_goal, sock, 1000, 60 * SECOND) for sock in sockets]
                assert set(answers) <= {"taken", "ENOBUFS"}, set(answers)
                os.write(writer, struct.pack("=I", answers.count("taken")))
                os.read(go_reader, 1)
                os._exit(0)
        taken = sum(struct.unpack("=I", os.read(reader, 4))[0] for _ in children)
        os.close(go_writer)
        for child in children:
            is_(os.waitpid(child, 0)[1], 0, "a child")
        return taken

    for _ in range(2):
        is_(all_at_once(), 4096, "goals")
    # a connection that fails gives its place back, and so does a listener
    for _ in range(5000):
        sock = socket.socket()
        set_goal(sock, 1000, 60 * SECOND)
        is_(refused(sock.connect, ("127.0.0.1", 1)), "ECONNREFUSED", "a connection to nobody")
        del sock
    for _ in range(5000):
        sock = socket.socket()
        set_goal(sock, 1000, 60 * SECOND)
        sock.listen()
        del sock
    is_(all_at_once(), 4096, "goals")


def check_second_connection():
    """A socket may connect again; the goal was its first connection's."""
    sock, first, second = socket.socket(), Pair(), Pair()
    goals = []
    for pair in (first, second):
        sock.connect(pair.listener.getsockname())
        pair.drain(pair.listener.accept()[0])
        goals.append(Status(sock).flags & HAS_GOAL)
        set_goal(sock, 100_000, 60 * SECOND)
        sock.sendall(bytes(100_000))
        until("all of it", lambda: Status(sock).acknowledged >= 100_000)
        disconnect(sock)
    is_(goals, [0, 0], "goals before the connection's own")


def disconnect(sock):
    """connect() to AF_UNSPEC, which Python does not know."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    is_(libc.connect(sock.fileno(), bytes(16), 16), 0, "disconnect")


def governed(sock):
    status = Status(sock)
    return status if status.flags & GOVERNED else None


def acknowledged(sock):
    """tcpi_bytes_acked"""
    return struct.unpack_from("=Q", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]


def own_group():
    with open("/proc/self/cgroup") as file:
        group = next(line[3:].strip() for line in file if line.startswith("0::"))
    with open("/proc/self/mounts") as file:
        root = next(line.split()[1] for line in file if line.split()[2] == "cgroup2")
    return root + group


globals()[f"check_{sys.argv[1]}"]()
