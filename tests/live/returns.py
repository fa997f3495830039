"""The stack ends under its programs, and returns. Meanwhile they sleep; afterwards they serve again without any
help."""

import os
import pathlib
import signal
import socket
import time

from adoption import ended
from crashes import ends_for_good, only_keeper
from harness import Scene, Stack, check, end, everywhere, in_url, loopback, processes_of_eft, sh, wait_until
from programs import children, nginx_config

ECHO = """
import asyncio, sys
class Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport): self.transport = transport
    def datagram_received(self, data, sender): self.transport.sendto(data, sender)
async def echo(reader, writer):
    while data := await reader.read(4096):
        writer.write(data)
    writer.close()
async def main():
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(Datagrams, local_addr=(sys.argv[2], int(sys.argv[1])))
    async with await asyncio.start_server(echo, sys.argv[2], int(sys.argv[1])) as server:
        await server.serve_forever()
asyncio.run(main())
"""

# Sleeps in a blocking call and not in poll, so no event loop notices anything on its behalf.
BLOCKING = """
import socket, sys
s = socket.create_server((sys.argv[2], int(sys.argv[1])), family=socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
while True:
    c, _ = s.accept()
    try:
        while data := c.recv(4096): c.sendall(data)
    except OSError: pass
    c.close()
"""

NODE = "require('net').createServer(c => { c.on('error', () => {}); c.pipe(c) }).listen(+process.argv[1], process.argv[2])"

JAVA = """
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.*;

public class Echo {
    public static void main(String[] arguments) throws IOException {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(arguments[1], Integer.parseInt(arguments[0])));
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        ByteBuffer bytes = ByteBuffer.allocate(4096);
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                try {
                    if (key.isAcceptable()) {
                        SocketChannel accepted = listener.accept();
                        if (accepted == null) continue;
                        accepted.configureBlocking(false);
                        accepted.register(selector, SelectionKey.OP_READ);
                    } else {
                        SocketChannel channel = (SocketChannel) key.channel();
                        bytes.clear();
                        if (channel.read(bytes) < 0) channel.close();
                        bytes.flip();
                        while (bytes.hasRemaining() && channel.isOpen()) channel.write(bytes);
                    }
                } catch (IOException e) {
                    // An accept that fails is tried again, as servers do.
                    if (key.channel() != listener) key.channel().close();
                }
            }
            selector.selectedKeys().clear();
        }
    }
}
"""

# The most that a program may log about the end of its stack. A program that gets the same error again and again logs
# megabytes.
LOG_MAX = 100_000

# A connected datagram socket outlives the stack, too; while there is no stack, sending reports that there is no route.
CLIENT = """
import errno, socket, sys, time
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
s.settimeout(0.2)
seen = set()
while True:
    try:
        s.send(b"x")
        s.recv(10)
        seen.add("answer")
    except OSError as e:
        seen.add(errno.errorcode.get(e.errno, "timeout"))
    open(sys.argv[3], "w").write(" ".join(sorted(seen)))
    time.sleep(0.05)
"""


# For five times that its servers go on without a supervisor.
KEEP = ("--keep", "1")


# Never answers.
# Hears and says nothing at port 7001, and sends for ever at 7002.
SILENT = """
import socket, sys, threading
def listener(port):
    return socket.create_server((sys.argv[1], port), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
def send(listener):
    c, _ = listener.accept()
    try:
        while True: c.sendall(bytes(1 << 20))
    except OSError: pass
s = listener(7001)
threading.Thread(target=send, args=(listener(7002),), daemon=True).start()
print("listening", flush=True)
all = []
while True:
    c, _ = s.accept()
    all.append(c)
    c.recv(100)
    print("heard", flush=True)
"""

# Says when it has taken some, and how it ended.
TAKING = """
import socket, sys
c = socket.create_connection((sys.argv[1], 7002))
taken = 0
try:
    while piece := c.recv(1 << 18):
        if taken < 1 << 24 <= taken + len(piece): print("takes", flush=True)
        taken += len(piece)
    print("was closed", flush=True)
except ConnectionResetError:
    print("was reset", flush=True)
"""


def everybody(pid):
    return [pid] + [p for child in children(pid) for p in everybody(child)]


def cpu_seconds(pids):
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(f[11]) + int(f[12]) for f in fields) / ticks


def custodians(stack):
    return processes_of_eft(f"custodian --stack {stack.name} ")


def echoes(address, port):
    """A connection that has been answered, or None."""
    try:
        s = socket.create_connection((address, port), 1)
        s.sendall(b"hello")
        check(s.recv(5) == b"hello", "the echo is another")
        return s
    except OSError:
        return None


