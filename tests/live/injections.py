"""Servers broken in every way that `eft inject` can break them."""

import json
import os
import pathlib
import shutil
import socket
import time

import clocks
import inside
from harness import EFT, TOPOLOGIES, Scene, Stack, check, sh, wait_until
from inputs import refused
from watchdog import Connections, listening_echo

DEADLY = ("kill", "segv", "abort", "null", "loop")


def deadly_faults_end_no_connection():
    with Scene("inject") as scene:
        stack = Stack(scene)
        listening_echo(scene, stack)
        connections = Connections(stack, 20)
        connections.use()
        for component in ("ip", f"nic:{stack.device}", "filter", "udp", "sockets", "tcp"):
            for kind in DEADLY:
                before = stack.components()[component]
                said = json.loads(stack.eft("inject", component, kind, "--json").stdout)
                check(said["pid"] == before["pid"] and said["kind"] == kind, f"{said}")
                connections.use()
                wait_until(
                    lambda: (c := stack.components()[component])["generation"] == before["generation"] + 1
                    and c["state"] == "running", 20, f"the successor of {component} after {kind}")
                connections.use()
        # Every component except cores has died once of each deadly kind, and of nothing else. No restart was delayed,
        # since the deaths were injected.
        parts = stack.components()
        check(all(c["deaths"] == (0 if name == "cores" else len(DEADLY)) for name, c in parts.items()), f"{parts}")
        check("times in a row" not in stack.process.log.read_text(), "an injected death slowed a restart down")
        # Nor was any successor recorded.
        crashes = pathlib.Path(f"/run/eft/{stack.name}/crashes")
        check(not list(crashes.glob("*.eftrec")), "an injected death had its successor recorded")
        # Deaths that were not injected cause a delay and a recording, and so do failures, although they are injected.
        fails = {"udp": lambda pid: os.kill(pid, 11), "filter": lambda pid: stack.eft("inject", "filter", "failure")}
        for component, fail in fails.items():
            for turn in range(4):
                before = stack.components()[component]
                fail(before["pid"])
                wait_until(lambda: (c := stack.components()[component])["generation"] > before["generation"]
                           and c["state"] == "running", 20, f"{component} to come back")
            check(f"{component} died 4 times in a row" in stack.process.log.read_text(), f"a failure of {component} does not count")
            recording = crashes / f"{component}-{stack.components()[component]['generation']}.eftrec"
            check(recording.exists(), f"no recording after a failure of {component}")
        connections.use()


def changed_code_is_found():
    """A bit of code changes, and the server lives on or dies of it: it is replaced, without an operator."""
    with Scene("inject-code") as scene:
        stack = Stack(scene)
        listening_echo(scene, stack)
        connections = Connections(stack, 5)
        for turn in range(20):
            component = ("ip", "tcp")[turn % 2]
            # Every piece of the code has been summed once by then: it takes a server a second after its last work.
            connections.use()
            time.sleep(4)
            before = stack.components()[component]
            stack.eft("inject", component, "flip-code", "--seed", str(turn))
            wait_until(lambda: connections.use() or stack.components()[component]["pid"] != before["pid"],
                       30, f"{component} to be replaced")
            wait_until(lambda: stack.components()[component]["state"] == "running", 20, component)
            connections.use()
            if "has changed in memory; killing it" in stack.process.log.read_text():
                return
        check(False, "nothing was found")


def replaced_after_a_change(stack, connections, components, seconds):
    """Changes a byte that does nothing in what each of these consists of. Who was replaced within so many seconds of work?"""
    connections.use()
    # Every piece has been summed once by then.
    time.sleep(4)
    before = stack.components()
    for component in components:
        with inside.Inside(before[component]["pid"]) as it:
            # The padding of the ELF identification.
            it.write(clocks.vdso(it.pid)[0] + 9, b"\x01")
    until = time.monotonic() + seconds
    replaced = lambda: {name for name, c in stack.components().items() if c["pid"] != before[name]["pid"]}
    while time.monotonic() < until and not set(components) <= replaced():
        connections.use()
        time.sleep(0.01)
    return replaced()


