"""Signed segments (RFC 2385) between a program on the stack and one on Linux, as routers that speak BGP have them."""

from harness import Scene, Stack, check, over_ipv6
from sessions import session

PORT = 1790

# Each end has a key for the other's address.
KEYS = """
[secret] = keys
TCP_MD5SIG, TCP_MD5SIG_EXT, PREFIX = 14, 32, 1
def key(text, length=None):
    if family == socket.AF_INET:
        address = struct.pack("=HH4s", family, 0, socket.inet_aton(peer))
    else:
        address = struct.pack("=HHI16sI", family, 0, 0, socket.inet_pton(family, peer), 0)
    head = struct.pack("=BBHi", PREFIX if length else 0, length or 0, len(text), 0)
    return address.ljust(128, b"\\0") + head + text.encode().ljust(80, b"\\0")
def give_keys(s):
    if secret == "none":
        return
    # A key of a network, and the same or another for the peer alone, which counts.
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG_EXT, key("of a network", 24 if family == socket.AF_INET else 64))
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, key(secret))
    try:
        s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, key("x" * 80)[:100])
        raise SystemExit("a key that is too short was taken")
    except OSError as error:
        assert error.errno == 22, error
"""


def between(scene, name, server, client, secrets, kill=lambda turn: None):
    """A session between (command, own address) of a server and of a client, with a secret each."""
    return session(scene, name, KEYS, PORT, (*server, secrets[:1]), (*client, secrets[1:]), kill)


def sides(stack):
    here, there = (stack.on, stack.address), (stack.beside, stack.host)
    return [("from", there, here), ("to", here, there)]


def signed_sessions():
    with Scene("signatures") as scene:
        stack = Stack(scene, kind="packet")
        for name, server, client in sides(stack):
            listener, caller = between(scene, name, server, client, ("secret", "secret"), lambda turn: stack.kill("tcp"))
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
                listener, caller = between(scene, f"{name}-{way}", server, client, keys)
                told = caller.log.read_text()
                check(caller.wait(20) != 0 and "timed out" in told or "TimeoutError" in told, f"{name} {way} the stack: {told}")
                listener.terminate()
                listener.wait(10)
                # Towards Linux, Linux is who drops.
                counted = stack.counter("tcp", f"drop_{counter}") - before
                check((counted > 0) == (number == 1), f"{name} {way}: drop_{counter} grew by {counted}")


CASES = [signed_sessions, over_ipv6(signed_sessions), sessions_without_the_key]
