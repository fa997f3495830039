"""Processes that wait to take the place of servers that die."""

import os
import shutil
import signal

import harness
from harness import TOPOLOGIES, Scene, Stack, check, end, processes_of_eft, wait_until
from watchdog import Connections, listening_echo


def waiting(stack):
    """The component that each standby waits for, by the standby's PID."""
    return {c["standby"]: name for name, c in stack.components().items() if c["standby"]}


def all_wait(stack):
    # cores, and components that the topology does not name, have no standby.
    wait_until(lambda: len(waiting(stack)) == len(stack.components()) - 1, 10, "a standby for each server")


def a_standby_takes_the_place_of_a_dead_server():
    with Scene("standby") as scene:
        stack = Stack(scene, topology=TOPOLOGIES / "standby.toml", extra=("--keep", "20"))
        listening_echo(scene, stack)
        connections = Connections(stack, 100)
        all_wait(stack)
        check(not stack.components()["cores"]["standby"], "cores has one")
        for name, before in stack.components().items():
            if name == "cores":
                continue
            stack.kill(name)
            after = stack.components()[name]
            check(after["pid"] == before["standby"], f"{name} was started, not replaced: {before}, {after}")
            check(after["recovery"]["took_us"] > 0 and after["deaths"] == 1, f"{after}")
            connections.use()
        all_wait(stack)
        log = stack.process.log.read_text()
        check("tcp works again" in log and "KiB of state" in log, f"what was said: {log}")
        # A standby that dies while it waits costs nothing, and is replaced.
        before = stack.components()["tcp"]
        os.kill(before["standby"], signal.SIGKILL)
        wait_until(lambda: stack.components()["tcp"]["standby"] not in (None, before["standby"]), 10, "another standby")
        check(stack.components()["tcp"]["pid"] == before["pid"], "the server went with its standby")
        # A standby died just now, unnoticed: its server is started as without a standby.
        before = stack.components()["ip"]
        os.kill(before["standby"], signal.SIGKILL)
        stack.kill("ip")
        connections.use()
        # After an update the standby runs the new program, too.
        program = scene.dir / "eft"
        shutil.copy(harness.EFT, program)
        stack.eft("update", "tcp", "--binary", str(program))
        wait_until(lambda: (pid := stack.components()["tcp"]["standby"]) and os.readlink(f"/proc/{pid}/exe") == str(program),
                   10, "a standby of the new program")
        stack.kill("tcp")
        check(os.readlink(f"/proc/{stack.components()['tcp']['pid']}/exe") == str(program), "tcp is of the old program")
        connections.use()
        # The supervisor dies: its standbys end, and the next supervisor has its own.
        old = set(waiting(stack))
        stack.process.kill()
        stack.process.wait()
        stack = Stack(scene, topology=TOPOLOGIES / "standby.toml", extra=("--keep", "20"))
        all_wait(stack)
        check(not old & set(waiting(stack)), "standbys of the supervisor before")
        connections.use()
        end(stack.process)
        check(not processes_of_eft(f"serve .*--stack {stack.name} "), "processes are left")


def a_shared_process_has_one_standby():
    with Scene("standby-edge") as scene:
        topology = scene.dir / "topology.toml"
        text = (TOPOLOGIES / "edge.toml").read_text()
        topology.write_text(text.replace('name = "ip"\n', 'name = "ip"\nstandby = true\n', 1))
        stack = Stack(scene, topology=topology)
        wait_until(lambda: waiting(stack), 10, "a standby")
        before = stack.components()
        of = {name.split(":")[0]: c["standby"] for name, c in before.items()}
        check(len({of["ip"], of["filter"], of["nic"]}) == 1 and not of["tcp"], f"{of}")
        stack.kill("filter")
        after = stack.components()
        check(all(after[c]["pid"] == of["ip"] for c in after if c.split(":")[0] in ("ip", "filter", "nic")), f"{after}")


CASES = [a_standby_takes_the_place_of_a_dead_server, a_shared_process_has_one_standby]