def echoes_datagrams(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        try:
            s.sendto(b"hello", (address, port))
            return s.recv(5) == b"hello"
        except OSError:
            return False


def pings(address, port):
    return sh("redis-cli", "-h", address, "-p", port, "ping", ok=False).stdout.strip() == "PONG"


def fetches(address, port, path):
    return sh("curl", "-sf", "-m", "2", "-o", "/dev/null", f"http://{in_url(address)}:{port}{path}", ok=False).returncode == 0


def programs(scene, stack):
    """Name, process, and whether it serves at an address."""
    scene.file("www/small", 1000)
    config = nginx_config(scene, everywhere(), 2)
    www = scene.dir / "www"
    python = ("python3", "-c")
    (scene.dir / "Echo.java").write_text(JAVA)
    sh("javac", "-d", scene.dir, scene.dir / "Echo.java", timeout=120)
    # Without compiler and collector threads, which would work on their own account while the program sleeps.
    java = ("java", "-Xint", "-XX:+UseSerialGC", "-cp", scene.dir, "Echo", "7006", everywhere())
    found = [
        ("nginx", ("nginx", "-c", config), lambda a: fetches(a, 8080, "/hello")),
        ("redis", ("redis-server", "--port", "7001", "--bind", everywhere(), "--save", "", "--protected-mode", "no"), lambda a: pings(a, "7001")),
        ("asyncio", (*python, ECHO, "7002", everywhere()), lambda a: echoes(a, 7002) and echoes_datagrams(a, 7002)),
        ("http.server", ("python3", "-m", "http.server", "7003", "--bind", everywhere(), "--directory", www), lambda a: fetches(a, 7003, "/small")),
        ("blocking", (*python, BLOCKING, "7004", everywhere()), lambda a: echoes(a, 7004)),
        ("node", ("node", "-e", NODE, "7005", everywhere()), lambda a: echoes(a, 7005)),
        ("java", java, lambda a: echoes(a, 7006)),
    ]
    return [(name, scene.start(*stack.on(*command), log=f"{name}.log"), serves) for name, command, serves in found]


def logged(scene, running):
    """Bytes in each program's log."""
    sizes = {name: process.log.stat().st_size for name, process, _ in running}
    return sizes | {"nginx": sizes["nginx"] + (scene.dir / "error.log").stat().st_size}


def ends_and_returns(scene, how):
    stack = Stack(scene, extra=KEEP)
    running = programs(scene, stack)
    for name, process, serves in running:
        wait_until(lambda: serves(stack.address), 30, f"{name} to serve")
    seen = scene.dir / "seen"
    client = scene.start(*stack.on("python3", "-c", CLIENT, stack.host, "9", seen))
    wait_until(seen.exists, 10, "the client to begin")
    # Some programs have an idle connection, some have one in use.
    idle = [echoes(stack.address, port) for port in (7002, 7004, 7005, 7006)]
    check(all(idle), "not everybody answers")
    for again in (False, True):
        if again:
            # A successor of sockets knows the custodians, too.
            stack.kill("sockets")
        said = logged(scene, running)
        ends_for_good(stack, how)
        time.sleep(0.5)
        spent = {name: cpu_seconds(everybody(process.pid)) for name, process, _ in running}
        began = time.monotonic()
        time.sleep(3)
        passed = time.monotonic() - began
        for name, process, serves in running:
            check(process.poll() is None, f"{name} ended with the stack: {process.log.read_text()[-500:]}")
            ratio = (cpu_seconds(everybody(process.pid)) - spent[name]) / passed
            check(ratio < 0.1, f"{name} burns {ratio:.2f} CPUs without a stack")
            print(f"        {name}: {ratio:.3f} CPUs without a stack", flush=True)
            check(serves(loopback()), f"{name} no longer serves the kernel's loopback")
        for name, size in logged(scene, running).items():
            check(size - said[name] < LOG_MAX, f"{name} logged {size - said[name]} bytes without a stack")
        wait_until(lambda: "ENETUNREACH" in seen.read_text(), 5, "the client to be told that there is no way")
        stack = Stack(scene, extra=KEEP)
        for name, process, serves in running:
            wait_until(lambda: serves(stack.address), 10, f"{name} to serve again")
    heard = socket.socket(socket.AF_INET6 if ":" in stack.host else socket.AF_INET, socket.SOCK_DGRAM)
    heard.bind((stack.host, 9))
    data, sender = heard.recvfrom(10)
    heard.sendto(data, sender)
    wait_until(lambda: "answer" in seen.read_text(), 5, "the client's socket to be connected again")
    check(len(custodians(stack)) == len(running) + 1, f"custodians: {custodians(stack)}")
    for name, process, _ in running:
        end(process)
    end(client)
    wait_until(lambda: not custodians(stack), 5, "the custodians to end with their programs")
    for s in idle:
        s.close()


def programs_outlive_a_stack_that_is_told_to_end():
    with Scene("returns-term") as scene:
        ends_and_returns(scene, signal.SIGTERM)


def programs_outlive_a_stack_that_is_killed():
    with Scene("returns-kill") as scene:
        ends_and_returns(scene, signal.SIGKILL)


def programs_sleep_when_all_of_eft_is_killed():
    with Scene("returns-never") as scene:
        stack = Stack(scene, extra=KEEP)
        running = programs(scene, stack)
        for name, process, serves in running:
            wait_until(lambda: serves(stack.address), 30, f"{name} to serve")
        for line in custodians(stack):
            os.kill(int(line.split()[0]), signal.SIGKILL)
        for name, _, serves in running:
            check(serves(stack.address), f"{name} does not serve without its custodian")
        ends_for_good(stack, signal.SIGKILL)
        time.sleep(1)
        spent = {name: cpu_seconds(everybody(process.pid)) for name, process, _ in running}
        began = time.monotonic()
        time.sleep(3)
        passed = time.monotonic() - began
        for name, process, _ in running:
            check(process.poll() is None, f"{name} ended: {process.log.read_text()[-500:]}")
            ratio = (cpu_seconds(everybody(process.pid)) - spent[name]) / passed
            print(f"        {name}: {ratio:.3f} CPUs without stack and custodian", flush=True)
            check(ratio < 0.1, f"{name} burns {ratio:.2f} CPUs without stack and custodian")


class Peers:
    """Connections to a program on a stack that never answers them, and one to which it sends as fast as it can."""

    def __init__(self, scene, stack, bulk=False):
        server = scene.start(*stack.on("python3", "-c", SILENT, stack.address), log="silent.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server to listen")
        self.all = [socket.create_connection((stack.address, 7001)) for _ in range(20)]
        for peer in self.all:
            peer.sendall(b"are you there?")
        wait_until(lambda: server.log.read_text().count("heard") == len(self.all), 10, "the server to hear everybody")
        self.bulk = scene.start("python3", "-c", TAKING, stack.address, log="taking.log") if bulk else None
        if bulk:
            wait_until(lambda: "takes" in self.bulk.log.read_text(), 10, "data to flow")

    def are_told(self, what):
        for peer in self.all:
            peer.settimeout(5)
            try:
                check(False, f"{peer.recv(1)} from a stack that was {what}")
            except ConnectionResetError:
                peer.close()
            except TimeoutError:
                check(False, f"nobody told the peers of a stack that was {what}")
        if self.bulk:
            wait_until(lambda: self.bulk.poll() is not None, 5, f"who takes data to be told that its stack was {what}")
            check("was reset" in self.bulk.log.read_text(), self.bulk.log.read_text())


def peers_hear_that_their_stack_has_ended():
    """They wait for bytes, and would for ever: nobody answers at the address of a stack that has ended."""
    for how, what in ((signal.SIGTERM, "told to end"), (signal.SIGKILL, "killed, and nobody came")):
        with Scene("returns-peers") as scene:
            stack = Stack(scene, extra=KEEP)
            peers = Peers(scene, stack)
            ends_for_good(stack, how)
            peers.are_told(what)


def peers_hear_of_a_stack_whose_supervisor_and_keeper_were_killed():
    """Nobody can ever adopt its servers then. A server at work looks at no control socket, one that sleeps does so late."""
    for turn in range(8):
        with Scene("returns-orphans") as scene:
            stack = Stack(scene, extra=("--keep", "20"))
            peers = Peers(scene, stack, bulk=turn % 2 == 1)
            servers = {name: c["pid"] for name, c in stack.components().items() if c["pid"]}
            time.sleep(0.3)
            victims = [stack.process.pid, only_keeper(stack)]
            for victim in victims if turn % 4 < 2 else victims[::-1]:
                os.kill(victim, signal.SIGKILL)
            began = time.monotonic()
            stack.process.wait()
            peers.are_told("killed with its keeper")
            told = time.monotonic() - began
            wait_until(lambda: all(ended(pid) for pid in servers.values()), 10, f"the servers to end: {servers}")
            print(f"        told within {1000 * told:.0f} ms, all ended within {1000 * (time.monotonic() - began):.0f} ms", flush=True)
            check(not sh("ip", "link", "show", "dev", stack.device, ok=False).stdout, "its device is left")


CASES = [
    peers_hear_that_their_stack_has_ended,
    peers_hear_of_a_stack_whose_supervisor_and_keeper_were_killed,
    programs_outlive_a_stack_that_is_told_to_end,
    programs_outlive_a_stack_that_is_killed,
    programs_sleep_when_all_of_eft_is_killed,
]
