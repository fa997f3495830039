"""The supervisor is killed alone: the servers run on, and the next `eft up` adopts them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import inside
from crashes import keepers, only_keeper
from harness import EFT, Scene, Stack, check, children_of, end, sh, wait_until
from loads import Load, Stream
from watchdog import Connections, make_endless

KEEP = ("--keep", "20")
# A system call of x86_64.
CLOSE = 3


def supervisor_is_killed(stack):
    os.kill(stack.process.pid, signal.SIGKILL)
    stack.process.wait()


def pids(stack):
    return {name: c["pid"] for name, c in stack.components().items()}


def the_next_supervisor_adopts_the_servers():
    with Scene("adoption") as scene:
        load = Load(scene, connections=50, extra=KEEP)
        stack, connections = load.stack, load.connections
        time.sleep(0.5)
        before = pids(stack)
        time.sleep(0.2)
        supervisor_is_killed(stack)
        # Nobody watches, and connections go on.
        connections.use()
        stack.up(*KEEP, log="-2")
        check(pids(stack) == before, f"{before} became {pids(stack)}: {stack.process.log.read_text()}")
        connections.use()
        # One dies while nobody watches.
        time.sleep(0.2)
        supervisor_is_killed(stack)
        os.kill(before["tcp"], signal.SIGKILL)
        stack.up(*KEEP, log="-3")
        wait_until(lambda: pids(stack)["tcp"] not in (None, before["tcp"]), 10, "another tcp")
        connections.use()
        after = pids(stack)
        check(all(after[name] == before[name] for name in before if name != "tcp"), f"{before} became {after}")
        # Recovery works under the supervisor that adopted them.
        for component in after:
            stack.kill(component)
            connections.use()
        load.download.finish()
        Connections(stack, 10).use()
        end(stack.process)
        check(not keepers(stack), "a keeper outlives a stack that ended on purpose")


def is_adopted(load, before, options):
    """Another supervisor begins: it has the same servers, and no connection is lost."""
    stack = load.stack
    stack.up(*options, log="-2")
    check(pids(stack) == before, f"{before} became {pids(stack)}: {stack.process.log.read_text()}")
    load.connections.use()
    load.download.finish()
    end(stack.process)


def the_next_goes_on(load, before):
    """The supervisor has ended by itself: the next one has the same servers, and no connection is lost."""
    stack, connections = load.stack, load.connections
    check(stack.process.wait(30) == 1, "it is no failure")
    connections.use()
    is_adopted(load, before, KEEP)


def a_supervisor_that_cannot_go_on_leaves_its_servers_to_the_next():
    check(inside.AVAILABLE, "this test knows the registers and calls of x86_64 alone")
    with Scene("adoption-failed") as scene:
        load = Load(scene, connections=20, extra=KEEP)
        stack, before = load.stack, pids(load.stack)
        time.sleep(0.2)
        supervisor = stack.process.pid
        with inside.Inside(supervisor) as it:
            sets = [fd for fd in os.listdir(f"/proc/{supervisor}/fd") if "[eventpoll]" in os.readlink(f"/proc/{supervisor}/fd/{fd}")]
            check(sets and all(it.call(CLOSE, int(fd)) == 0 for fd in sets), f"{sets} are not closed")
        the_next_goes_on(load, before)


def a_supervisor_whose_code_has_changed_ends_and_the_next_adopts():
    with Scene("adoption-code") as scene:
        load = Load(scene, connections=20, extra=KEEP)
        stack, before = load.stack, pids(load.stack)
        # Every piece of its code has been summed once by then.
        time.sleep(6)
        supervisor = stack.process.pid
        with open(f"/proc/{supervisor}/maps") as maps:
            start = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/eft") and " 00000000 " in line)
        # The padding of the ELF header: memory that is never written, and that nothing reads.
        with open(f"/proc/{supervisor}/mem", "r+b", buffering=0) as memory:
            memory.seek(start + 15)
            memory.write(b"\1")
        # It looks after something has happened.
        stack.eft("ps")
        ended = stack.process
        the_next_goes_on(load, before)
        check("code has changed in memory" in ended.log.read_text(), ended.log.read_text())


def servers_that_nobody_adopts_end():
    with Scene("adoption-never") as scene:
        stack = Stack(scene, extra=("--keep", "1"))
        servers = [pid for pid in pids(stack).values() if pid]
        time.sleep(0.2)
        supervisor_is_killed(stack)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in servers), 30, "the servers to end")
        wait_until(lambda: not keepers(stack), 10, "the keeper to end")


def one_that_comes_late_adopts_the_servers_too():
    with Scene("adoption-late") as scene:
        patience = 3
        keep = ("--keep", str(patience))
        load = Load(scene, connections=20, extra=keep)
        stack, connections = load.stack, load.connections
        before = pids(stack)
        time.sleep(0.2)
        supervisor_is_killed(stack)
        time.sleep(2 * patience)
        connections.use()
        is_adopted(load, before, keep)


def a_server_that_hangs_ends_when_neither_supervisor_nor_keeper_lives():
    with Scene("adoption-alone") as scene:
        stack = Stack(scene, extra=KEEP)
        servers = pids(stack)
        time.sleep(0.2)
        supervisor_is_killed(stack)
        make_endless(servers["tcp"])
        os.kill(only_keeper(stack), signal.SIGKILL)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in servers.values() if pid), 30, "the servers to end")


def servers_with_other_options_start_again():
    with Scene("adoption-other") as scene:
        stack = Stack(scene, extra=KEEP)
        before = pids(stack)
        time.sleep(0.2)
        supervisor_is_killed(stack)
        stack.up(*KEEP, "--ecn", "off", log="-2")
        check("are not adopted" in stack.process.log.read_text(), stack.process.log.read_text())
        check(not set(before.values()) & set(pids(stack).values()), "a server of other options runs on")
        end(stack.process)


def ended(pid):
    """Whether a process has ended; the one that started it may not have looked yet."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def at_once(condition, what):
    """Waits without sleeping, so that what follows comes within a fraction of a millisecond."""
    limit = time.monotonic() + 20
    while not condition():
        check(time.monotonic() < limit, f"waited in vain: {what}")


