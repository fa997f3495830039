"""What a stack has to do while it is broken, restarted or updated: a slow download, connections, and a steady stream."""

import threading

from harness import Stack, check, end, in_url, sha256_of, wait_until
from programs import PORT, nginx_config
from watchdog import Connections, listening_echo


class Download:
    """A file that the far side loads slowly, from nginx on the stack; its checksum must be right in the end."""

    def __init__(self, scene, stack, rate, size):
        _, self.want = scene.file("www/big", size)
        scene.start(*stack.on("nginx", "-c", str(nginx_config(scene, stack.address, 1))))
        stack.listening(PORT)
        self.command = stack.beside("curl", "-sf", "--limit-rate", rate, f"http://{in_url(stack.address)}:{PORT}/big")
        self.sum = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.sum = sha256_of(self.command)

    def finish(self, patience=60):
        self.thread.join(patience)
        check(self.sum == self.want, "the download differs, or its connection ended")


class Load:
    """A stack with a download and a number of connections to a program that answers."""

    def __init__(self, scene, connections=200, kind=None, rate="8M", size=48 << 20, extra=("--keep", "20"), stack=None):
        self.stack = stack = stack or Stack(scene, kind=kind, extra=extra)
        listening_echo(scene, stack)
        # The connections belong to this process, which is not in the far side's namespace.
        self.connections = None if stack.netns else Connections(stack, connections)
        self.lives()
        self.download = Download(scene, stack, rate, size)

    def lives(self):
        if self.connections:
            self.connections.use()

    def finish(self):
        self.lives()
        self.download.finish()


# Sends its place in the stream, in 8 bytes, 64 times a millisecond.
SENDER = """
import socket, time
listener = socket.create_server(("{address}", 7500), family=socket.AF_INET6 if ":" in "{address}" else socket.AF_INET); print("listening", flush=True)
c, _ = listener.accept()
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
n = 0
while True:
    c.sendall(b"".join((n + i).to_bytes(8, "big") for i in range(64)))
    n += 64
    time.sleep(0.001)
"""

# Checks each place, and prints the longest time without a byte of each tenth of a second, in milliseconds.
RECEIVER = """
import socket, time
c = socket.create_connection(("{address}", 7500))
n, rest, longest = 0, b"", 0
last = shown = time.monotonic()
while True:
    piece = c.recv(1 << 16)
    if not piece: raise SystemExit("the stream ended")
    now = time.monotonic()
    longest, last = max(longest, now - last), now
    rest += piece
    for at in range(0, len(rest) // 8 * 8, 8):
        if int.from_bytes(rest[at:at + 8], "big") != n: raise SystemExit("place %d is damaged" % n)
        n += 1
    rest = rest[len(rest) // 8 * 8:]
    if now - shown > 0.1:
        print("%.1f" % (1000 * longest), flush=True)
        longest, shown = 0, now
"""


class Stream:
    """A transfer without a pause of its own, from the stack to the far side."""

    def __init__(self, scene, stack):
        sender = scene.start(*stack.on("python3", "-c", SENDER.format(address=stack.address)), log="sender.log")
        # It accepts a single connection, so it must not be tested by a connect.
        wait_until(lambda: "listening" in sender.log.read_text(), 10, "the sender to listen")
        self.receiver = scene.start(*stack.beside("python3", "-c", RECEIVER.format(address=stack.address)), log="receiver.log")
        self.gaps()

    def lines(self):
        return self.receiver.log.read_text().splitlines()

    def gaps(self):
        """Waits until the stream has gone on for a moment; the gaps so far, in milliseconds."""
        before = len(self.lines())
        wait_until(lambda: len(self.lines()) > before + 2 or self.receiver.poll() is not None, 20, "the stream to go on")
        check(self.receiver.poll() is None, f"the stream: {self.lines()[-1:]}")
        return [float(line) for line in self.lines()]

    def largest_gap_of(self, what):
        """The largest gap while `what` is done and until the stream goes on, and the largest of the moment before."""
        seen = len(self.lines())
        before = self.gaps()
        what()
        return max(self.gaps()[len(before):]), max(before[seen:])

    def finish(self):
        self.gaps()
        end(self.receiver)
