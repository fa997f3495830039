"""Servers are replaced under load by those of another program file, including programs that do not work."""

import os
import re
import shutil
import threading
from pathlib import Path

import harness
from handover import CLIENT
from harness import Scene, Stack, check, end, in_url, sh, sha256_of, wait_until
from loads import Load
from programs import PORT
from watchdog import ECHO


class AskingLoad(Load):
    """A load, and two connections that send requests all the time in either direction."""

    def __init__(self, scene, kind=None, stack=None):
        self.asking = []
        super().__init__(scene, kind=kind, size=96 << 20, stack=stack)
        stack = self.stack
        scene.start(*stack.beside("python3", "-c", ECHO.format(address=stack.host)), log="far-echo.log")
        self.asking = [scene.start(*stack.on("python3", "-c", CLIENT.format(address=stack.host)), log="client.log"),
                       scene.start(*stack.beside("python3", "-c", CLIENT.format(address=stack.address)), log="far-client.log")]
        wait_until(lambda: all(a.log.read_text() for a in self.asking), 10, "the first answers")

    def lives(self):
        super().lives()
        for asking in self.asking:
            asked = asking.log.read_text()
            wait_until(lambda: asking.log.read_text() != asked or asking.poll() is not None, 10, "a connection to go on")
            check(asking.poll() is None, f"a connection ended: {asking.log.read_text()[-500:]}")

    def finish(self):
        super().finish()
        for asking in self.asking:
            pauses = sorted(float(line) for line in asking.log.read_text().splitlines())
            print(f"        longest pauses of one that asks all the time: {pauses[-8:]} ms", flush=True)
            end(asking)


def pause_in(text):
    return float(re.search(r"replaced within ([0-9.]+) ms", text).group(1))


def program_of(component):
    return os.readlink(f"/proc/{component['pid']}/exe")


def updated_under_load(kind):
    with Scene("update") as scene:
        load = AskingLoad(scene, kind)
        stack = load.stack
        program = scene.dir / "eft-next"
        shutil.copy(harness.EFT, program)
        before = stack.components()
        pauses = {}
        for component in before:
            said = stack.eft("update", component, "--binary", program).stdout
            check(re.fullmatch(rf"{component}: generation 2, replaced within [0-9.]+ ms\n", said), said)
            pauses[component] = pause_in(said)
            load.lives()
        print(f"        replaced within (ms): {pauses}", flush=True)
        after = stack.components()
        for component, c in after.items():
            check(program_of(c) == str(program), f"{component} runs {program_of(c)}")
            check(c["generation"] == 2 and c["deaths"] == 0, f"{component}: {c}")
        # A component that crashes later is reborn from the new file, even if a third file has replaced that one.
        program.unlink()
        stack.kill("ip")
        check(program_of(stack.components()["ip"]).startswith(str(program)), "the successor is of the old program")
        # All components at once, back to the first file.
        said = stack.eft("update", "--all").stdout.splitlines()
        check([line.split(":")[0] for line in said if "nic" not in line][:3] == ["ip", "filter", "udp"], f"{said}")
        check(len(said) == len(before), f"{said}")
        after = stack.components()
        check(all(program_of(c) == os.path.realpath(harness.EFT) for c in after.values()), f"{after}")
        load.finish()


def each_component_is_updated():
    updated_under_load("tap")


def each_component_is_updated_over_veth():
    updated_under_load("veth")


# A program that first misbehaves and then becomes eft.
FLAWED = """
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    %s
    execv("%s", argv);
    return 99;
}"""


DIES = "struct itimerval t = {{0, 0}, {0, 500000}}; setitimer(ITIMER_REAL, &t, 0);"


def flawed(scene, name, code, then=harness.EFT):
    source, program = scene.dir / f"{name}.c", scene.dir / name
    source.write_text(FLAWED % (code, then))
    sh("gcc", "-o", str(program), str(source))
    return program


