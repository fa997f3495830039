"""Several instances of each transport: sockets and the connections of one port are spread over them, and live on when one dies."""

import json
import threading
import time

import authentication
import signatures
from harness import TOPOLOGIES, Scene, Stack, check, end, sh, wait_until
from programs import PORT, nginx_config, wrk

# Ports next to each other are spread over two instances.
FIRST, COUNT = 7201, 16
CONNECTIONS = 64

# Echoes what comes to some ports.
SERVER = """
import socket, sys, threading
address, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
def echo(c):
    while d := c.recv(1 << 16):
        c.sendall(d)
def serve(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
for port in range(first, first + count):
    listener = socket.create_server((address, port), family=family, backlog=100)
    threading.Thread(target=serve, args=(listener,)).start()
print("listening", flush=True)
"""

# Has connections to such a server for some seconds, and compares every byte.
CLIENT = """
import hashlib, socket, sys, threading, time
address, first, count, connections, seconds = sys.argv[1], *map(int, sys.argv[2:])
until = time.monotonic() + seconds
done = []
def use(n):
    c = socket.create_connection((address, first + n % count), timeout=30)
    turn = 0
    while time.monotonic() < until:
        data = hashlib.sha256(b"%d %d" % (n, turn)).digest() * 64
        c.sendall(data)
        got = b""
        while len(got) < len(data):
            piece = c.recv(1 << 16)
            if not piece:
                raise EOFError
            got += piece
        assert got == data
        turn += 1
    done.append(turn)
threads = [threading.Thread(target=use, args=(n,)) for n in range(connections)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done), min(done, default=0))
"""


def of_both(stack, role, name):
    counters = stack.counters()
    return [counters[component][name] for component in (role, f"{role}1")]


def listening(process):
    wait_until(lambda: "listening" in process.log.read_text(), 20, "the servers to listen")


def stack_with_servers(scene, program):
    """A stack with two instances of each transport, and servers on it and beyond the wire."""
    stack = Stack(scene, topology=TOPOLOGIES / "spread.toml")
    ports = (FIRST, COUNT)
    listening(scene.start(*stack.on("python3", "-c", program, stack.address, *ports), log="servers.log"))
    listening(scene.start(*stack.beside("python3", "-c", program, stack.host, *ports), log="far-servers.log"))
    return stack


def connections_are_spread_and_live_on():
    with Scene("spread") as scene:
        stack = stack_with_servers(scene, SERVER)
        shown = json.loads(stack.eft("ss", "--json").stdout)["sockets"]
        listeners = [s for s in shown if s["proto"] == "tcp" and s["state"] == "LISTEN"]
        check(len(listeners) == COUNT, f"eft ss shows {len(listeners)} listeners of {COUNT}")
        said = {}

        def use(name, command):
            said[name] = sh(*command, timeout=90).stdout

        arguments = [str(n) for n in (FIRST, COUNT, CONNECTIONS, 8)]
        client = ("python3", "-c", CLIENT)
        users = [threading.Thread(target=use, args=("in", stack.beside(*client, stack.address, *arguments))),
                 threading.Thread(target=use, args=("out", stack.on(*client, stack.host, *arguments)))]
        for user in users:
            user.start()
        time.sleep(2)
        for victim in ("tcp1", "tcp", "tcp1"):
            stack.kill(victim)
            time.sleep(1)
        before = stack.components()["tcp1"]["generation"]
        stack.eft("kill", "tcp1")
        wait_until(lambda: stack.components()["tcp1"]["generation"] > before, 10, "tcp1 to come back")
        for user in users:
            user.join()
        for name in ("in", "out"):
            connections, turns = map(int, said.get(name, "0 0").split())
            check(connections == CONNECTIONS and turns > 0, f"{name}: {said.get(name)}")
        for counter in ("accepted_connections", "outbound_connections"):
            counts = of_both(stack, "tcp", counter)
            check(all(n >= CONNECTIONS / 8 for n in counts), f"{counter} of tcp and tcp1: {counts}")
            check(sum(counts) >= CONNECTIONS, f"{counter} of tcp and tcp1: {counts}")
        deaths = {name: c["deaths"] for name, c in stack.components().items()}
        check((deaths["tcp"], deaths["tcp1"], deaths["ip"]) == (1, 3, 0), f"deaths: {deaths}")