class Deaths:
    """Deaths of the supervisor under load, each at a chosen moment."""

    def __init__(self, scene):
        self.load = Load(scene, size=64 << 20, extra=KEEP)
        self.stack = self.load.stack
        self.stream = Stream(scene, self.stack)
        self.count = 0

    def dies(self, moment, name):
        """The supervisor is killed when `moment` returns, and another one started. How long the stream stood still."""
        def happens():
            moment()
            began = time.monotonic()
            supervisor_is_killed(self.stack)
            self.count += 1
            self.stack.up(*KEEP, log=f"-{name}-{self.count}".replace(" ", "-"))
            return time.monotonic() - began
        took = []
        gap, usual = self.stream.largest_gap_of(lambda: took.append(happens()))
        said = self.stack.process.log.read_text()
        check("are not adopted" not in said, said)
        how = "the servers are adopted"
        print(f"        {name}: largest gap {gap:.0f} ms (before: {usual:.0f}), ready after {1000 * took[0]:.0f} ms, {how}", flush=True)
        wait_until(lambda: all(c["state"] == "running" for c in self.stack.components().values()), 20, "all to run")
        self.load.lives()

    def finish(self):
        self.load.finish()
        self.stream.finish()
        # Recovery works as before.
        self.stack.kill("tcp")
        Connections(self.stack, 10).use()


