"""The far end of a program's descriptor is lost between sockets and the transport."""

import os
import time

import inside
from harness import Scene, Stack, check, of_one_version, wait_until

# Calls of x86_64.
RECVFROM = 45
MSG_DONTWAIT = 0x40
MESSAGES = 5

# It waits in the kernel, for the stack's socket and for one of the kernel's descriptors.
PROGRAM = """
import os, select, socket, sys, time
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7500))
pipe, _ = os.pipe()
print("bound", flush=True)
while True:
    readable, _, _ = select.select([s, pipe], [], [])
    print(s.recv(100).decode(), flush=True)
"""

SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'heard', (sys.argv[1], 7500))"


def take_all_messages(it):
    """Takes out of the process's sockets what it has not read. A socket whose peer has ended has no messages, however often it is
    asked."""
    sockets = [fd for fd in os.listdir(f"/proc/{it.pid}/fd") if os.readlink(f"/proc/{it.pid}/fd/{fd}").startswith("socket:")]
    for fd in sockets:
        for _ in range(MESSAGES):
            it.call(RECVFROM, int(fd), 0, 0, MSG_DONTWAIT, 0, 0)


@of_one_version("its program names IPv4")
def a_far_end_that_the_supervisor_loses_comes_again():
    check(inside.AVAILABLE, "this test knows the registers and calls of x86_64 alone")
    with Scene("far-end-lost") as scene:
        stack = Stack(scene)
        go = scene.dir / "go"
        program = scene.start(*stack.on("python3", "-c", PROGRAM, stack.address, go), log="program.log")
        time.sleep(1)
        with inside.Inside(stack.process.pid) as it:
            go.touch()
            wait_until(lambda: "bound" in program.log.read_text(), 10, "the program to bind while nobody supervises")
            time.sleep(0.2)
            take_all_messages(it)
        scene.start(*stack.beside("python3", "-c", SEND, stack.address)).wait(10)
        time.sleep(0.3)
        check("heard" not in program.log.read_text(), "nothing was lost")
        wait_until(lambda: "heard" in program.log.read_text(), 20, "the program to be woken")
        check(all(c["deaths"] == 0 for c in stack.components().values()), f"{stack.components()}")


CASES = [a_far_end_that_the_supervisor_loses_comes_again]
