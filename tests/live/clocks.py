"""Servers whose clock goes wrong: the code in them that reads it ([vdso]) is changed."""

import ctypes
import pathlib
import struct
import time

import inside
from harness import Scene, Stack, check, wait_until
from watchdog import Connections, listening_echo

# Machine code of x86_64 that asks the kernel by the system call (228), and then changes what it says: seconds at [rsi], nanoseconds
# behind them.
ASK = b"\xb8" + struct.pack("<I", 228) + b"\x0f\x05"
RETURN = b"\xc3"
# The type of a section of dynamic symbols (elf(5)).
DYNSYM = 11


def later(seconds):
    return ASK + b"\x48\x81\x06" + struct.pack("<i", seconds) + RETURN


def twice_as_fast():
    """Both are doubled, and the seconds of now are taken away."""
    return ASK + b"\x48\xd1\x26\x48\xd1\x66\x08" + b"\x48\x81\x2e" + struct.pack("<i", int(time.monotonic())) + RETURN


def still():
    return ASK + b"\x48\xc7\x06" + struct.pack("<i", int(time.monotonic())) + b"\x48\xc7\x46\x08" + struct.pack("<i", 0) + RETURN


def vdso(pid):
    """Where it begins and ends."""
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    line = next((line for line in lines if line.endswith("[vdso]")), None)
    return tuple(int(place, 16) for place in line.split()[0].split("-")) if line else None


def place_of_the_clock():
    """The offset in the vDSO of the function that reads the clock: it is the same in every process."""
    if not (found := vdso("self")):
        return None
    image = ctypes.string_at(found[0], found[1] - found[0])
    table, = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + n * size) for n in range(count)]
    symbols = next(section for section in sections if section[1] == DYNSYM)
    names = sections[symbols[6]][4]
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, at)
        if image[names + name:].split(b"\0", 1)[0] == b"__vdso_clock_gettime":
            return value
    return None


def change_clock(pid, code):
    """Puts other code where a process reads its clock, while it is not there."""
    while True:
        with inside.Inside(pid) as it:
            begin, end = vdso(pid)
            if not begin <= it.before[inside.RIP] < end:
                it.write(begin + place_of_the_clock(), code)
                return
        time.sleep(0.001)


def last_words(stack, component, generation):
    """What it said of its clock when it died."""
    report = pathlib.Path(f"/run/eft/{stack.name}/crashes/{component}-{generation}.txt")
    lines = wait_until(lambda: report.exists() and report.read_text(), 5, f"the report {report}").splitlines()
    return [line for line in lines if "clock" in line][-1:]


def a_server_whose_clock_goes_wrong_ends_and_connections_go_on():
    check(inside.AVAILABLE and place_of_the_clock(), "this test knows the code of x86_64 alone")
    with Scene("clocks") as scene:
        stack = Stack(scene)
        listening_echo(scene, stack)
        connections = Connections(stack, 20)
        connections.use()
        # nic and sockets sleep on descriptors, the others on bells.
        nic = f"nic:{stack.device}"
        for component, wrong, code, says in (
            ("tcp", "it jumps ahead", later(100000), "ahead of"), ("tcp", "it jumps back", later(-100), "behind"),
            ("tcp", "it is twice as fast", twice_as_fast(), "ahead of"), ("tcp", "it stands still", still(), "behind"),
            (nic, "it stands still", still(), "behind"), (nic, "it jumps ahead", later(1), "ahead of"),
            ("ip", "it stands still", still(), "behind"), ("sockets", "it jumps ahead", later(100000), "ahead of"),
        ):
            before = stack.components()
            change_clock(before[component]["pid"], code)
            began = time.monotonic()
            wait_until(lambda: connections.use() or (c := stack.components()[component])["pid"] not in (None, before[component]["pid"])
                       and c["state"] == "running", 20, f"{component} to be replaced when {wrong}")
            took = time.monotonic() - began
            words = last_words(stack, component, before[component]["generation"])
            print(f"        {component}, {wrong}: replaced within {took:.2f} s: {words}", flush=True)
            check(says in str(words), f"{component}, {wrong}: it said {words}")
            connections.use()
            after = stack.components()
            check(all(after[name]["pid"] == before[name]["pid"] for name in before if name != component), f"others died: {before} became {after}")
        connections.use()


CASES = [a_server_whose_clock_goes_wrong_ends_and_connections_go_on]
