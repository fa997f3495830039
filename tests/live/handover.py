"""A stack is restarted, or another `eft up` replaces it: connections survive."""

import os
import signal
import subprocess
import time

from crashes import keepers
from harness import EFT, TOPOLOGIES, Scene, Stack, addresses, check, end, in_url, of_one_version, over_ipv6, sh, wait_until
from loads import Download
from programs import PORT
from watchdog import ECHO, listening_echo


def restart(stack, turn):
    """Restarts like `systemctl restart` with the unit: the signal, the end, a start."""
    stack.process.send_signal(signal.SIGUSR2)
    check(stack.process.wait(10) == 0, "the end of a handover is no failure")
    stack.up("--keep", "20", log=f"-{turn}")


def take_over(stack, turn):
    old = stack.process
    stack.up("--keep", "20", "--take-over", log=f"-{turn}")
    check(old.wait(10) == 0, "the end of a handover is no failure")


def put_otherwise_into_processes(stack, turn):
    """Connections survive while the assignment of components to processes changes."""
    name, processes = (("edge", 4), ("stack", 2), ("default", 6), ("whole", 1))[turn % 4]
    old = stack.process
    stack.up("--keep", "20", "--take-over", "--topology", str(TOPOLOGIES / f"{name}.toml"), log=f"-{turn}")
    check(old.wait(10) == 0, "the end of a handover is no failure")
    components = stack.components()
    pids = {c["pid"] for name, c in components.items() if name != "cores"}
    check(len(pids) == processes, f"{components}")


def goes_on(kind, again, topology=None):
    with Scene("handover") as scene:
        stack = Stack(scene, kind=kind, topology=topology, extra=("--keep", "20"))
        echo = listening_echo(scene, stack)
        scene.start(*stack.beside("python3", "-c", ECHO.format(address=stack.host)), log="far-echo.log")
        client = scene.start(*stack.on("python3", "-c", CLIENT.format(address=stack.host)), log="client.log")
        wait_until(client.log.read_text, 10, "the first answers")
        download = Download(scene, stack, "8M", 48 << 20)
        waiting = scene.start(*stack.beside("python3", "-c", CLIENT.format(address=stack.address)), log="far-client.log")
        for turn in range(4):
            time.sleep(0.5)
            before = stack.components()
            began = time.monotonic()
            again(stack, turn)
            print(f"        ready again after {1000 * (time.monotonic() - began):.0f} ms", flush=True)
            after = stack.components()
            check(all(after[c]["generation"] == before[c]["generation"] + 1 for c in before), f"{after}")
            # The predecessor's keeper ends when the new one has everything.
            wait_until(lambda: len(keepers(stack)) == 1, 5, "one keeper")
        download.finish()
        for asking in (client, waiting):
            asked = asking.log.read_text()
            wait_until(lambda: asking.log.read_text() != asked, 10, "a connection to go on")
            check(asking.poll() is None, asking.log.read_text()[-500:])
            pauses = [float(line) for line in asking.log.read_text().splitlines()]
            print(f"        longest pauses of one that asks all the time: {sorted(pauses)[-4:]} ms", flush=True)
        # In all other respects it is the same stack: new programs, new connections, and an end on purpose.
        sh(*stack.beside("curl", "-sf", "-o", "/dev/null", f"http://{in_url(stack.address)}:{PORT}/hello"))
        check("hello" in sh(*stack.on("curl", "-sf", f"http://{in_url(stack.address)}:{PORT}/hello")).stdout, "no new program")
        end(client)
        end(waiting)
        stack.process.terminate()
        check(stack.process.wait(10) == 0, "it ends on SIGTERM")
        check(not keepers(stack), "a keeper outlives a stack that ended on purpose")
        check(not tables(), f"rules are left: {tables()}")
        end(echo)


# Sends requests all the time on one connection; prints the longest wait of each tenth of a second, in milliseconds.
CLIENT = """
import socket, time
while True:
    try: c = socket.create_connection(("{address}", 7300)); break
    except OSError: time.sleep(0.1)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
n, longest, shown = 0, 0, time.monotonic()
while True:
    n += 1
    word, began, got = b"%64d" % n, time.monotonic(), b""
    c.sendall(word)
    while len(got) < 64:
        piece = c.recv(64 - len(got))
        if not piece: raise SystemExit("the connection ended")
        got += piece
    if got != word: raise SystemExit("it says something else")
    now = time.monotonic()
    longest = max(longest, now - began)
    if now - shown > 0.1:
        print("%.1f" % (1000 * longest), flush=True)
        longest, shown = 0, now
"""


