"""`eft vm` with real guests: QEMU with software emulation, and plain processes.

Only a test's own guests are managed, by name. No CPU's state is changed; at the end all affinities are as before."""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time

from harness import EFT, ROOT, Scene, check, sh, wait_until

QEMU = "qemu-system-x86_64"
SPIN = "while True: pass"
ALL = os.sched_getaffinity(0)
NOBODY = 65534


def with_qemu(case):
    """Skips a case without QEMU, which boots the guests."""
    @functools.wraps(case)
    def run():
        if shutil.which(QEMU):
            case()
        else:
            print(f"        (no {QEMU} here)")
    return run


SPINS = b"\xeb\xfe"


def boot_sector(path, code):
    path.write_bytes(code.ljust(510, b"\0") + b"\x55\xaa")
    return path


# Replaces a guest's ACPI driver: ejects each of the CPUs 1 to 3 that QEMU wants back, through the ports of QEMU's
# docs/specs/acpi_cpu_hotplug.
EJECTS = bytes.fromhex(
    "31c0 ba00af ee"  # the newer interface: write 0 to the selector
    "e6e9"  # say on the debug port that it is there
    "66b901000000"  # again: mov ecx, 1
    "ba00af 6689c8 66ef"  # next: select CPU ecx
    "ba04af ec a804 7403"  # is its removal wanted?
    "b008 ee"  # eject it
    "41 83f904 72e7"  # inc cx; cmp cx, 4; jb next
    "ebdf")  # jmp again


def qemu(scene, name, *options, code=SPINS):
    disk = boot_sector(scene.dir / f"{name.split(',')[0]}.img", code)
    return scene.start(QEMU, "-accel", "tcg,thread=multi", "-m", "16", "-display", "none", "-serial", "none", "-monitor", "none",
                       "-nic", "none", "-drive", f"file={disk},format=raw,if=floppy", "-boot", "a", "-name", name, *options)