# Echoes datagrams that come to some ports.
DATAGRAM_SERVER = """
import select, socket, sys
address, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
sockets = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(count)]
for n, s in enumerate(sockets): s.bind((address, first + n))
print("listening", flush=True)
while True:
    for s in select.select(sockets, [], [])[0]:
        data, peer = s.recvfrom(2000)
        s.sendto(data, peer)
"""

# Asks such a server from many sockets, again and again; what gets no answer is asked again.
DATAGRAM_CLIENT = """
import socket, sys, time
address, first, count, clients, rounds = sys.argv[1], *map(int, sys.argv[2:])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
sockets = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(clients)]
for n, s in enumerate(sockets):
    s.settimeout(0.5)
    s.connect((address, first + n % count))
for turn in range(rounds):
    for n, s in enumerate(sockets):
        data = b"%d of %d" % (turn, n)
        for attempt in range(40):
            s.send(data)
            try:
                while (got := s.recv(2000)) != data:
                    assert int(got.split()[0]) <= turn
                break
            except (TimeoutError, ConnectionRefusedError):
                pass
        else:
            raise SystemExit(f"no answer to {data}")
    time.sleep(0.05)
print("all")
"""


def datagrams_are_spread_and_go_on():
    with Scene("spread-datagrams") as scene:
        stack = stack_with_servers(scene, DATAGRAM_SERVER)
        said = {}

        def use(name, command):
            said[name] = sh(*command, timeout=90).stdout

        arguments = [str(n) for n in (FIRST, COUNT, 32, 60)]
        client = ("python3", "-c", DATAGRAM_CLIENT)
        users = [threading.Thread(target=use, args=("in", stack.beside(*client, stack.address, *arguments))),
                 threading.Thread(target=use, args=("out", stack.on(*client, stack.host, *arguments)))]
        for user in users:
            user.start()
        for victim in ("udp1", "udp", "udp1"):
            time.sleep(0.7)
            stack.kill(victim)
        for user in users:
            user.join()
        check({name: text.strip() for name, text in said.items()} == {"in": "all", "out": "all"}, f"{said}")
        for counter in ("received_datagrams", "sent_datagrams"):
            counts = of_both(stack, "udp", counter)
            check(all(n > 200 for n in counts), f"{counter} of udp and udp1: {counts}")


# Sockets that are eft's before they have a port, and sockets that leave the port to the system.
LATE = """
import socket, struct, sys, threading
own, group = sys.argv[1], sys.argv[2]
six = ":" in own
family = socket.AF_INET6 if six else socket.AF_INET
level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
pack = lambda a: socket.inet_pton(family, a)
here = next(i for i, n in socket.if_nameindex() if n != "lo")
storage = struct.pack("=HHI16sI", family, 0, 0, pack(group), 0).ljust(128, b"\\0") if six else \\
    struct.pack("=HH4s", family, 0, pack(group)).ljust(128, b"\\0")
members = []
for port in range(7301, 7309):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(level, 42, struct.pack("=II", here, 0) + storage)  # MCAST_JOIN_GROUP
    s.settimeout(20)
    s.bind(("", port))
    assert s.getsockname()[1] == port
    members.append(s)
signed = []
for port in range(7401, 7409):
    s = socket.socket(family, socket.SOCK_STREAM)
    peer = struct.pack("=HHI16sI" if six else "=HH4s", family, 0, *([0] if six else []), pack(sys.argv[3]), *([0] if six else []))
    s.setsockopt(socket.IPPROTO_TCP, 14, peer.ljust(128, b"\\0") + struct.pack("=BBHI80s", 0, 0, 6, 0, b"secret"))  # TCP_MD5SIG
    s.bind((own, port))
    s.listen(5)
    signed.append(s)
anywhere = []
for n in range(24):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.bind(("", 0))
    s.listen(5)
    anywhere.append(s)
chosen = [s.getsockname()[1] for s in anywhere]
assert len(set(chosen)) == 24 and 0 not in chosen
loopback = "::1" if six else "127.0.0.1"
for port in chosen:
    socket.create_connection((loopback, port), timeout=10).close()
print("chosen", *chosen, "chosen", flush=True)
for s in members:
    print("heard", s.recv(100).decode(), flush=True)
for s in anywhere:
    s.settimeout(20)
    for _ in range(2):
        c, peer = s.accept()
        if peer[0] != loopback:
            c.sendall(b"hello")
print("served", flush=True)
"""