def tables():
    return [line for line in sh("nft", "list", "tables").stdout.splitlines() if "eft_" in line]


def a_restart_ends_no_connection():
    goes_on("tap", restart)


def a_restart_ends_no_connection_over_veth():
    goes_on("veth", restart)


def another_up_takes_over():
    goes_on("tap", take_over)


def another_up_takes_over_over_veth():
    goes_on("veth", take_over)


def a_restart_of_shared_processes_ends_no_connection():
    goes_on("tap", restart, TOPOLOGIES / "edge.toml")


def another_up_puts_components_otherwise_into_processes():
    goes_on("tap", put_otherwise_into_processes)


@of_one_version("its stacks are linked by shared memory and name their addresses")
def a_pair_outlives_a_restart_of_either_side():
    with Scene("handover-pair") as scene:
        path = scene.dir / "pair"

        def command(side):
            return [EFT, "up", "--name", f"ltp{side}", "--device", f"pair:{path}", "--address", f"10.81.3.{side}/24", "--keep", "20"]

        def ready(process):
            wait_until(lambda: "ready" in process.log.read_text() or process.poll() is not None, 10, "a stack to be ready")
            check(process.poll() is None, process.log.read_text())
        stacks = {side: scene.start(*command(side), log=f"up-{side}.log") for side in (1, 2)}
        for process in stacks.values():
            ready(process)

        def on(side, code):
            return [EFT, "run", "--name", f"ltp{side}", "--", "python3", "-c", code]
        scene.start(*on(1, ECHO.format(address="10.81.3.1")), log="echo.log")
        client = scene.start(*on(2, CLIENT.format(address="10.81.3.1")), log="client.log")
        wait_until(lambda: client.log.read_text(), 10, "the first answer")
        for turn, side in enumerate((1, 2, 1)):
            stacks[side].send_signal(signal.SIGUSR2)
            check(stacks[side].wait(10) == 0, "the end of a handover is no failure")
            stacks[side] = scene.start(*command(side), log=f"up-{side}-{turn}.log")
            ready(stacks[side])
            asked = client.log.read_text()
            wait_until(lambda: client.log.read_text() != asked, 10, "the connection to go on")
            check(client.poll() is None, client.log.read_text())
        for process in stacks.values():
            end(process)


def a_stop_that_nobody_follows_leaves_nothing():
    with Scene("handover-none") as scene:
        stack = Stack(scene, kind="veth", extra=("--keep", "1"))
        listening_echo(scene, stack)
        check(tables(), "the kernel was never kept from answering")
        waiting = subprocess.Popen(stack.beside("python3", "-c", CLIENT.format(address=stack.address)), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(0.3)
            # A stack with other addresses may not take over.
            other = [o.replace(addresses(77)[0], addresses(99)[0]) for o in stack.options]
            refused = sh(EFT, "up", *other, "--take-over", ok=False)
            check(refused.returncode == 1 and "other devices, addresses or sizes" in refused.stderr, refused.stderr)
            check(stack.process.poll() is None, "the stack ended all the same")
            stack.process.send_signal(signal.SIGUSR2)
            check(stack.process.wait(10) == 0, "the end of a handover is no failure")
            check(tables(), "meanwhile the kernel would reset the connections")
            wait_until(lambda: not keepers(stack), 10, "the keeper to give up")
            check(not tables(), f"rules are left: {tables()}")
            check(not os.path.exists(f"/run/eft/{stack.name}"), "the folder is left")
            # There is no stack to take over from: this is an ordinary start.
            stack.up("--take-over", log="-again")
            wait_until(lambda: waiting.poll() is not None, 20, "the client to hear that its connection is over")
            check("reset" in waiting.stderr.read(), "how the connection ended")
        finally:
            end(waiting)


CASES = [
    a_restart_ends_no_connection, a_restart_ends_no_connection_over_veth, another_up_takes_over, another_up_takes_over_over_veth,
    a_restart_of_shared_processes_ends_no_connection, another_up_puts_components_otherwise_into_processes,
    a_pair_outlives_a_restart_of_either_side, a_stop_that_nobody_follows_leaves_nothing,
]
CASES += [over_ipv6(a_restart_ends_no_connection)]