class Monitor:
    """QEMU's second control socket, for the test; the first is for eft."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        # The path exists before QEMU listens on it.
        wait_until(lambda: self.socket.connect_ex(str(path)) == 0, 20, f"QEMU to listen on {path}")
        self.lines = self.socket.makefile("rw")
        self.lines.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self.lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.lines.flush()
        while line := json.loads(self.lines.readline()):
            check("error" not in line, f"{command}: {line}")
            if "return" in line:
                return line["return"]

    def vcpus(self):
        return sorted(cpu["thread-id"] for cpu in self("query-cpus-fast"))


def sockets(scene, name):
    both = [scene.dir / f"{name}.{i}" for i in range(2)]
    return both, [word for path in both for word in ("-qmp", f"unix:{path},server=on,wait=off")]


def watch(*options, **more):
    out = sh(EFT, "vm", "watch", "--json", *map(str, options), **more)
    seen = json.loads(out.stdout)
    return {guest["name"]: guest for guest in seen["guests"]}, seen["notes"]


def vcpus_of(guest):
    return sorted(thread["tid"] for thread in guest["threads"] if "vcpu" in thread["role"])


class Run:
    """A running `eft vm run`, and what it publishes."""

    def __init__(self, scene, *options, name="run", **more):
        self.dir = scene.dir / name
        self.dir.mkdir(exist_ok=True)
        self.process = scene.start(EFT, "vm", "run", "--state-dir", self.dir, *map(str, options), log=f"{name}.log", **more)
        wait_until(lambda: "ready" in self.log() or self.process.poll() is not None, 20, "eft vm run to be ready")

    def log(self):
        return self.process.log.read_text()

    def says(self, text, seconds=30):
        wait_until(lambda: text in self.log(), seconds, f"eft vm run to say '{text}'; it said {self.log()}")

    def top(self):
        out = sh(EFT, "vm", "top", "--json", "--state-dir", self.dir, ok=False)
        return json.loads(out.stdout)["vcpus"] if out.returncode == 0 else []

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        return self.log()


def spinner(scene):
    return scene.start(sys.executable, "-c", SPIN)


def managed_cpus():
    """Two CPUs for eft and one that it leaves alone; on a machine with two CPUs, one and one."""
    check(len(ALL) >= 2, "this needs two CPUs")
    first, second, *others = sorted(ALL)
    return ({first, second}, others[0]) if others else ({first}, second)


@with_qemu
def guests_are_found_by_qmp_and_by_thread_names():
    with Scene("guests-found") as scene:
        both, by_qmp = sockets(scene, "lt-qmp")
        qemu(scene, "lt-qmp", "-smp", "2", *by_qmp)
        named = qemu(scene, "lt-named,debug-threads=on", "-smp", "2")
        nameless = qemu(scene, "lt-nameless")
        ours = ["--guest", "lt-qmp", "--guest", "lt-named", "--guest", "lt-nameless"]
        monitor = Monitor(both[1])
        # QEMU starts its vCPUs one after the other.
        wait_until(lambda: sorted(len(vcpus_of(guest)) for guest in watch(*ours)[0].values()) == [2, 2], 10, "both guests")
        guests, notes = watch(*ours)
        check(guests["lt-qmp"]["by"] == "qmp" and guests["lt-named"]["by"] == "thread names", guests)
        check(vcpus_of(guests["lt-qmp"]) == monitor.vcpus(), f"{guests['lt-qmp']} {monitor.vcpus()}")
        check(len(vcpus_of(guests["lt-named"])) == 2 and guests["lt-named"]["process"] == named.pid, guests["lt-named"])
        check(any("lt-nameless" in note and "cannot be told apart" in note for note in notes), notes)
        check(named.poll() is None and nameless.poll() is None, "a guest has ended")


@with_qemu
def guests_are_followed():
    with Scene("guests-followed") as scene:
        both, by_qmp = sockets(scene, "lt-grows")
        run = Run(scene, "--guest", "lt-grows")
        check(not run.top(), "there is no guest yet")
        guest = qemu(scene, "lt-grows", "-smp", "1,maxcpus=2", *by_qmp)
        monitor = Monitor(both[1])
        run.says("lt-grows is managed now")
        wait_until(lambda: [v["tid"] for v in run.top()] == monitor.vcpus(), 10, "its vCPU in eft vm top")
        free = next(cpu for cpu in monitor("query-hotpluggable-cpus") if "qom-path" not in cpu)
        monitor("device_add", driver=free["type"], id="second", **free["props"])
        wait_until(lambda: sorted(v["tid"] for v in run.top()) == monitor.vcpus(), 20, "the second vCPU in eft vm top")
        check(len(monitor.vcpus()) == 2, "the second vCPU is not there")
        monitor("stop")
        check(watch("--guest", "lt-grows")[0]["lt-grows"]["is_paused"], "it is paused")
        wait_until(lambda: not any(v["is_active"] for v in run.top()), 30, "paused vCPUs to be asleep")
        wait_until(lambda: all(v["is_paused"] for v in run.top()), 30, "eft vm top to say that they are paused")
        monitor("cont")
        wait_until(lambda: any(v["is_active"] for v in run.top()), 30, "a vCPU to be awake again")
        monitor("quit")
        guest.wait(10)
        run.says("lt-grows has gone")
        wait_until(lambda: not run.top(), 10, "no vCPU in eft vm top")
        log = run.end()
        check(run.process.returncode == 0 and "no guests" in log, log)


@with_qemu
def vcpus_that_are_plugged_and_unplugged_are_followed():
    with Scene("guests-hotplug") as scene:
        both, by_qmp = sockets(scene, "lt-plugs")
        said = scene.dir / "said"
        qemu(scene, "lt-plugs", "-smp", "1,maxcpus=4", "-debugcon", f"file:{said}", *by_qmp, code=EJECTS)
        monitor = Monitor(both[1])
        wait_until(lambda: said.exists() and b"\0" in said.read_bytes(), 60, "the guest to boot")
        run = Run(scene, "--guest", "lt-plugs", "--cpus", str(min(ALL)))
        first = monitor.vcpus()

        def is_followed(count):
            wait_until(lambda: len(monitor.vcpus()) == count, 20, f"the guest to have {count} vCPUs")
            now = monitor.vcpus()
            wait_until(lambda: sorted(v["tid"] for v in run.top()) == now, 30, f"{now} in eft vm top; it said {run.log()}")
            wait_until(lambda: all(os.sched_getaffinity(tid) == {min(ALL)} for tid in now), 20, "all to be placed")

        is_followed(1)
        free = [cpu for cpu in monitor("query-hotpluggable-cpus") if "qom-path" not in cpu]
        for i, cpu in enumerate(free):
            monitor("device_add", driver=cpu["type"], id=f"plugged{i}", **cpu["props"])
        is_followed(4)
        # Not only the last one is unplugged. None is plugged in again: QEMU 7.2 sometimes crashes on that.
        for count, i in enumerate((1, 0, 2)):
            monitor("device_del", id=f"plugged{i}")
            is_followed(3 - count)
        log = run.end()
        check("has gone" not in log and "another program" not in log and "panicked" not in log, log)
        check(monitor.vcpus() == first and os.sched_getaffinity(first[0]) == ALL, "not as before")
        left = sh(EFT, "vm", "restore", "--state-dir", run.dir).stdout
        check(left == "0 threads are as they were before\n", left)


def affinities_are_as_before_after_an_end_and_after_a_crash():
    cpus, other = managed_cpus()
    with Scene("guests-restored") as scene:
        guest = spinner(scene)
        options = ["--groups-only", "--group", f"g={guest.pid}", "--cpus", ",".join(map(str, cpus))]
        run = Run(scene, *options)
        wait_until(lambda: os.sched_getaffinity(guest.pid) <= cpus, 10, "the guest to be placed")
        run.end()
        check(os.sched_getaffinity(guest.pid) == ALL, "not as before after an end")
        os.sched_setaffinity(guest.pid, ALL - {other})
        run = Run(scene, *options)
        wait_until(lambda: os.sched_getaffinity(guest.pid) <= cpus, 10, "the guest to be placed again")
        wait_until(run.top, 10, "eft vm top to show the guest")
        run.process.kill()
        run.process.wait()
        check(os.sched_getaffinity(guest.pid) <= cpus, "nobody has put it back yet")
        out = sh(EFT, "vm", "top", "--state-dir", run.dir, ok=False)
        check(out.returncode == 1 and "'eft vm restore' does" in out.stderr, out)
        out = sh(EFT, "vm", "restore", "--state-dir", run.dir).stdout
        check(out == "1 threads are as they were before\n", out)
        check(os.sched_getaffinity(guest.pid) == ALL - {other}, "not as before after a crash")
        # A thread that another program has placed meanwhile stays there, even where eft would not have placed it.
        run = Run(scene, *options)
        wait_until(lambda: os.sched_getaffinity(guest.pid) <= cpus, 10, "the guest to be placed a third time")
        run.process.kill()
        run.process.wait()
        os.sched_setaffinity(guest.pid, {other})
        out = sh(EFT, "vm", "restore", "--state-dir", run.dir)
        check("another program" in out.stderr and os.sched_getaffinity(guest.pid) == {other}, out)
        os.sched_setaffinity(guest.pid, ALL - {other})
        # The next instance restores by itself, too.
        run = Run(scene, *options)
        run.process.kill()
        run.process.wait()
        again = Run(scene, *options)
        again.says("put 1 threads back")
        refused = sh(EFT, "vm", "restore", "--state-dir", run.dir, ok=False)
        check(refused.returncode == 1 and "is at work" in refused.stderr, refused)
        again.end()
        check(os.sched_getaffinity(guest.pid) == ALL - {other}, "not as before at last")


def what_somebody_else_places_is_left_alone():
    cpus, other = managed_cpus()
    with Scene("guests-taskset") as scene:
        guest, second = spinner(scene), spinner(scene)
        run = Run(scene, "--groups-only", "--group", f"g={guest.pid},{second.pid}", "--cpus", ",".join(map(str, cpus)))
        wait_until(lambda: os.sched_getaffinity(guest.pid) <= cpus, 10, "the guest to be placed")
        sh("taskset", "-p", "-c", str(other), str(guest.pid))
        run.says(f"another program put it on CPU {other}; it is left alone")
        time.sleep(1)
        check(os.sched_getaffinity(guest.pid) == {other}, "it was fought over")
        shown = {v["tid"]: v["is_left_alone"] for v in run.top()}
        check(shown == {guest.pid: True, second.pid: False}, shown)
        log = run.end()
        check(os.sched_getaffinity(guest.pid) == {other}, "another's choice was undone")
        check(os.sched_getaffinity(second.pid) == ALL, "the second one is not as before")
        check(log.count("left alone") >= 1 and log.count("it is left alone") == 1, log)


@contextlib.contextmanager
def false_monitor(path, talk):
    """Takes the place of QEMU's socket."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            with contextlib.suppress(OSError):
                stream, _ = listener.accept()
                threading.Thread(target=answer, args=(stream,), daemon=True).start()

    def answer(stream):
        with stream, contextlib.suppress(OSError):
            talk(stream, ended)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def lies(stream, _):
    """Reports threads that are not the guest's."""
    lines = stream.makefile("rw")
    strangers = [{"cpu-index": 0, "thread-id": 1}, {"cpu-index": 1, "thread-id": os.getpid()}]
    for answer in ({"QMP": {}}, {"return": {}}, {"return": strangers}, {"return": {"running": True}}):
        if "QMP" not in answer:
            lines.readline()
        lines.write(json.dumps(answer) + "\n")
        lines.flush()