CALL = """
import socket, struct, sys
address, group, device = sys.argv[1:4]
six = ":" in address
family = socket.AF_INET6 if six else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
here = socket.if_nametoindex(device)
if six: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, here)
else: s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("=4s4sI", b"", b"", here))
for port in range(7301, 7309):
    s.sendto(b"%d" % port, (group, port))
for port in map(int, sys.argv[4:]):
    with socket.create_connection((address, port), timeout=20) as c:
        assert c.recv(10) == b"hello"
print("all")
"""


def a_port_that_is_known_late_finds_its_instance():
    with Scene("spread-late") as scene:
        stack = Stack(scene, kind="veth", topology=TOPOLOGIES / "spread.toml")
        group = "ff15::1:77" if ":" in stack.address else "239.77.1.77"
        program = scene.start(*stack.on("python3", "-c", LATE, stack.address, group, stack.host), log="late.log")
        said = lambda: program.log.read_text()
        wait_until(lambda: said().count("chosen") == 2 or program.poll() is not None, 30, "the sockets to be bound")
        check(said().count("chosen") == 2, said())
        members = json.loads(stack.eft("maddr", "--json").stdout)["memberships"]
        check(sorted(m["local"].rsplit(":")[-1] for m in members) == [str(port) for port in range(7301, 7309)], f"{members}")
        chosen = said().split("chosen")[1].split()
        call = sh(*stack.beside("python3", "-c", CALL, stack.address, group, "far", *chosen), timeout=60)
        check(call.stdout.strip() == "all", f"{call.stdout} {call.stderr}")
        check(program.wait(30) == 0, said())
        check([line.split()[1] for line in said().splitlines() if line.startswith("heard")]
              == [str(port) for port in range(7301, 7309)], said())
        counts = of_both(stack, "tcp", "accepted_connections")
        check(all(n > 0 for n in counts), f"accepted by tcp and tcp1: {counts}")


# Echoes what comes to one port, in one of several ways.
ONE_PORT = """
import os, select, signal, socket, sys, threading
address, port, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
def echo(c):
    with c:
        while d := c.recv(1 << 16):
            c.sendall(d)
def accept_for_ever(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
def edges(listener):
    listener.setblocking(False)
    streams, unsent, poll = {}, {}, select.epoll()
    poll.register(listener, select.EPOLLIN | select.EPOLLET)
    def serve(c):
        while True:
            while unsent[c]:
                unsent[c] = unsent[c][c.send(unsent[c]):]
            d = c.recv(1 << 16)
            if not d:
                del streams[c.fileno()], unsent[c]
                return c.close()
            unsent[c] = d
    while True:
        for fd, _ in poll.poll():
            try:
                if fd != listener.fileno():
                    serve(streams[fd])
                    continue
                while True:
                    c = listener.accept()[0]
                    c.setblocking(False)
                    streams[c.fileno()], unsent[c] = c, b""
                    poll.register(c, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
            except BlockingIOError:
                pass
if way == "group":
    # Each process has a listener of its own.
    for _ in range(3):
        if os.fork() == 0:
            break
if way == "inherited":
    listener = socket.socket(fileno=int(sys.argv[4]))
else:
    listener = socket.create_server((address, port), family=family, backlog=200, reuse_port=way == "group")
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
if way == "exec":
    os.set_inheritable(listener.fileno(), True)
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[2], *sys.argv[1:3], "inherited", str(listener.fileno())])
print("listening", flush=True)
if way == "forks":
    # One process accepts for each connection, as inetd does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        c = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            echo(c)
            os._exit(0)
        c.close()
if way == "children":
    # All accept, as Apache's do.
    for _ in range(3):
        if os.fork() == 0:
            break
if way == "edges":
    edges(listener)
for _ in range(3):
    threading.Thread(target=accept_for_ever, args=(listener,)).start()
"""

