"""More connections than most programs ever have."""

import resource
import time

from harness import Scene, Stack, check
from watchdog import Connections, listening_echo

MANY = 10_000
# Descriptors of a process that are kept for everything except connections.
RESERVE = 500


def raise_files():
    """Raises the limit of open files as far as possible; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def share_of_a_cpu(stack):
    """The share of a CPU that all servers together take, over a while."""
    cpu = lambda: sum(c["cpu_ms"] for c in stack.components().values()) / 1e3
    before, since = cpu(), time.monotonic()
    time.sleep(1.5)
    return (cpu() - before) / (time.monotonic() - since)


def ten_thousand_connections_of_one_program():
    with Scene("crowd") as scene:
        count = min(MANY, raise_files() - RESERVE)
        stack = Stack(scene)
        listening_echo(scene, stack)
        connections = Connections(stack, count)
        began = time.monotonic()
        connections.use()
        used = time.monotonic()
        # Timers of the last exchange expire once, one connection's after the other's, for as long as that took.
        busy = [share_of_a_cpu(stack)]
        while min(busy) >= 0.02 and time.monotonic() < used + (used - began) + 7.5:
            busy.append(share_of_a_cpu(stack))
        check(min(busy) < 0.02, f"{count} idle connections cost these shares of a CPU: {busy}")
        for component in ("tcp", "sockets", "ip"):
            stack.kill(component)
            connections.use()
        print(f"        {count} connections, {min(busy):.4f} of a CPU while they are idle", flush=True)


CASES = [ten_thousand_connections_of_one_program]