@with_qemu
def monitors_that_lie_hang_and_close():
    with Scene("guests-monitors") as scene:
        both, by_qmp = sockets(scene, "lt-false")
        guest = qemu(scene, "lt-false,debug-threads=on", *by_qmp)
        Monitor(both[1])
        real = watch("--guest", "lt-false")[0]["lt-false"]
        mine = os.sched_getaffinity(0)
        talks = {
            "threads that are not its own": lies,
            "does not answer": lambda _, ended: ended.wait(10),
            "closes in the middle": lambda *_: None,
            "no JSON": lambda stream, _: stream.sendall(b"\xff\0hello\n"),
            "talks without end": lambda stream, ended: [stream.sendall(b"{" * 65536) for _ in range(64) if not ended.is_set()],
        }
        for what, talk in talks.items():
            with false_monitor(both[0], talk):
                guests, notes = watch("--guest", "lt-false")
                check(sum(what in note for note in notes) == 1, f"{what}: {notes}")
                check(vcpus_of(guests["lt-false"]) == vcpus_of(real), f"{what}: {guests}")
        with false_monitor(both[0], lies):
            run = Run(scene, "--guest", "lt-false", "--cpus", str(min(ALL)))
            run.says("threads that are not its own")
            wait_until(lambda: os.sched_getaffinity(vcpus_of(real)[0]) == {min(ALL)}, 10, "the vCPU to be placed")
            check(os.sched_getaffinity(0) == mine, "a stranger was placed because a monitor named it")
            run.end()
        check(os.sched_getaffinity(vcpus_of(real)[0]) == ALL and guest.poll() is None, "not as before")


