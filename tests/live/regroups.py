"""Components are put into other processes under load, and nothing is lost."""

import re
import signal

from harness import Scene, Stack, check, wait_until
from updates import AskingLoad


def regrouped(load, component, place, mates):
    """Moves a component, and checks that it runs with its mates and with nobody else."""
    stack = load.stack
    said = stack.eft("move", component, place).stdout
    beside = f"with {', '.join(mates)}" if mates else "alone"
    found = re.fullmatch(rf"{component} runs {beside} now; it was away for ([0-9.]+) ms\n", said)
    check(found, said)
    all_of_them = stack.components()
    check(all(c["state"] == "running" for c in all_of_them.values()), all_of_them)
    pid = all_of_them[component]["pid"]
    check(sorted(n for n, c in all_of_them.items() if c["pid"] == pid) == sorted([component, *mates]), all_of_them)
    load.lives()
    return float(found.group(1))


def components_change_their_processes_under_load():
    with Scene("regroup") as scene:
        load = AskingLoad(scene)
        stack = load.stack
        nic = f"nic:{stack.device}"
        steps = [
            ("ip", "process=edge", []),
            ("filter", "process=edge", ["ip"]),
            (nic, "process=edge", ["ip", "filter"]),
            ("tcp", "process=edge", ["ip", "filter", nic]),
            ("filter", "alone", []),
            ("udp", "process=edge", ["tcp", "ip", nic]),
            ("sockets", "process=other", []),
            ("ip", "process=other", ["sockets"]),
        ]
        pauses = [regrouped(load, *step[:2], in_order(stack, step[2])) for step in steps]
        print(f"        away for {pauses} ms", flush=True)
        # Who shares a process dies with it, and is born with it.
        before = stack.components()
        stack.kill("tcp")
        wait_until(lambda: all(stack.components()[c]["generation"] == before[c]["generation"] + 1 for c in ("tcp", "udp", nic)), 10,
                   "the company of tcp to come back")
        check(stack.components()["ip"]["generation"] == before["ip"]["generation"], "ip died with tcp")
        load.lives()
        # The next supervisor finds them as they are.
        stack.process.send_signal(signal.SIGKILL)
        stack.process.wait()
        stack.up(log="-next")
        after = stack.components()
        check({c: v["pid"] for c, v in after.items()} == {c: v["pid"] for c, v in stack.components().items()}, after)
        check(after["tcp"]["pid"] == after["udp"]["pid"] == after[nic]["pid"] != after["ip"]["pid"], after)
        check(after["ip"]["pid"] == after["sockets"]["pid"], after)
        stack.kill("udp")
        load.lives()
        regrouped(load, "tcp", "alone", [])
        load.finish()


def in_order(stack, names):
    """As the stack lists them."""
    return sorted(names, key=list(stack.components()).index)


def moves_that_cannot_be():
    with Scene("regroup-wrong") as scene:
        stack = Stack(scene)
        before = stack.components()
        for component, place, reason in (
            ("cores", "process=edge", "cores has rights that no server may have"),
            ("ip", "process=Edge", "1 to 32 of a-z"),
            ("ip", "process=", "1 to 32 of a-z"),
            ("ip", "elsewhere", "expected cpu=N, any, process=NAME or alone"),
            ("nobody", "alone", "nobody"),
        ):
            done = stack.eft("move", component, place, ok=False)
            check(done.returncode == 1 and reason in done.stderr and done.stderr.count("\n") == 1, f"{component} {place}: {done.stderr}")
        check("runs alone now" in stack.eft("move", "ip", "alone").stdout, "nothing to do is no failure")
        pids = lambda all_of_them: {name: c["pid"] for name, c in all_of_them.items()}
        check(pids(before) == pids(stack.components()), "something was started again")


CASES = [components_change_their_processes_under_load, moves_that_cannot_be]
