"""Options of TCP as a program sets them, and what the kernel at the other end sees of them."""

from harness import Scene, Stack, check, sh

PORT = 8080

SERVER = """
import socket, struct, time
UNACKED, SSTHRESH, NOTSENT_LOWAT, INFO = 24, 76, 25, 11
l = socket.socket()
l.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700)
l.bind(("0.0.0.0", %d))
l.listen()
assert l.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) == 700
s, _ = l.accept()
def word(offset):
    return struct.unpack_from("I", s.getsockopt(socket.IPPROTO_TCP, INFO, 104), offset)[0]
assert word(SSTHRESH) == 0x7fffffff, word(SSTHRESH)
# The peer does not read: little waits beyond what its window takes.
s.setsockopt(socket.IPPROTO_TCP, NOTSENT_LOWAT, 20000)
s.setblocking(False)
sent, quiet = 0, 0
while quiet < 5:
    try:
        sent += s.send(bytes(10000))
        quiet = 0
    except BlockingIOError:
        quiet += 1
        time.sleep(0.1)
print("wrote", sent, flush=True)
s.setblocking(True)
assert s.recv(1) == b"r"
time.sleep(0.5)
assert word(UNACKED) == 0, word(UNACKED)
s.sendall(b"end")
print("server is done", flush=True)
"""

CLIENT = """
import socket, sys, time
def connect():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.connect((sys.argv[1], int(sys.argv[2])))
    return s
for _ in range(100):
    try:
        s = connect()
        break
    except ConnectionRefusedError:
        # The server is on its way. (It takes one connection, so none may be spent on finding out.)
        time.sleep(0.1)
mss = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
assert mss <= 700, mss
time.sleep(1.5)
s.settimeout(10)
total = 0
s.sendall(b"r")
while True:
    data = s.recv(65536)
    total += len(data)
    if data.endswith(b"end") or not data:
        break
print("read", total - 3, flush=True)
"""


def options_of_tcp():
    with Scene("options") as scene:
        stack = Stack(scene)
        server, client = scene.dir / "server.py", scene.dir / "client.py"
        server.write_text(SERVER % PORT)
        client.write_text(CLIENT)
        process = scene.start(*stack.on("python3", server))
        read = sh(*stack.beside("python3", client, stack.address, PORT)).stdout
        check(process.wait(10) == 0, f"the server says {process.log.read_text()}")
        wrote = int(process.log.read_text().split("wrote ")[1].split()[0])
        check(read.split() == ["read", str(wrote)], f"{wrote} bytes were written, {read}")
        # The peer's window, at most 20,000 bytes and one write of 10,000 beyond.
        check(wrote < 400_000, f"{wrote} bytes were taken, though only a window of them could be sent")


CASES = [options_of_tcp]