@with_qemu
def a_monitor_that_another_holds_costs_no_guest():
    with Scene("guests-held") as scene:
        both, by_qmp = sockets(scene, "lt-held")
        qemu(scene, "lt-held", *by_qmp)
        monitor = Monitor(both[1])
        run = Run(scene, "--guest", "lt-held")
        wait_until(lambda: [v["tid"] for v in run.top()] == monitor.vcpus(), 20, "its vCPU in eft vm top")
        with false_monitor(both[0], lambda _, ended: ended.wait(60)):
            # Without thread names only the monitor tells which threads are vCPUs, and its last answer holds.
            run.says("does not answer")
            check([v["tid"] for v in run.top()] == monitor.vcpus(), run.log())
        log = run.end()
        check("has gone" not in log and "cannot be told apart" not in log, log)


SHORT_LIVED = """
import threading, time
def work():
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
while True:
    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
"""


def threads_that_vanish_are_no_trouble():
    with Scene("guests-vanishing") as scene:
        guest = scene.start(sys.executable, "-c", SHORT_LIVED)
        run = Run(scene, "--groups-only", "--group", f"g={guest.pid}", "--interval", "0.2", "--seconds", "6")
        run.process.wait(60)
        check(run.process.returncode == 0 and "panicked" not in run.log(), run.log())
        check(os.sched_getaffinity(guest.pid) == ALL, "not as before")
        check(sh(EFT, "vm", "restore", "--state-dir", run.dir).stdout == "0 threads are as they were before\n", "some were left")


def without_permission_nothing_is_touched_and_one_line_says_so():
    with Scene("guests-permission") as scene:
        guest = spinner(scene)
        group = f"g={guest.pid}"
        # The program and its folder lie where every user can reach them; a checkout may lie in a home folder.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program, state = f"{folder}/eft", f"{folder}/state"
            shutil.copy(EFT, program)
            os.mkdir(state, 0o755)
            os.chown(state, NOBODY, NOBODY)

            def as_nobody(*command):
                return sh(program, "vm", *command, "--group", group, "--groups-only", ok=False, user=NOBODY)

            out = as_nobody("run", "--state-dir", state, "--seconds", "3", "--cpus", str(min(ALL)))
            lines = [line for line in out.stderr.splitlines() if "needs root" in line and "it is left alone" in line]
            check(len(lines) == 1 and "panicked" not in out.stderr, f"{out.returncode} {out.stdout}{out.stderr}")
            check(os.sched_getaffinity(guest.pid) == ALL, "it was placed without permission")
            out = as_nobody("watch")
            check(out.returncode == 0 and str(guest.pid) in out.stdout, "whoever may not place may still look")
            out = as_nobody("run", "--state-dir", "/proc/none")
            check(out.returncode == 1 and out.stderr.count("\n") == 1, f"{out.returncode} {out.stderr}")


