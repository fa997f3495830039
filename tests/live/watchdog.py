"""Servers that hang are replaced, and no others."""

import contextlib
import os
import pathlib
import platform
import resource
import signal
import socket
import subprocess
import threading
import time

from harness import TOPOLOGIES, Scene, Stack, check, end, sh, wait_until

# An instruction that jumps to itself.
ENDLESS = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}[platform.machine()]


def make_endless(pid):
    """Makes the sleeping process compute forever from where it continues."""
    def place():
        words = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()
        return int(words[-1], 16) if len(words) > 2 else None
    at = wait_until(place, 10, "the server to sleep")
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(at)
        memory.write(ENDLESS)


# How a handler returns: the number of rt_sigreturn(2), and the call.
RETURN = {"x86_64": b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", "aarch64": b"\x68\x11\x80\xd2\x01\x00\x00\xd4"}[platform.machine()]


def make_handlers_endless(pid):
    """Makes the process compute forever at the end of each handler of a signal, where that signal is still blocked."""
    places = 0
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in (words for words in map(str.split, maps) if "x" in words[1] and words[-1] != "[vsyscall]"):
            begin, end = (int(place, 16) for place in line[0].split("-"))
            memory.seek(begin)
            code = memory.read(end - begin)
            at = code.find(RETURN)
            while at >= 0:
                memory.seek(begin + at)
                memory.write(ENDLESS)
                places += 1
                at = code.find(RETURN, at + 1)
    check(places > 0, "no end of a handler was found")


def said_once(stack, component):
    lines = [line for line in stack.process.log.read_text().splitlines() if f"{component} hangs" in line]
    check(len(lines) == 1 and "killing it" in lines[0], f"what was said of it: {lines}")


def a_hung_server_is_replaced():
    with Scene("hang") as scene:
        stack = Stack(scene)
        before = stack.components()
        for component in ("ip", "tcp", "filter"):
            make_endless(before[component]["pid"])
            # Wakes all servers.
            subprocess.run(stack.beside("bash", "-c", f"exec 3<>/dev/tcp/{stack.address}/9"), capture_output=True, timeout=60)
            wait_until(lambda: (c := stack.components()[component])["generation"] > before[component]["generation"]
                       and c["state"] == "running", 30, f"{component} to be replaced")
            said_once(stack, component)
        check("0% packet loss" in sh("ping", "-c", "2", "-i", "0.2", "-W", "2", stack.address).stdout, "no answer afterwards")
        after = stack.components()
        check(all(after[c]["deaths"] == (c in ("ip", "tcp", "filter")) for c in after), f"others died: {after}")


def a_server_that_hangs_in_the_handler_of_its_ticks_is_replaced():
    with Scene("hang-tick") as scene:
        stack = Stack(scene)
        before = stack.components()
        # nic and sockets sleep on descriptors, the others on bells. Each says that it sleeps when the signal wakes it.
        broken = ("sockets", f"nic:{stack.device}", "tcp")
        for component in broken:
            make_handlers_endless(before[component]["pid"])
            os.kill(before[component]["pid"], signal.SIGPROF)
            wait_until(lambda: (c := stack.components()[component])["generation"] > before[component]["generation"]
                       and c["state"] == "running", 30, f"{component} to be replaced")
            said_once(stack, component)
        check("0% packet loss" in sh("ping", "-c", "2", "-i", "0.2", "-W", "2", stack.address).stdout, "no answer afterwards")
        after = stack.components()
        check(all(after[c]["deaths"] == (c in broken) for c in after), f"others died: {after}")


def a_hung_process_of_several_is_replaced():
    with Scene("hang-edge") as scene:
        stack = Stack(scene, topology=TOPOLOGIES / "edge.toml")
        before = stack.components()
        make_endless(before["ip"]["pid"])
        subprocess.run(stack.beside("bash", "-c", f"exec 3<>/dev/tcp/{stack.address}/9"), capture_output=True, timeout=60)
        nic = f"nic:{stack.device}"
        shared = ("ip", "filter", nic)
        wait_until(lambda: all((c := stack.components()[name])["generation"] > before[name]["generation"]
                               and c["state"] == "running" for name in shared), 30, "the process to be replaced")
        said_once(stack, ", ".join(shared))
        check("0% packet loss" in sh("ping", "-c", "2", "-i", "0.2", "-W", "2", stack.address).stdout, "no answer afterwards")
        after = stack.components()
        check(all(after[c]["deaths"] == (c in shared) for c in after), f"others died: {after}")


def a_server_in_a_debugger_is_left_alone():
    with Scene("debugged") as scene:
        stack = Stack(scene)
        before = stack.components()
        # It computes in a debugger, step by step, for much longer than a hang may last.
        steps = ["-ex", "set pagination off", "-ex", "handle SIGPROF nostop noprint", "-ex", "stepi 4000"]
        debugger = scene.start("gdb", "-p", str(before["tcp"]["pid"]), "-batch", *steps, log="gdb.log")
        # Without traffic it would sleep, and could not be stepped through.
        caller = scene.start(*stack.beside("bash", "-c", f"while :; do echo > /dev/tcp/{stack.address}/9; done"), log="calls.log")
        debugger.wait(120)
        end(caller)
        check(stack.components()["tcp"]["generation"] == before["tcp"]["generation"], "a debugged server was killed")


ECHO = """
import resource, select, socket
resource.setrlimit(resource.RLIMIT_NOFILE, 2 * (resource.getrlimit(resource.RLIMIT_NOFILE)[1],))
s = socket.create_server(("{address}", 7300), backlog=4096, family=socket.AF_INET6 if ":" in "{address}" else socket.AF_INET)
e = select.epoll(); e.register(s, select.EPOLLIN); all = {{}}
while True:
    for fd, _ in e.poll():
        if fd == s.fileno():
            c, _ = s.accept(); all[c.fileno()] = c; e.register(c, select.EPOLLIN)
        else:
            d = all[fd].recv(4096)
            if d: all[fd].sendall(d)
            else: e.unregister(fd); all.pop(fd).close()
"""


def listening_echo(scene, stack):
    """Starts the echo server on the stack, and waits until it listens."""
    server = scene.start(*stack.on("python3", "-c", ECHO.format(address=stack.address)), log="echo.log")
    stack.listening(7300)
    return server


class Connections:
    """Connections to the echo server, all of which are used in every round."""

    def __init__(self, stack, count):
        self.all = []
        for _ in range(count):
            s = socket.create_connection((stack.address, 7300), timeout=60)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.all.append(s)
        self.round = 0

    def use(self):
        self.round += 1
        word = b"%64d" % self.round
        for s in self.all:
            s.sendall(word)
        for s in self.all:
            got = b""
            while len(got) < len(word):
                piece = s.recv(len(word) - len(got))
                check(piece, "a connection was closed")
                got += piece
            check(got == word, "a connection says something else")


def stop_and_go(stack):
    """Sends SIGSTOP and SIGCONT, in the middle of whatever the servers do."""
    for component, state in stack.components().items():
        if state["pid"]:
            os.kill(state["pid"], signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(state["pid"], signal.SIGCONT)


@contextlib.contextmanager
def burners():
    """A real-time thread on every CPU leaves the others what the kernel reserves, 5%. Yields a function that tells
    whether one of them runs."""
    code = "import time\nend = time.monotonic() + 3\nprint(flush=True)\nwhile time.monotonic() < end: pass"
    burn = lambda cpu: subprocess.Popen(["taskset", "-c", str(cpu), "chrt", "-f", "10", "python3", "-c", code],
                                        stdout=subprocess.PIPE)
    all = [burn(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    try:
        check(all[0].stdout.readline() == b"\n", "nothing burns")
        yield lambda: any(p.poll() is None for p in all)
    finally:
        for p in all:
            p.wait(60)


@contextlib.contextmanager
def quota(pids):
    """The processes together get a twentieth of one CPU."""
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    old = v1.is_dir()
    group = (v1 if old else v2) / f"eft-live-{os.getpid()}"
    home = {pid: group_of(pid, old) for pid in pids}
    group.mkdir()
    try:
        if old:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("5000")
        else:
            (v2 / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text("5000 100000")
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield
        stolen = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        check(int(stolen["nr_throttled"]) > 0, f"the quota took nothing: {stolen}")
    finally:
        for pid, place in home.items():
            with contextlib.suppress(OSError):
                (place / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def group_of(pid, old):
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if old and "cpu" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/cpu" + path)
        if not old and number == "0":
            return pathlib.Path("/sys/fs/cgroup" + path)
    raise OSError("the process is in no cgroup")


def stolen_time_kills_nobody():
    with Scene("stolen") as scene:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8000, 8000))
        stack = Stack(scene)
        listening_echo(scene, stack)
        connections = Connections(stack, 3000)
        before = stack.components()
        pids = [c["pid"] for c in before.values() if c["pid"]]
        connections.use()
        stopping = threading.Thread(target=stop_and_go, args=[stack])
        stopping.start()
        while stopping.is_alive():
            connections.use()
        rounds = connections.round
        with burners() as burning:
            while burning():
                connections.use()
        check(connections.round > rounds, "nothing was asked while others had the CPUs")
        with quota(pids):
            connections.use()
        connections.use()
        after = stack.components()
        check(all(after[c]["generation"] == before[c]["generation"] for c in before),
              f"somebody was killed: {stack.process.log.read_text()[-2000:]}")
        check("hangs" not in stack.process.log.read_text(), "somebody was said to hang")


CASES = [a_hung_server_is_replaced, a_server_that_hangs_in_the_handler_of_its_ticks_is_replaced,
         a_hung_process_of_several_is_replaced, a_server_in_a_debugger_is_left_alone, stolen_time_kills_nobody]