def supervisor_dies_while_tcp_is_restarted():
    with Scene("adoption-restart") as scene:
        deaths = Deaths(scene)
        stack = deaths.stack

        def tcp_is_dead():
            tcp = stack.components()["tcp"]["pid"]
            os.kill(tcp, signal.SIGKILL)
            at_once(lambda: ended(tcp), "tcp to end")

        def tcp_is_being_started():
            before = set(children_of(stack.process.pid))
            os.kill(stack.components()["tcp"]["pid"], signal.SIGKILL)
            at_once(lambda: set(children_of(stack.process.pid)) - before, "a successor of tcp")

        def tcp_is_at_work_again():
            stack.kill("tcp")
        for _ in range(3):
            deaths.dies(tcp_is_dead, "tcp is dead")
            deaths.dies(tcp_is_being_started, "tcp is being started")
            deaths.dies(tcp_is_at_work_again, "tcp is at work again")
        deaths.finish()


def dies_at(stack, step, change):
    """The supervisor is killed before its nth message of a change. False: there were not so many."""
    supervisor = stack.process
    tracer = stack.scene.start("strace", "-qq", "-o", "/dev/null", "-e", "trace=sendmsg",
                               "-e", f"inject=sendmsg:signal=KILL:when={step}", "-p", str(supervisor.pid), log="strace.log")
    status = f"/proc/{supervisor.pid}/status"
    wait_until(lambda: "TracerPid:\t0" not in open(status).read(), 20, f"strace: {tracer.log.read_text()}")
    change()
    try:
        supervisor.wait(2)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        end(tracer)


def no_step_of_a_restart_is_one_at_which_other_servers_end_with_the_supervisor():
    with Scene("adoption-steps") as scene:
        load = Load(scene, connections=20, extra=KEEP)
        stack = load.stack
        died = []
        for turn, step in enumerate((1, 2, 4, 7, 11, 16, 22, 29, 40, 60, 90, 130)):
            component = ("tcp", "sockets", "ip")[turn % 3]
            wait_until(lambda: all(c["state"] == "running" for c in stack.components().values()), 20, "all to run")
            time.sleep(0.2)
            before = pids(stack)
            if dies_at(stack, step, lambda: os.kill(before[component], signal.SIGKILL)):
                died.append(step)
                stack.up(*KEEP, log=f"-{step}")
            wait_until(lambda: pids(stack)[component] not in (None, before[component]), 10, f"another {component}")
            after = pids(stack)
            check(all(after[name] == before[name] for name in before if name != component),
                  f"{component}, step {step}: {before} became {after}: {stack.process.log.read_text()}")
            load.lives()
        print(f"        died before its message number {died}", flush=True)
        check(len(died) > 6, f"it died at {died} alone")
        load.finish()