def runs(program):
    """Whether some process runs exactly this file."""
    def is_it(process):
        try:
            return os.path.samefile(process / "exe", program)
        except OSError:
            return False
    return any(is_it(process) for process in Path("/proc").iterdir() if process.name.isdigit())


def programs_that_do_not_work_change_nothing():
    with Scene("update-flawed") as scene:
        load = AskingLoad(scene)
        stack = load.stack
        no_program = scene.dir / "text"
        no_program.write_text("not a program")
        no_program.chmod(0o755)
        dies = flawed(scene, "dies", DIES)
        hangs = flawed(scene, "hangs", "pause();")
        foreign = flawed(scene, "foreign", 'for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--protocol")) argv[i + 1] = "99";')
        aborts = flawed(scene, "aborts", "return 3;")
        # It claims that its state takes half of all addresses, and waits for them.
        greedy = flawed(scene, "greedy", r'static char m[1 << 18]; recv(3, m, sizeof m, 0);'
                        r'send(3, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, 0); pause();')
        before = stack.components()

        def refused(program, why, component="tcp"):
            said = stack.eft("update", component, "--binary", program, ok=False)
            check(said.returncode == 1 and why in said.stderr and said.stderr.count("\n") == 1, f"{program}: {said.stderr}")
            load.lives()
        for component in ("tcp", "udp", "filter", f"nic:{stack.device}"):
            refused(no_program, "not a program file", component)
            refused(aborts, "exit status 3", component)
            refused(foreign, "speaks protocol 99", component)
        refused("/bin/true", "exit status 0")
        refused(hangs, "signal 9")
        refused(greedy, "wants 9223372036854775807 bytes for its state")
        refused(scene.dir / "none", "No such file")
        refused(scene.dir, "not a program file")
        refused(harness.EFT, "there is no component `tpc`", "tpc")
        check(all(c["pid"] == before[n]["pid"] for n, c in stack.components().items()), "somebody was replaced")
        # It takes over and dies in its first second.
        for component in before:
            refused(dies, "signal 14", component)
            c = stack.components()[component]
            check(c["generation"] == 3 and program_of(c) == os.path.realpath(harness.EFT), f"{c}")
        # Two updates at once: the second is refused with the request to wait. Meanwhile the stack answers.
        first = threading.Thread(target=lambda: refused(hangs, "signal 9"), daemon=True)
        first.start()
        wait_until(lambda: runs(hangs), 10, "the update to begin")
        said = stack.eft("update", "ip", ok=False)
        check("tcp is being updated" in said.stderr, said.stderr)
        first.join()
        stack.eft("update", "ip")
        check(stack.eft("update", ok=False).returncode == 2, "neither a component nor --all")
        load.finish()


def next_release():
    """An eft whose tcp has a later layout of its state, and whose pages have a later version. It is built for these
    tests alone."""
    return Path(sh(harness.ROOT / "scripts/next-release", timeout=1800).stdout.strip())


def state_of_another_layout_is_converted_and_taken_back():
    program = next_release()
    with Scene("update-layout") as scene:
        load = AskingLoad(scene)
        stack = load.stack
        dies = flawed(scene, "dies", DIES, then=program)

        def refused(program, why):
            said = stack.eft("update", "tcp", "--binary", program, ok=False)
            check(said.returncode == 1 and why in said.stderr, f"{said.stdout}{said.stderr}")
            wait_until(lambda: stack.components()["tcp"]["state"] == "running", 20, "tcp to be back")
            load.lives()
        # It converts the state, works on it for half a second, and dies; the old program keeps what it did.
        for _ in range(3):
            refused(dies, "signal 14")
            check(program_of(stack.components()["tcp"]) == os.path.realpath(harness.EFT), "the old program goes on")
            check("cannot be taken back" not in stack.process.log.read_text(), stack.process.log.read_text()[-500:])
        print("        " + stack.eft("update", "tcp", "--binary", program).stdout.strip(), flush=True)
        load.lives()
        check(program_of(stack.components()["tcp"]) == str(program), "the new program is at work")
        stack.kill("tcp")
        load.lives()
        # No program takes a later state for its own.
        refused(harness.EFT, "this eft knows no later one than 4")
        check(program_of(stack.components()["tcp"]) == str(program), "it is as it was")
        load.finish()


