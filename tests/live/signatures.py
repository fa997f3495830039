"""Signed segments (RFC 2385) between a program on the stack and one on Linux, as routers that speak BGP have them."""

from harness import Scene, Stack, check, over_ipv6, wait_until

PORT = 1790

# A session as BGP's: each end has a key for the other's address, and sends messages that the other answers. The end says how many
# were answered; it takes a new message each time that a file says so.
PROGRAM = """
import os, socket, struct, sys, time
role, own, peer, port, secret, go = sys.argv[1:7]
port, family = int(port), socket.AF_INET6 if ":" in own else socket.AF_INET
TCP_MD5SIG, TCP_MD5SIG_EXT, PREFIX = 14, 32, 1
def key(text, length=None):
    if family == socket.AF_INET:
        address = struct.pack("=HH4s", family, 0, socket.inet_aton(peer))
    else:
        address = struct.pack("=HHI16sI", family, 0, 0, socket.inet_pton(family, peer), 0)
    head = struct.pack("=BBHi", PREFIX if length else 0, length or 0, len(text), 0)
    return address.ljust(128, b"\\0") + head + text.encode().ljust(80, b"\\0")
s = socket.socket(family)
if secret != "none":
    # A key of a network, and the same or another for the peer alone, which counts.
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG_EXT, key("of a network", 24 if family == socket.AF_INET else 64))
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, key(secret))
    try:
        s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, key("x" * 80)[:100])
        raise SystemExit("a key that is too short was taken")
    except OSError as error:
        assert error.errno == 22, error
if role == "server":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
    s.listen()
    print("listens", flush=True)
    s, _ = s.accept()
else:
    s.settimeout(4)
    s.bind((own, 0))
    s.connect((peer, port))
    s.settimeout(None)
def read(n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise SystemExit("the peer has closed")
        data += more
    return data
if role == "server":
    while True:
        size = struct.unpack("!I", read(4))[0]
        if not size:
            break
        s.sendall(read(size)[::-1])
    s.close()
else:
    for turn, size in enumerate([19, 4096, 3_000_000, 19, 200_000]):
        while turn and not os.path.exists(f"{go}{turn}"):
            time.sleep(0.01)
        data = os.urandom(size)
        s.sendall(struct.pack("!I", size))
        # The answer begins when all has come.
        s.sendall(data)
        assert read(size) == data[::-1]
        print("answered", turn, flush=True)
    s.sendall(struct.pack("!I", 0))
    assert s.recv(1) == b""
    print("over", flush=True)
"""


def session(scene, stack, name, server, client, keys, kill=None):
    """A session between (command, own address) of a server and of a client; returns both processes."""
    program, go = scene.dir / "session.py", scene.dir / f"{name}-go-"
    program.write_text(PROGRAM)
    (on_server, server_address), (on_client, client_address) = server, client
    listener = scene.start(*on_server("python3", program, "server", server_address, client_address, PORT, keys[0], go),
                           log=f"{name}-server.log")
    wait_until(lambda: "listens" in listener.log.read_text(), 20, f"a listener: {listener.log.read_text()}")
    caller = scene.start(*on_client("python3", program, "client", client_address, server_address, PORT, keys[1], go),
                         log=f"{name}-client.log")
    for turn in range(5):
        done = lambda: f"answered {turn}" in caller.log.read_text() or caller.poll() is not None
        wait_until(done, 60, f"an answer to message {turn} of {name}: {caller.log.read_text()}")
        if caller.poll() is not None and turn < 4:
            break
        if kill and turn in (0, 2, 3):
            stack.kill(kill)
        (scene.dir / f"{go}{turn + 1}").touch()
    return listener, caller


def sides(stack):
    here, there = (stack.on, stack.address), (stack.beside, stack.host)
    return [("from", there, here), ("to", here, there)]


def signed_sessions():
    with Scene("signatures") as scene:
        stack = Stack(scene, kind="packet")
        for name, server, client in sides(stack):
            listener, caller = session(scene, stack, name, server, client, ("secret", "secret"), kill="tcp")
            check(caller.wait(30) == 0 and "over" in caller.log.read_text(), f"{name}: {caller.log.read_text()}")
            check(listener.wait(30) == 0, f"{name}: {listener.log.read_text()}")
        counted = {what: stack.counter("tcp", f"drop_{what}") for what in ("unsigned", "bad_signature")}
        check(counted["unsigned"] == 0, f"Linux signs all, but {counted}")


def sessions_without_the_key():
    with Scene("signatures-refused") as scene:
        stack = Stack(scene, kind="packet")
        cases = [("wrong", ("secret", "a guess"), "bad_signature"), ("unsigned", ("secret", "none"), "unsigned"),
                 ("unwanted", ("none", "secret"), "unexpected_signature")]
        for name, keys, counter in cases:
            for number, (way, server, client) in enumerate(sides(stack)):
                before = stack.counter("tcp", f"drop_{counter}")
                listener, caller = session(scene, stack, f"{name}-{way}", server, client, keys)
                told = caller.log.read_text()
                check(caller.wait(20) != 0 and "timed out" in told or "TimeoutError" in told, f"{name} {way} the stack: {told}")
                listener.terminate()
                listener.wait(10)
                # Towards Linux, Linux is who drops.
                counted = stack.counter("tcp", f"drop_{counter}") - before
                check((counted > 0) == (number == 1), f"{name} {way}: drop_{counter} grew by {counted}")


CASES = [signed_sessions, over_ipv6(signed_sessions), sessions_without_the_key]
