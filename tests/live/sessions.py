"""A session as BGP's, between two programs that sign what they send: one sends messages, and the other answers each.

A test says how a socket gets its keys, and what its program looks at during the session."""

from harness import check, wait_until

TURNS = 5

# What a program is given: keys that lie in the text before it, as functions. The end says how many messages were answered; it takes a
# new one each time that a file says so.
PROGRAM = """
import os, socket, struct, sys, time
role, own, peer, port, *keys, go = sys.argv[1:]
port, family = int(port), socket.AF_INET6 if ":" in own else socket.AF_INET
def looks(s, turn):
    "Before message `turn` is answered by the server, or sent by the client."
def ends(s):
    "Before a session ends."
{keys}
s = socket.socket(family)
give_keys(s)
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
    turn = 0
    while size := struct.unpack("!I", read(4))[0]:
        looks(s, turn)
        s.sendall(read(size)[::-1])
        turn += 1
    ends(s)
    s.close()
else:
    for turn, size in enumerate([19, 4096, 3_000_000, 19, 200_000]):
        while turn and not os.path.exists(f"{go}{turn}"):
            time.sleep(0.01)
        looks(s, turn)
        data = os.urandom(size)
        s.sendall(struct.pack("!I", size))
        # The answer begins when all has come.
        s.sendall(data)
        assert read(size) == data[::-1]
        print("answered", turn, flush=True)
    ends(s)
    s.sendall(struct.pack("!I", 0))
    assert s.recv(1) == b""
    print("over", flush=True)
"""


def session(scene, name, keys, port, server, client, kill=lambda turn: None):
    """A session between a server and a client, each (command, own address, arguments); `keys` is the text of the program that defines
    `give_keys`. After some messages `kill` is called. Returns both processes."""
    program, go = scene.dir / "session.py", scene.dir / f"{name}-go-"
    program.write_text(PROGRAM.replace("{keys}", keys))
    (_, server_address, _), (_, client_address, _) = server, client

    def start(role, side, peer):
        on, own, arguments = side
        return scene.start(*on("python3", program, role, own, peer, port, *arguments, go), log=f"{name}-{role}.log")

    listener = start("server", server, client_address)
    wait_until(lambda: "listens" in listener.log.read_text() or listener.poll() is not None, 20, f"a listener of {name}")
    check(listener.poll() is None, listener.log.read_text())
    caller = start("client", client, server_address)
    for turn in range(TURNS):
        done = lambda: f"answered {turn}" in caller.log.read_text() or caller.poll() is not None
        wait_until(done, 60, f"an answer to message {turn} of {name}: {caller.log.read_text()}")
        if caller.poll() is not None and turn < TURNS - 1:
            break
        if turn in (0, 2, 3):
            kill(turn)
        (scene.dir / f"{go}{turn + 1}").touch()
    return listener, caller