# Makes connections one after the other for some seconds, each for one echo.
SHORT = """
import socket, sys, threading, time
address, port, users, seconds = sys.argv[1], *map(int, sys.argv[2:])
until = time.monotonic() + seconds
done = []
def use(n):
    turn = 0
    while time.monotonic() < until:
        with socket.create_connection((address, port), timeout=30) as c:
            data = b"%d of %d" % (turn, n)
            c.sendall(data)
            assert c.recv(100) == data
        turn += 1
    done.append(turn)
threads = [threading.Thread(target=use, args=(n,)) for n in range(users)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done), min(done, default=0))
"""
ONE = 7180


def shown_listeners(stack, port):
    shown = json.loads(stack.eft("ss", "--json").stdout)["sockets"]
    return [s for s in shown if s["state"] == "LISTEN" and s["local"].endswith(f":{port}")]


def one_port_is_served_by_all(way, change=lambda stack, component: stack.kill(component),
                              components=("tcp1", "tcp", "sockets", "ip", "tcp1"), listeners=1):
    with Scene(f"spread-{way}") as scene:
        stack = Stack(scene, topology=TOPOLOGIES / "spread.toml")
        program = scene.start(*stack.on("python3", "-c", ONE_PORT, stack.address, ONE, way), log="server.log")
        wait_until(lambda: program.log.read_text().count("listening") == listeners, 20, "the server to listen")
        check(len(shown_listeners(stack, ONE)) == listeners, f"eft ss shows {shown_listeners(stack, ONE)}")
        said = {}

        def use(name, script, *arguments):
            command = stack.beside("python3", "-c", script, stack.address, *map(str, arguments))
            said[name] = sh(*command, timeout=90).stdout

        users = [threading.Thread(target=use, args=("long", CLIENT, ONE, 1, 32, 7)),
                 threading.Thread(target=use, args=("short", SHORT, ONE, 4, 7))]
        for user in users:
            user.start()
        for component in components:
            time.sleep(1)
            change(stack, component)
        for user in users:
            user.join()
        for name, connections in (("long", 32), ("short", 4)):
            done, turns = map(int, said.get(name, "0 0").split())
            check(done == connections and turns > 1, f"{name}: {said.get(name)}")
        counts = of_both(stack, "tcp", "accepted_connections")
        check(all(n >= sum(counts) / 4 for n in counts), f"accepted by tcp and tcp1: {counts}")
        end(program)
        wait_until(lambda: not shown_listeners(stack, ONE), 10, "the listeners to end with their program")


def one_port_of_threads():
    one_port_is_served_by_all("threads")


def one_port_of_a_forking_server():
    one_port_is_served_by_all("forks")


def one_port_of_children():
    one_port_is_served_by_all("children")


def one_port_after_exec():
    one_port_is_served_by_all("exec")


def one_port_with_edges():
    one_port_is_served_by_all("edges")


def one_port_of_a_group():
    one_port_is_served_by_all("group", listeners=4)


def one_port_outlives_updates():
    one_port_is_served_by_all("threads", lambda stack, which: stack.eft("update", which), ("tcp1", "tcp", "sockets", "--all"))


def sessions_until_both_accept(stack, session):
    for turn in range(12):
        for server, client in session(turn):
            check(client.wait(30) == 0 and "over" in client.log.read_text(), f"session {turn}: {client.log.read_text()}")
            check(server.wait(30) == 0, f"session {turn}: {server.log.read_text()}")
        if all(of_both(stack, "tcp", "accepted_connections")):
            break
    else:
        check(False, "all sessions have one instance")
    for what in "unsigned", "bad_signature", "unknown_key":
        check(not any(of_both(stack, "tcp", f"drop_{what}")), f"all is signed, but there are drops: {what}")


def ended(stack, which):
    """Ends a server in a way that does not slow its restarts down."""
    before = stack.components()[which]["generation"]
    stack.eft("kill", which)
    wait_until(lambda: (c := stack.components()[which])["generation"] > before and c["state"] == "running", 10, f"{which} to come back")


def one_port_of_signed_sessions():
    with Scene("spread-signed") as scene:
        stack = Stack(scene, kind="packet", topology=TOPOLOGIES / "spread.toml")
        secrets = ("secret", "secret")
        kill = lambda turn: ended(stack, ("tcp", "tcp1")[turn % 2])
        sessions_until_both_accept(stack, lambda turn: [
            signatures.between(scene, f"{way}{turn}", server, client, secrets, kill)
            for way, server, client in signatures.sides(stack)])