def the_configuration_file_is_kept():
    cpus, other = managed_cpus()
    managed, second = ",".join(map(str, sorted(cpus))), str(max(cpus))
    with Scene("guests-config") as scene:
        pinned, plain, ignored = spinner(scene), spinner(scene), spinner(scene)
        file = scene.dir / "vm.toml"
        file.write_text(f"""
            policy = "amp-fair:40"
            cpus = "{managed}"
            groups-only = true
            group = ["pinned={pinned.pid}", "plain={plain.pid}", "ignored={ignored.pid}"]
            [guest.pinned]
            cpus = "{second}"
            weight = 512
            [guest.ignored]
            ignore = true
        """)
        run = Run(scene, "--config", file)
        wait_until(lambda: os.sched_getaffinity(pinned.pid) == {int(second)}, 10, "the pinned guest on its CPU")
        wait_until(lambda: sorted(v["guest"] for v in run.top()) == ["pinned", "plain"], 10, "the two others in eft vm top")
        check(os.sched_getaffinity(ignored.pid) == ALL, "the ignored guest was placed")
        shown = sh(EFT, "vm", "top", "--state-dir", run.dir).stdout
        check("amp-fair:40" in shown, shown)
        run.end()
        check(all(os.sched_getaffinity(guest.pid) == ALL for guest in (pinned, plain)), "not as before")
        # The command line takes precedence.
        run = Run(scene, "--config", file, "--policy", "amp-vcpu", "--cpus", other, name="wins")
        wait_until(lambda: os.sched_getaffinity(plain.pid) == {other}, 10, "the plain guest where the command line says")
        # Then no CPU is left of those that the file gives this guest.
        check(os.sched_getaffinity(pinned.pid) == ALL, "the pinned guest was placed where it must not be")
        run.end()
        for bad in ("policy = 'fast'", "[guest.a]\ncap = 0.0", "nonsense", "group = ['=']"):
            file.write_text(bad)
            out = sh(EFT, "vm", "run", "--state-dir", scene.dir / "bad", "--config", file, ok=False)
            check(out.returncode == 1 and out.stderr.count("\n") == 1, f"{bad}: {out.returncode} {out.stderr}")


@contextlib.contextmanager
def cgroup(*pids):
    """A cgroup with these processes; at the end they return to its parent."""
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    group = (v1 if v1.is_dir() else v2) / f"eft-live-{os.getpid()}"
    group.mkdir()
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield group
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def every_policy_manages_cgroups_and_processes():
    cpus, _ = managed_cpus()
    with Scene("guests-policies") as scene:
        inside, second, outside = spinner(scene), spinner(scene), spinner(scene)
        with cgroup(inside.pid, second.pid) as group:
            options = ["--groups-only", "--group", f"cgroup={group}", "--group", f"plain={outside.pid}", "--interval", "0.5"]
            options += ["--cpus", ",".join(map(str, cpus))]
            for policy in ("amp-vm", "amp-vcpu", "amp-fair", "amp-fair:40", "adaptive-fair", "adaptive-fair:10"):
                run = Run(scene, *options, "--policy", policy)
                wait_until(lambda: len(run.top()) == 3, 10, f"both guests under {policy}")
                guests = {v["tid"]: v["guest"] for v in run.top()}
                check(guests == {inside.pid: "cgroup", second.pid: "cgroup", outside.pid: "plain"}, guests)
                wait_until(lambda: os.sched_getaffinity(second.pid) <= cpus, 10, "the cgroup to be placed")
                shown = sh(EFT, "vm", "top", "--state-dir", run.dir).stdout
                check(shown.startswith(f"policy {policy}") and "2 vCPU" in shown, shown)
                check("panicked" not in run.end(), run.log())
                check(all(os.sched_getaffinity(g.pid) == ALL for g in (inside, second, outside)), "not as before")
        # Its last member is gone, and so is the cgroup: no guests, and one line.
        out = sh(EFT, "vm", "run", "--state-dir", scene.dir / "gone", "--seconds", "1", "--groups-only", "--group", f"c={group}")
        check(out.stderr.count("cannot be read") == 1 and "no guests" in out.stdout, out)


