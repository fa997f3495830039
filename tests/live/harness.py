"""The foundation of the live tests: stacks, namespaces, programs, and the guarantee that everything is undone.

Every process that a test starts is ended by its id, and every device and namespace is removed, even if the test fails.
No test asserts a time; time-outs only end what hangs."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EFT = str(ROOT / "target/release/eft")
WORK = ROOT / "target/live-tests"
TOPOLOGIES = ROOT / "topologies"


class Failure(Exception):
    """A test's assertion failed."""


def check(condition, what):
    if not condition:
        raise Failure(what)


def end(process, patience=5):
    """Ends a process that we started, and its descendants: socat's child for a peer waits forever."""
    descendants = descendants_of(process.pid)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pid, started in descendants:
        kill_the_same(pid, started)


def kill_the_same(pid, started):
    """Kills the process with this number and start time. It may have ended by itself, and its number may be in use
    again."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if start_time(pid) == started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def descendants_of(pid):
    """The descendants' process ids with their start times, so that another process with the same number is not taken
    for one of them."""
    found = []
    for child in children_of(pid):
        found += [(child, start_time(child)), *descendants_of(child)]
    return found


def children_of(pid):
    """The children of a process. It, or a thread of it, may end during the search; then it has none."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(tasks):
            with contextlib.suppress(OSError):
                found += [int(child) for child in (tasks / task / "children").read_text().split()]
    return found


