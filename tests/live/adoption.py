"""The supervisor is killed alone: the servers run on, and the next `eft up` adopts them."""

import os
import signal
import threading
import time

from crashes import keepers, only_keeper
from harness import Scene, Stack, check, end, sha256_of, wait_until
from programs import PORT, nginx_config
from watchdog import ECHO, Connections, make_endless

KEEP = ("--keep", "20")


def supervisor_is_killed(stack):
    os.kill(stack.process.pid, signal.SIGKILL)
    stack.process.wait()


def pids(stack):
    return {name: c["pid"] for name, c in stack.components().items()}


def the_next_supervisor_adopts_the_servers():
    with Scene("adoption") as scene:
        stack = Stack(scene, extra=KEEP)
        _, want = scene.file("www/big", 48 << 20)
        config = nginx_config(scene, stack.address, 1)
        scene.start(*stack.on("nginx", "-c", str(config)))
        scene.start(*stack.on("python3", "-c", ECHO.format(address=stack.address)), log="echo.log")
        stack.listening(PORT)
        stack.listening(7300)
        connections = Connections(stack, 50)
        connections.use()
        result = {}
        client = threading.Thread(target=lambda: result.update(
            sum=sha256_of(stack.beside("curl", "-sf", "--limit-rate", "8M", f"http://{stack.address}:{PORT}/big"))))
        client.start()
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
        client.join(60)
        check(result.get("sum") == want, "the download differs, or its connection ended")
        Connections(stack, 10).use()
        end(stack.process)
        check(not keepers(stack), "a keeper outlives a stack that ended on purpose")


def servers_that_nobody_adopts_end():
    with Scene("adoption-never") as scene:
        stack = Stack(scene, extra=("--keep", "1"))
        servers = [pid for pid in pids(stack).values() if pid]
        time.sleep(0.2)
        supervisor_is_killed(stack)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in servers), 10, "the servers to end")
        wait_until(lambda: not keepers(stack), 10, "the keeper to end")


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


CASES = [the_next_supervisor_adopts_the_servers, servers_that_nobody_adopts_end,
         a_server_that_hangs_ends_when_neither_supervisor_nor_keeper_lives, servers_with_other_options_start_again]