def the_unit_is_sound():
    """Checks the unit as systemd reads it, and its command line with the example configuration."""
    packaging = ROOT / "packaging"
    unit = (packaging / "eft-vm.service").read_text().replace("/usr/local/bin/eft", EFT)
    with Scene("guests-unit") as scene:
        path = scene.dir / "eft-vm.service"
        path.write_text(unit)
        if shutil.which("systemd-analyze"):
            out = sh("systemd-analyze", "verify", path, ok=False)
            check(out.returncode == 0 and not out.stderr, out)
        else:
            print("        (no systemd-analyze here)")
        start = next(line for line in unit.splitlines() if line.startswith("ExecStart=")).partition("=")[2]
        words = start.replace("/etc/eft", str(packaging)).split()
        guest = spinner(scene)
        more = ["--groups-only", "--group", f"g={guest.pid}", "--state-dir", scene.dir / "run", "--seconds", "2"]
        out = sh(*words, *more)
        check(out.stdout.startswith("ready\npolicy amp-vm\n") and os.sched_getaffinity(guest.pid) == ALL, out)
        taken = socket.create_server(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        out = sh(*words, *more, "--metrics", address, ok=False)
        check(out.returncode == 1 and out.stderr == f"eft: cannot listen at {address}: Address already in use (os error 98)\n", out)


def scraped(port):
    """The answer to a scraper; nothing if no server listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as scrape:
            scrape.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: scrape.recv(65536), b"")).decode()
    except ConnectionRefusedError:
        return ""


def advising_touches_nothing_and_metrics_are_served():
    with Scene("guests-advice") as scene:
        busy = spinner(scene)
        paced = scene.start(sys.executable, "-c", "import time\nwhile True:\n  for _ in range(200000): pass\n  time.sleep(0.03)")
        group = ["--groups-only", "--group", f"busy={busy.pid}", "--group", f"paced={paced.pid}"]
        out = sh(EFT, "vm", "advise", "--json", "--seconds", "4", *group, "--state-dir", scene.dir / "none")
        advice = json.loads(out.stdout)
        check("busy is watched now" in out.stderr and "managed" not in out.stderr, out.stderr)
        use = {v["guest"]: v["utilisation"] + v["waiting"] for v in advice["view"]["vcpus"]}
        check(use["busy"] > 0.8 and use["paced"] < use["busy"], use)
        check(os.sched_getaffinity(busy.pid) == ALL and not (scene.dir / "none").exists(), "something was touched")
        run = Run(scene, *group, "--metrics", "127.0.0.1:19199")
        wait_until(lambda: len(run.top()) == 2, 10, "both in eft vm top")
        page = scraped(19199)
        for name in ("eft_vcpu_score", "eft_vcpu_fast_ratio", "eft_vcpu_moves_total", "eft_vcpu_slowdown_ratio"):
            check(f'{name}{{guest="busy"' in page, page)
        # The endpoint of `eft vm top` exists before and after a run.
        scene.start(EFT, "vm", "top", "--metrics", "127.0.0.1:19198", "--state-dir", run.dir)
        wait_until(lambda: scraped(19198).startswith("HTTP/1.1 200"), 10, "the endpoint of eft vm top")
        run.end()
        check(scraped(19198).startswith("HTTP/1.1 503") and "no 'eft vm run'" in scraped(19198), scraped(19198))
        run = Run(scene, *group)
        wait_until(lambda: scraped(19198).startswith("HTTP/1.1 200"), 10, "the endpoint to find the next run")
        run.end()


CASES = [guests_are_found_by_qmp_and_by_thread_names, guests_are_followed, vcpus_that_are_plugged_and_unplugged_are_followed,
         affinities_are_as_before_after_an_end_and_after_a_crash, what_somebody_else_places_is_left_alone,
         monitors_that_lie_hang_and_close, a_monitor_that_another_holds_costs_no_guest, threads_that_vanish_are_no_trouble,
         without_permission_nothing_is_touched_and_one_line_says_so, the_configuration_file_is_kept,
         every_policy_manages_cgroups_and_processes, the_unit_is_sound, advising_touches_nothing_and_metrics_are_served]
