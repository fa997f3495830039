"""What programs see of connections that are over: HUP, and ERR while the error waits, as on the kernel."""

import errno
import json
import select
import signal
import socket
import subprocess

from crashes import ends_for_good
from harness import ROOT, Scene, Stack, check, end, loopback, over_ipv6, sh, wait_until

OVER = select.POLLIN | select.POLLOUT | select.POLLRDHUP | select.POLLHUP
FAILED = OVER | select.POLLERR

# Makes the given number of connections; then obeys commands, one per line, and reports what poll and epoll say.
CLIENT = """
import select, socket, sys
ALL = select.POLLIN | select.POLLOUT | select.POLLRDHUP
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sockets = [socket.create_connection((host, port)) for _ in range(count)]
poll, epoll = select.poll(), select.epoll()
for s in sockets:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000)
print("connected", flush=True)
for line in sys.stdin:
    word, i = line.split()
    s = sockets[int(i)]
    if word == "send": s.send(b"x"); answer = 0
    if word == "shutdown": s.shutdown(socket.SHUT_RDWR); answer = 0
    if word == "close": s.close(); answer = 0
    if word == "error": answer = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if word in ("wait", "look"):
        poll.register(s, 0 if word == "wait" else ALL)
        epoll.register(s, 0 if word == "wait" else ALL)
        limit = 20 if word == "wait" else 0
        answer = [epoll.poll(limit)[0][1], poll.poll(limit * 1000)[0][1]]
        poll.unregister(s)
        epoll.unregister(s)
    print(answer, flush=True)
"""


def the_same_cases_as_on_the_kernel():
    with Scene("hangups") as scene:
        stack = Stack(scene)
        program = scene.dir / "hangups"
        sh("cc", "-O2", "-pthread", "-o", program, ROOT / "crates/shim/tests/programs/hangups.c")
        cases = sh(program, "list", ".").stdout.split()
        check(len(cases) >= 8, f"cases: {cases}")
        for case in cases:
            kernel = sh(program, case, loopback(), ok=False)
            check(kernel.returncode == 0, f"{case} on the kernel: {kernel.stderr}")
            out = sh(*stack.on(program, case, stack.address), ok=False)
            check(out.returncode == 0, f"{case}: {out.stderr}")
        wait_until(lambda: not connections(stack), 10, "everything to be closed")


def connections(stack):
    """The connections that a program holds, or could hold."""
    return [s for s in json.loads(stack.eft("ss", "--json").stdout)["sockets"] if s["state"] != "TIME-WAIT"]


class Client:
    def __init__(self, stack, port, count):
        command = stack.on("python3", "-c", CLIENT, stack.host, port, count)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([str(word) for word in command], **pipes)
        check(self.process.stdout.readline() == "connected\n", "no connection")

    def __call__(self, word, i):
        self.process.stdin.write(f"{word} {i}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def silence_and_the_end_of_the_stack():
    with Scene("hangups-silence") as scene:
        stack = Stack(scene, extra=("--keep", "1"))
        server = socket.create_server((stack.host, 0), family=socket.AF_INET6 if ":" in stack.host else socket.AF_INET)
        client = Client(stack, server.getsockname()[1], 4)
        try:
            peers = [server.accept()[0] for _ in range(4)]
            check(client("look", 0) == [select.POLLOUT] * 2, "a connection that is well")
            # One connection is over on its own side and still open: its state survives every server's death.
            client("shutdown", 1)
            check(client("wait", 1) == [select.POLLHUP] * 2, "shutdown")
            acknowledged = lambda: any(s["state"] == "FIN-WAIT-2" for s in connections(stack))
            wait_until(acknowledged, 5, "the FIN to be acknowledged")
            # One peer falls silent.
            rules = scene.dir / "pf.conf"
            rules.write_text("pass out all\nblock drop in all\n")
            stack.eft("pf", "-f", rules)
            client("send", 0)
            check(client("wait", 0) == [select.POLLHUP | select.POLLERR] * 2, "a time-out")
            check(client("look", 0) == [FAILED] * 2, "a time-out, in full")
            for component in ("tcp", "sockets", "tcp"):
                stack.kill(component)
                check(client("look", 0) == [FAILED] * 2, f"a time-out, after {component} died")
                seen = client("look", 1)
                check(seen == [OVER] * 2, f"shutdown, after {component} died: {seen}")
                check(client("look", 2) == [select.POLLOUT] * 2, f"a connection that is well, after {component} died")
            error = client("error", 0)
            check(error == errno.ETIMEDOUT, f"the error of a time-out is {error}")
            check(client("look", 0) == [OVER] * 2, "a time-out that was told")
            rules.write_text("pass all\n")
            stack.eft("pf", "-f", rules)
            held = len(connections(stack))
            client("close", 0)
            wait_until(lambda: len(connections(stack)) < held, 5, "the last close to be seen")
            # The stack ends under the others.
            ends_for_good(stack, signal.SIGKILL)
            check(client("wait", 2) == [select.POLLHUP | select.POLLERR] * 2, "the end of the stack")
            check(client("error", 2) == errno.ECONNRESET, "the error of the end of the stack")
            check(client("look", 2) == [OVER] * 2, "the end of the stack, told")
            for peer in peers:
                peer.close()
        finally:
            end(client.process)


CASES = [the_same_cases_as_on_the_kernel, over_ipv6(the_same_cases_as_on_the_kernel), silence_and_the_end_of_the_stack]
