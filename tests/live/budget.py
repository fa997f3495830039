"""Which system calls servers may make while they carry bulk data."""

import subprocess
import time

from harness import Scene, Stack, check, end, wait_until, sh

# Calls that sleep, wake, or let others run; none that moves data. The handler that counts ticks of CPU time, for the
# watchdog, returns by rt_sigreturn.
QUIET = {"futex", "futex_waitv", "sched_yield", "clock_gettime", "restart_syscall", "rt_sigreturn", "strace"}
# ip wakes the NIC, which sleeps on descriptors, through its eventfd.
BELL = {"write"}
# tcp also posts readiness into applications' descriptors (see docs/decisions.md).
READINESS = {"sendto", "recvfrom", "shutdown"}


def system_calls(pid, seconds):
    """The names of the system calls that a process makes."""
    trace = subprocess.Popen(["strace", "-c", "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    trace.send_signal(2)
    _, text = trace.communicate(timeout=20)
    rows = [line.split() for line in text.splitlines()]
    return {row[-1] for row in rows if len(row) >= 5 and row[0].replace(".", "").isdigit() and row[-1] != "total"}


def servers_between_program_and_device_make_no_io_calls():
    with Scene("no-io") as scene:
        stack = Stack(scene)
        server = scene.start(*stack.beside("iperf3", "-s", "--forceflush", "-B", stack.host, "-p", "5203"), log="iperf3.log")
        # A client that only tested the port would keep the server busy.
        wait_until(lambda: "Server listening" in server.log.read_text(), 10, "iperf3 to listen")
        load = scene.start(*stack.on("iperf3", "-c", stack.host, "-p", "5203", "-t", "30"))
        moved = stack.counter("tcp", "sent_bytes")
        wait_until(lambda: stack.counter("tcp", "sent_bytes") > moved + (1 << 20), 10, "data to flow")
        for name, allowed in (("ip", QUIET | BELL), ("filter", QUIET), ("tcp", QUIET | READINESS)):
            calls = system_calls(stack.components()[name]["pid"], 1.5)
            check(calls, f"strace saw nothing of {name}")
            check(calls <= allowed, f"{name} makes other calls under bulk load: {sorted(calls - allowed)}")
        end(load)


CASES = [servers_between_program_and_device_make_no_io_calls]