def start_time(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def wait_until(condition, seconds, what):
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise Failure(f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


def sh(*command, timeout=60, ok=True, env=None, stdin=None, user=None):
    """Runs a command to its end and returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, input=stdin, user=user)
    if ok and done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


class Scene:
    """A test's processes and files; everything is undone at the end."""

    def __init__(self, name):
        self.dir = WORK / name
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.stack_ = contextlib.ExitStack()
        self.kernel_ = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stack_.close()
        if error[0] is None:
            shutil.rmtree(self.dir, ignore_errors=True)
        return False

    def start(self, *command, log=None, env=None, **options):
        log = log or f"{pathlib.Path(command[0]).name}-{time.monotonic_ns()}.log"
        out = open(self.dir / log, "wb")
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, **options)
        process.log = self.dir / log
        self.stack_.callback(end, process)
        return process

    def kernel(self):
        """The kernel to compare the stack with; made on first use."""
        self.kernel_ = self.kernel_ or Kernel(self)
        return self.kernel_

    def undo(self, *command):
        self.stack_.callback(lambda: subprocess.run(command, capture_output=True))

    def file(self, name, size):
        """A file of random bytes and its checksum."""
        data = os.urandom(size)
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path, hashlib.sha256(data).hexdigest()


class Stack:
    """A stack on a TAP device, or on a veth pair whose other end lies in a namespace."""

    usual_kind = "tap"
    # The IP version that a case uses to reach the stack; the stack then has no address of the other.
    usual_version = 4

    def __init__(self, scene, name="lt", kind=None, net=77, topology=None, extra=(), program=EFT, env=None):
        self.scene, self.name, self.kind = scene, name, kind or Stack.usual_kind
        self.address, self.host, length = addresses(net)
        self.netns = None
        options = ["--name", name]
        if self.kind in ("tap", "plain-tap"):
            self.device = f"eft{name}"
            options += ["--device", f"{self.kind}:{self.device}", "--host-address", f"{self.host}/{length}"]
        else:
            self.device, self.netns = f"eftv{name}", f"eft-{name}"
            sh("ip", "netns", "add", self.netns)
            scene.undo("ip", "netns", "del", self.netns)
            sh("ip", "link", "add", self.device, "type", "veth", "peer", "name", "far", "netns", self.netns)
            scene.undo("ip", "link", "del", self.device)
            sh("ip", "link", "set", self.device, "up")
            add_address(self.netns, f"{self.host}/{length}", "far")
            for link in ("far", "lo"):
                sh("ip", "-n", self.netns, "link", "set", link, "up")
            wait_for_multicast(self.netns, "far")
            options += ["--device", f"packet:{self.device}"]
        options += ["--address", f"{self.address}/{length}"]
        if topology:
            options += ["--topology", str(topology)]
        self.options, self.program, self.env = options, program, env
        self.up(*extra)

    def up(self, *extra, log="", program=None, patience=10):
        """Starts the stack, or starts it again on the same device."""
        self.process = self.scene.start(program or self.program, "up", *self.options, *extra, log=f"up-{self.name}{log}.log",
                                        env=self.env)
        wait_until(lambda: self.process.log.read_text().startswith("ready") or "\nready" in self.process.log.read_text()
                   or self.process.poll() is not None, patience, "the stack to be ready")
        check(self.process.poll() is None, f"the stack ended: {self.process.log.read_text()}")

    def on(self, *command):
        """The command line that runs a program on the stack."""
        return [EFT, "run", "--name", self.name, "--", *map(str, command)]

    def beside(self, *command):
        """The command line that runs a program on the far side's kernel."""
        return (["ip", "netns", "exec", self.netns] if self.netns else []) + [str(c) for c in command]

    def eft(self, command, *arguments, **options):
        return sh(EFT, command, "--name", self.name, *arguments, **options)

    def components(self):
        return {c["component"]: c for c in json.loads(self.eft("ps", "--json").stdout)["components"]}

    def counters(self):
        return json.loads(self.eft("stat", "--json").stdout)

    def counter(self, component, name):
        return sum(c[name] for n, c in self.counters().items() if n == component or n.startswith(component + ":"))

    def kill(self, component):
        """Sends SIGKILL and waits for the successor."""
        before = self.components()[component]
        os.kill(before["pid"], signal.SIGKILL)
        wait_until(lambda: (c := self.components()[component])["generation"] > before["generation"]
                   and c["state"] == "running", 10, f"{component} to come back")

    def listening(self, port, seconds=10):
        wait_for_listener(self, port, seconds)

    def listening_beside(self, port, seconds=10):
        """Waits until a server on the Linux side listens."""
        wait_for_listener(self, port, seconds, self.host)

    def bound(self, port, seconds=10):
        """Waits until a datagram socket on the stack is bound."""
        there = lambda: any(s["proto"] == "udp" and s["local"].endswith(f":{port}")
                            for s in json.loads(self.eft("ss", "--json").stdout)["sockets"])
        wait_until(there, seconds, f"a datagram socket at port {port}")


def addresses(net):
    """The stack's address, its host's, and the length of their network's prefix."""
    if Stack.usual_version == 6:
        return f"fd{net}:3::2", f"fd{net}:3::1", 64
    return f"10.{net}.3.2", f"10.{net}.3.1", 24


def add_address(namespace, address, link):
    # Without this, duplicate address detection of an IPv6 address would take a second.
    sh("ip", "-n", namespace, "addr", "add", address, "dev", link, *(["nodad"] if ":" in address else []))


def wait_for_multicast(namespace, link):
    """The kernel gives a link its route to IPv6 groups when it has noticed that the link is up, up to a second later."""
    route = lambda: sh("ip", "-6", "-n", namespace, "route", "show", "table", "all", "ff00::/8", "dev", link).stdout
    wait_until(route, 10, f"{namespace}'s route to groups")


def family(address):
    """The address family in the text of a Python program."""
    return "socket.AF_INET6" if ":" in address else "socket.AF_INET"


def everywhere():
    """The address of all interfaces."""
    return "::" if Stack.usual_version == 6 else "0.0.0.0"


def loopback():
    return "::1" if Stack.usual_version == 6 else "127.0.0.1"


def in_url(address):
    """An address as it stands before a port in a URL."""
    return f"[{address}]" if ":" in address else address


class Kernel:
    """What a stack is compared with: the kernel at both ends of a veth pair between two namespaces. Programs run on it
    as they run on a `Stack`."""

    def __init__(self, scene, name="ltk", net=78):
        self.address, self.host, length = addresses(net)
        self.netns, far = f"eft-{name}", f"eft-{name}-far"
        for namespace in (self.netns, far):
            sh("ip", "netns", "add", namespace)
            scene.undo("ip", "netns", "del", namespace)
        sh("ip", "-n", self.netns, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", far)
        for namespace, link, address in ((self.netns, "near", self.address), (far, "far", self.host)):
            add_address(namespace, f"{address}/{length}", link)
            sh("ip", "-n", namespace, "link", "set", link, "up")
            sh("ip", "-n", namespace, "link", "set", "lo", "up")
        for namespace, link in ((self.netns, "near"), (far, "far")):
            wait_for_multicast(namespace, link)
        self.far = far

    def on(self, *command):
        return ["ip", "netns", "exec", self.netns, *map(str, command)]

    def beside(self, *command):
        return ["ip", "netns", "exec", self.far, *map(str, command)]

    def listening(self, port, seconds=10):
        wait_for_listener(self, port, seconds)


def wait_for_listener(side, port, seconds, address=None):
    address = address or side.address
    def try_connect():
        return subprocess.run(side.beside("bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"),
                              capture_output=True).returncode == 0
    wait_until(try_connect, seconds, f"something to listen on {address}:{port}")


def sha256_of(command, timeout=120):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    digest = hashlib.sha256()
    try:
        while chunk := process.stdout.read(1 << 20):
            digest.update(chunk)
        process.wait(timeout)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    check(process.returncode == 0, f"{' '.join(command)}: status {process.returncode}: {process.stderr.read()[-500:]!r}")
    return digest.hexdigest()


def leftovers():
    """What a test must not leave behind."""
    left = []
    links = sh("ip", "-o", "link").stdout
    left += [f"device {d}" for d in re.findall(r"\d+: (eftv?lt[^:@]*)", links)]
    left += [f"namespace {n.split()[0]}" for n in sh("ip", "netns").stdout.splitlines() if n.startswith("eft-lt")]
    left += [f"process {line}" for line in processes_of_eft(r"((serve|up|custodian) .*(--stack|--name) lt|proxy --link)")]
    return left


def processes_of_eft(arguments):
    """The numbers and command lines of the processes with these arguments."""
    return [line for line in sh("ps", "-eo", "pid,args").stdout.splitlines()
            if re.search("eft " + arguments, line) and in_our_network(line.split()[0])]


def in_our_network(pid):
    """Whether a process is in this network namespace: tests of another checkout run in another one and do not count."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


@contextlib.contextmanager
def alone(name):
    """Runs in one checkout use the same files, so they wait for each other."""
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / name, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run of the live tests in this checkout", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_all(cases, wanted, lock="lock"):
    """Runs the cases whose names contain an argument (without arguments: all), and prints a line for each and a
    summary."""
    strange = [w for w in wanted if not any(w in case.__name__ for case in cases)]
    if strange:
        print(f"no such case: {' '.join(strange)}; there are {' '.join(c.__name__ for c in cases)}", file=sys.stderr)
        return 2
    with alone(lock):
        return run_each(cases, wanted)


def run_each(cases, wanted):
    passed = failed = 0
    print(f"load: {share():.0%} of what two CPUs of our own would get, {seconds()} s a program", flush=True)
    for case in cases:
        if wanted and not any(w in case.__name__ for w in wanted):
            continue
        start = time.monotonic()
        try:
            case()
            # A custodian notices the end of its programs a moment later.
            limit = time.monotonic() + 5
            while (left := leftovers()) and time.monotonic() < limit:
                time.sleep(0.05)
            check(not left, f"left behind: {left}")
            passed += 1
            print(f"ok      {case.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as error:  # A fault of the test itself fails this case, and not those after it.
            failed += 1
            print(f"FAILED  {case.__name__} ({time.monotonic() - start:.1f} s): {type(error).__name__}: {error}", flush=True)
    print(f"live: {passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def seconds(default=6):
    """How long each program is under load: 6 in the test, 60 by hand (EFT_LIVE_SECONDS=60)."""
    return min(int(os.environ.get("EFT_LIVE_SECONDS", default)), limit_of_seconds)


@functools.cache
def share():
    """The part of two CPUs that this machine gives us, from 0.1 to 1: other work and a hypervisor take the rest."""
    spin = "import time; end = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    spinners = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    got = sum(float(spinner.communicate()[0]) for spinner in spinners) / (2 * 0.5)
    return min(1.0, max(0.1, got))


def scaled(amount):
    """An amount of work for a machine that is ours alone, scaled to what this one gives."""
    return max(1, int(amount * share()))


limit_of_seconds = 1 << 30


def over_veth(case):
    """The case on an existing interface, a veth pair whose other end lies in a namespace: shorter, since only the device is
    another."""
    def run():
        global limit_of_seconds
        Stack.usual_kind, limit_of_seconds = "veth", 4
        try:
            case()
        finally:
            Stack.usual_kind, limit_of_seconds = "tap", 1 << 30
    run.__name__ = f"{case.__name__}_over_veth"
    return run


def of_one_version(reason):
    """Marks a case that IPv6 would not change, and says why."""
    def mark(case):
        case.of_one_version = reason
        return case
    return mark


def over_ipv6(case):
    """The case on a stack with IPv6 addresses alone: shorter, since only the packets are others."""
    def run():
        global limit_of_seconds
        Stack.usual_version, limit_of_seconds = 6, 4
        try:
            case()
        finally:
            Stack.usual_version, limit_of_seconds = 4, 1 << 30
    run.__name__ = f"{case.__name__}_over_ipv6"
    return run


if __name__ == "__main__":
    sys.exit("run ./test, or tests/live/run.py [CASE…]")