def unprotected_servers_do_not_look_at_their_code():
    """Neither do their successors; the same change has each protected server replaced."""
    check(inside.AVAILABLE, "this test knows the code of x86_64 alone")
    for protection in ("on", "off"):
        with Scene("unprotected") as scene:
            stack = Stack(scene, extra=("--protection", protection))
            said = "--protection off is for measurements" in stack.process.log.read_text()
            check(said == (protection == "off"), "what it says about itself")
            server = listening_echo(scene, stack)
            components = {"tcp", "ip", f"nic:{stack.device}"}
            seconds, expected = (20, components) if protection == "on" else (4, set())
            connections = Connections(stack, 5)
            replaced = replaced_after_a_change(stack, connections, components, seconds)
            check(replaced == expected, f"--protection {protection}: {replaced} were replaced")
            if protection == "on":
                connections.use()
                continue
            for component in ("ip", "tcp"):
                before = stack.components()[component]["generation"]
                stack.eft("kill", component)
                wait_until(lambda: (c := stack.components()[component])["generation"] > before and c["state"] == "running",
                           20, f"the successor of {component}")
            # No connection has survived. The listener may have: its page says what it is. Its program dies of the first lost
            # connection, and until then it would be taken for the next one.
            server.kill()
            server.wait()
            listening_echo(scene, stack)
            replaced = replaced_after_a_change(stack, Connections(stack, 5), {"tcp", "ip"}, seconds)
            check(not replaced, f"successors: {replaced} were replaced")


def a_fault_in_a_shared_process_ends_no_connection():
    with Scene("inject-edge") as scene:
        stack = Stack(scene, topology=TOPOLOGIES / "edge.toml")
        listening_echo(scene, stack)
        connections = Connections(stack, 20)
        shared = ("ip", "filter", f"nic:{stack.device}")
        for component in shared:
            for kind in ("kill", "segv", "loop"):
                before = stack.components()
                stack.eft("inject", component, kind)
                wait_until(lambda: connections.use() or all(
                    (c := stack.components()[name])["generation"] == before[name]["generation"] + 1
                    and c["state"] == "running" for name in shared), 20, f"the successors of {component} after {kind}")
        parts = stack.components()
        check(all(c["deaths"] == (9 if name in shared else 0) for name, c in parts.items()), f"{parts}")
        check("times in a row" not in stack.process.log.read_text(), "an injected death slowed a restart down")
        connections.use()


def who_accuses_without_evidence_is_replaced():
    with Scene("inject-accuse") as scene:
        stack = Stack(scene)
        # Without rules the filter is asked nothing.
        rules = scene.dir / "rules"
        rules.write_text("pass all\n")
        stack.eft("pf", "-f", rules)
        listening_echo(scene, stack)
        connections = Connections(stack, 5)

        def use():
            connections.use()
            # The filter is asked about new connections only.
            socket.create_connection((stack.address, 7300), 10).close()

        for component in ("ip", "filter", "tcp"):
            before = stack.components()
            inject = scene.start(EFT, "inject", "--name", stack.name, component, "accuse", log="accuse.log")
            # The fault strikes when the server sends something.
            wait_until(lambda: use() or inject.poll() is not None, 20, "the fault")
            check(inject.returncode == 0, inject.log.read_text())
            wait_until(
                lambda: use() or (c := stack.components()[component])["generation"] == before[component]["generation"] + 1
                and c["state"] == "running", 20, f"the successor of {component}")
            after = stack.components()
            others = [name for name in after if name != component and after[name]["generation"] != before[name]["generation"]]
            check(not others, f"{component} accuses, and these were replaced: {others}")
        check("the accusation is false; killing tcp" in stack.process.log.read_text(), "no word of it")


def wrong_injections_are_refused():
    with Scene("inject-wrong") as scene:
        stack = Stack(scene)
        inject = [EFT, "inject", "--name", stack.name]
        refused(*inject, "tcp", "explode", says="there is no kind of fault `explode`; there are: kill, segv")
        refused(*inject, "tpc", "kill", says="there is no component `tpc`; there are: ")
        refused(*inject, "sockets", "flip-arena", says="sockets: it has written no durable state")
        refused(*inject, "cores", "delay", says="cores sends no messages")
        refused(*inject, "udp", "leak", says="udp gave no buffer back for 2 s")
        refused(EFT, "inject", "--name", "nosuch", "tcp", "kill", says="there is no running stack `nosuch`")
        refused(*inject, "tcp", says="<KIND>", status=2)
        # Another user's programs may not inject, and neither may programs on the stack.
        tool = scene.dir / "eft"
        shutil.copy(EFT, tool)
        for directory in (tool, *tool.parents):
            if directory.stat().st_mode & 0o5 != 0o5:
                tool = shutil.copy(EFT, "/tmp/eft-lt-inject")
                scene.undo("rm", "-f", "/tmp/eft-lt-inject")
                break
        refused("setpriv", "--reuid", "65534", "--clear-groups", tool, *inject[1:], "tcp", "kill", says="no permission")
        check(all(c["deaths"] == 0 for c in stack.components().values()), "a refused fault killed somebody")
        check("flip-heap" in sh(EFT, "inject", "--list").stdout, "the list")


CASES = [
    deadly_faults_end_no_connection,
    changed_code_is_found,
    unprotected_servers_do_not_look_at_their_code,
    a_fault_in_a_shared_process_ends_no_connection,
    who_accuses_without_evidence_is_replaced,
    wrong_injections_are_refused,
]