def a_stack_is_handed_over_to_a_later_version():
    program = next_release()
    with Scene("handover-layout") as scene:
        load = AskingLoad(scene)
        stack = load.stack
        before = stack.process
        stack.up("--keep", "20", "--take-over", log="-next", program=str(program))
        check(before.wait(10) == 0, "the end of a handover is no failure")
        load.lives()
        check(all(program_of(c) == str(program) for c in stack.components().values()), "everybody runs the new program")
        # Programs have the previous release's library: running ones get new sockets, and others can start.
        _, want = scene.file("www/small", 1 << 20)
        url = f"http://{in_url(stack.address)}:{PORT}/small"
        check(sha256_of(stack.beside("curl", "-sf", url)) == want, "a server of the release before accepts")
        check(sha256_of(stack.on("curl", "-sf", url)) == want, "a program of the release before starts and connects")
        load.finish()


def previous_release():
    """The eft of the release before this one, or None where its source is not at hand."""
    said = sh(harness.ROOT / "scripts/previous-release", timeout=1800, ok=False)
    if said.returncode == 3:
        print(f"        left out: {said.stderr.strip()}", flush=True)
        return None
    check(said.returncode == 0, said.stderr)
    return Path(said.stdout.strip())


def protocol_of(source):
    """The version of what servers and the supervisor say to each other."""
    return re.search(r"pub const PROTOCOL: u32 = (\d+);", (source / "crates/linux/src/protocol.rs").read_text())[1]


class OfRelease(Stack):
    """Programs on it have the library of the same release."""

    def on(self, *command):
        return [str(self.program), "run", "--name", self.name, "--", *map(str, command)]


def a_stack_of_the_release_before_is_updated_and_handed_over():
    """Each of its servers by itself, if both releases say the same to each other, and then all of it."""
    program = previous_release()
    if not program:
        return
    with Scene("update-previous") as scene:
        stack = OfRelease(scene, extra=("--keep", "20"), program=str(program))
        load = AskingLoad(scene, stack=stack)
        speaks_the_same = protocol_of(program.parents[2]) == protocol_of(harness.ROOT)
        components = stack.components()
        for component in components:
            said = stack.eft("update", component, "--binary", harness.EFT, ok=False)
            if speaks_the_same:
                check(said.returncode == 0, f"{component}: {said.stderr}")
                check(program_of(stack.components()[component]) == os.path.realpath(harness.EFT), f"{component} is the old one")
            else:
                check(said.returncode == 1 and "speaks protocol" in said.stderr and said.stderr.count("\n") == 1, said.stderr)
                check(program_of(stack.components()[component]) == str(program), f"{component} is not the old one")
            load.lives()
        before = stack.process
        stack.up("--keep", "20", "--take-over", log="-now", program=harness.EFT)
        check(before.wait(10) == 0, "the end of a handover is no failure")
        load.lives()
        now = stack.components()
        check(now.keys() == components.keys(), f"{now.keys()} after {components.keys()}")
        check(all(program_of(c) == os.path.realpath(harness.EFT) for c in now.values()), "everybody runs this release")
        for component in now:
            stack.kill(component)
            load.lives()
        # Programs with the library of the release before: running ones get new sockets, and others can start.
        _, want = scene.file("www/small", 1 << 20)
        url = f"http://{in_url(stack.address)}:{PORT}/small"
        check(sha256_of(stack.beside("curl", "-sf", url)) == want, "a server of the release before accepts")
        check(sha256_of(stack.on("curl", "-sf", url)) == want, "a program of the release before starts and connects")
        load.finish()


CASES = [
    a_stack_of_the_release_before_is_updated_and_handed_over,
    each_component_is_updated, each_component_is_updated_over_veth, programs_that_do_not_work_change_nothing,
    state_of_another_layout_is_converted_and_taken_back, a_stack_is_handed_over_to_a_later_version,
]