def supervisor_dies_in_an_update():
    with Scene("adoption-update") as scene:
        deaths = Deaths(scene)
        stack = deaths.stack
        program = scene.dir / "eft-next"
        shutil.copy(EFT, program)

        def updating(component):
            return subprocess.Popen([EFT, "update", "--name", stack.name, component, *(["--binary", str(program)])],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def newcomer_is_examining():
            before = set(children_of(stack.process.pid))
            commands.append(updating("tcp"))
            at_once(lambda: set(children_of(stack.process.pid)) - before, "the newcomer")

        def old_tcp_has_ended():
            tcp = stack.components()["tcp"]["pid"]
            commands.append(updating("tcp"))
            at_once(lambda: ended(tcp), "the old tcp to end")

        def newcomer_is_on_probation():
            before = stack.components()["tcp"]
            commands.append(updating("tcp"))
            wait_until(lambda: (c := stack.components()["tcp"])["generation"] > before["generation"]
                       and c["state"] == "running", 20, "the newcomer to serve")

        def several_are_updated():
            before = stack.components()
            commands.append(updating("--all"))
            wait_until(lambda: sum(c["generation"] > before[n]["generation"] for n, c in stack.components().items()) >= turn + 1,
                       20, "some to be replaced")
        commands = []
        for turn in range(3):
            deaths.dies(newcomer_is_examining, "the newcomer examines")
            deaths.dies(old_tcp_has_ended, "the old tcp has ended")
            deaths.dies(newcomer_is_on_probation, "the newcomer is on probation")
            deaths.dies(several_are_updated, f"update of all, {turn + 1} replaced")
        for command in commands:
            said, wrong = command.communicate(timeout=20)
            check(command.returncode == 1 and wrong.count("\n") == 1, f"an update that was cut off says: {said}{wrong}")
        # Nothing is left of them, and an update works.
        stack.eft("update", "--all", "--binary", program)
        deaths.finish()


class Manager:
    """A service manager's end of the protocol by which a supervisor reports (sd_notify(3))."""

    def __init__(self, path, watchdog):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.env = os.environ | {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(int(watchdog * 1e6))}

    def hears(self, word, seconds):
        """Whether the supervisor says this word within a time."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if self.socket.recv(256) == word:
                    return True
            except TimeoutError:
                break
        return False


def a_supervisor_that_hangs_is_noticed():
    with Scene("adoption-hang") as scene:
        manager = Manager(scene.dir / "notify", watchdog=1)
        stack = Stack(scene, extra=KEEP, env=manager.env)
        load = Load(scene, stack=stack)
        check(all(manager.hears(b"WATCHDOG=1", 1) for _ in range(3)), "no signs of life")
        before = pids(stack)
        make_endless(stack.process.pid)
        wait_until(lambda: not manager.hears(b"WATCHDOG=1", 1), 20, "the signs of life to end")
        load.lives()
        # An operator is told what to do.
        said = sh(EFT, "ps", "--name", stack.name, ok=False, timeout=60)
        check(said.returncode == 1 and f"its supervisor (process {stack.process.pid}) hangs" in said.stderr, said.stderr)
        # And another one replaces it.
        hung = stack.process
        stack.up(*KEEP, "--take-over", log="-2", patience=60)
        check(hung.wait(5) == -signal.SIGKILL, "the hung supervisor lives")
        check("hangs and is killed" in stack.process.log.read_text(), stack.process.log.read_text())
        check(pids(stack) == before, f"{before} became {pids(stack)}: {stack.process.log.read_text()}")
        load.finish()
        check(manager.hears(b"WATCHDOG=1", 5), "its successor gives no signs of life")


def faults_of_the_supervisor_end_nothing():
    with Scene("adoption-faults") as scene:
        load = Load(scene, extra=KEEP)
        stack = load.stack
        adopted = 0
        for turn, kind in enumerate(("kill", "segv", "abort", "null") * 3):
            before = pids(stack)
            said = json.loads(stack.eft("inject", "supervisor", kind, "--seed", str(turn), "--json").stdout)
            check(said["pid"] == stack.process.pid, f"{said}")
            stack.process.wait(10)
            load.lives()
            stack.up(*KEEP, log=f"-{turn}")
            load.lives()
            adopted += pids(stack) == before
        check(adopted == 12, f"{adopted} of 12 times the servers ran on under another supervisor")
        for kind in ("flip-arena", "delay"):
            refused = stack.eft("inject", "supervisor", kind, ok=False)
            check(refused.returncode == 1 and "possible are: kill, segv" in refused.stderr, refused.stderr)
        load.finish()


CASES = [
    the_next_supervisor_adopts_the_servers, a_supervisor_that_cannot_go_on_leaves_its_servers_to_the_next,
    a_supervisor_whose_code_has_changed_ends_and_the_next_adopts,
    servers_that_nobody_adopts_end, one_that_comes_late_adopts_the_servers_too,
    a_server_that_hangs_ends_when_neither_supervisor_nor_keeper_lives, servers_with_other_options_start_again,
    supervisor_dies_while_tcp_is_restarted, no_step_of_a_restart_is_one_at_which_other_servers_end_with_the_supervisor,
    supervisor_dies_in_an_update, a_supervisor_that_hangs_is_noticed,
    faults_of_the_supervisor_end_nothing,
]