def one_port_of_authenticated_sessions():
    with Scene("spread-authenticated") as scene:
        two = authentication.Two(scene, "--topology", TOPOLOGIES / "spread.toml")
        keys = (f"{authentication.HMAC};{authentication.CMAC}", "a secret of one;another secret")
        kill = lambda turn: ended(two.stack(turn % 2), ("tcp", "tcp1")[turn // 2 % 2])
        sessions_until_both_accept(two.stack(0), lambda turn: [
            authentication.between(scene, two, f"session{turn}", (keys, keys), kill)])


def one_port_of_nginx():
    with Scene("spread-nginx") as scene:
        stack = Stack(scene, topology=TOPOLOGIES / "spread.toml")
        scene.start(*stack.on("nginx", "-c", str(nginx_config(scene, stack.address, 2))))
        stack.listening(PORT)
        said = []
        user = threading.Thread(target=lambda: said.append(wrk(stack, "/hello", 6)))
        user.start()
        for victim in ("tcp1", "tcp", "tcp1"):
            time.sleep(1.2)
            stack.kill(victim)
        user.join()
        check(said and said[0][0] > 100 and not said[0][1], f"wrk: {said}")
        counts = of_both(stack, "tcp", "accepted_connections")
        check(all(n >= 8 for n in counts), f"accepted by tcp and tcp1: {counts}")


# Connects from one port to many, to a server of the far side.
FROM_ONE_PORT = """
import socket, sys
own, address, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
open_ones = []
for port in range(first, first + count):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.bind((own if port % 2 else "", 2049))
    s.settimeout(20)
    s.connect((address, port))
    assert s.getsockname()[1] == 2049 and s.getpeername()[1] == port
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    open_ones.append(s)
for turn in range(3):
    for n, s in enumerate(open_ones):
        s.sendall(b"%d of %d" % (turn, n))
        assert s.recv(100) == b"%d of %d" % (turn, n)
print("all")
"""

# Listens, is called, and closes, again and again on one port.
AGAIN_AND_AGAIN = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
for turn in range(20):
    listener = socket.create_server((address, port), family=family)
    print("listening", turn, flush=True)
    for _ in range(4):
        c = listener.accept()[0]
        c.sendall(b"%d" % turn)
        c.close()
    listener.close()
"""

CALL_AGAIN = """
import socket, sys, time
address, port = sys.argv[1], int(sys.argv[2])
heard = []
until = time.monotonic() + 40
while len(heard) < 80 and time.monotonic() < until:
    try:
        with socket.create_connection((address, port), timeout=10) as c:
            if d := c.recv(10):
                heard.append(int(d))
    except (ConnectionRefusedError, ConnectionResetError):
        pass
print(heard == [n // 4 for n in range(80)], heard)
"""


def a_port_is_used_in_other_ways():
    with Scene("spread-otherwise") as scene:
        stack = stack_with_servers(scene, SERVER)
        called = sh(*stack.on("python3", "-c", FROM_ONE_PORT, stack.address, stack.host, str(FIRST), str(COUNT)), timeout=60)
        check(called.stdout.strip() == "all", f"{called.stdout} {called.stderr}")
        counts = of_both(stack, "tcp", "outbound_connections")
        check(all(n > 1 for n in counts) and sum(counts) == COUNT, f"outbound of tcp and tcp1: {counts}")
        server = scene.start(*stack.on("python3", "-c", AGAIN_AND_AGAIN, stack.address, str(ONE)), log="again.log")
        call = sh(*stack.beside("python3", "-c", CALL_AGAIN, stack.address, str(ONE)), timeout=60)
        check(call.stdout.startswith("True"), f"{call.stdout} {call.stderr} {server.log.read_text()}")
        check(server.wait(10) == 0, server.log.read_text())


CASES = [
    connections_are_spread_and_live_on, datagrams_are_spread_and_go_on, a_port_that_is_known_late_finds_its_instance,
    one_port_of_threads, one_port_of_a_forking_server, one_port_of_children, one_port_after_exec, one_port_with_edges,
    one_port_of_a_group, one_port_outlives_updates, one_port_of_signed_sessions, one_port_of_authenticated_sessions, one_port_of_nginx, a_port_is_used_in_other_ways,
]
