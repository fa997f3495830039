"""Servers are killed under load."""

import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import threading
import time

import harness
from harness import TOPOLOGIES, Scene, Stack, check, end, family, processes_of_eft, over_ipv6, sh, wait_until
from loads import Download, Load
from watchdog import Connections


def retransmissions(stack):
    # A tail loss probe shows that an acknowledgment was late, not that a segment was lost.
    tcp = stack.counters()["tcp"]
    return tcp["retransmitted_segments"] + tcp["retransmit_timeouts"] - tcp["loss_probes"]


def drops(stack):
    """Every counted drop of every component."""
    return {f"{c}.{k}": v for c, all in stack.counters().items() for k, v in all.items() if "drop" in k and v}


def linux_counters(stack, *names):
    """Counters of the far side's kernel."""
    out = sh(*stack.beside("nstat", "-asz", *names)).stdout
    return {line.split()[0]: int(line.split()[1]) for line in out.splitlines() if line.startswith("Tcp")}


def linux_retransmissions(stack):
    return linux_counters(stack, "TcpRetransSegs")["TcpRetransSegs"]


def why_linux_retransmitted(stack):
    return linux_counters(stack, "TcpExtTCPTimeouts", "TcpExtTCPLossProbes", "TcpExtTCPFastRetrans", "TcpExtTCPDSACKRecv",
                          "TcpExtTCPSpuriousRTOs", "TcpExtTCPLostRetransmit", "TcpExtTCPSlowStartRetrans")


def killed_under_load(component, rounds, kind="tap", lossless=True, topology=None):
    with Scene(f"crash-{component}") as scene:
        # A network namespace on the far side, so that its counters count only this test.
        stack = Stack(scene, kind=kind, topology=topology)
        name = component if component != "nic" else f"nic:{stack.device}"
        before, linux_before = retransmissions(stack), linux_retransmissions(stack)
        result = {}

        def upload():
            # The load runs into the stack, so that arriving segments are covered, too.
            sink = stack.on("python3", "-c", f"""
import hashlib, socket
s = socket.create_server(("{stack.address}", 7100), family={family(stack.address)}); print("listening", flush=True)
c, _ = s.accept(); h = hashlib.sha256()
while d := c.recv(1 << 16): h.update(d)
print(h.hexdigest())""")
            server = scene.start(*sink, log="sink.log")
            # The server accepts a single connection, so it must not be tested by a connect.
            wait_until(lambda: "listening" in server.log.read_text(), 10, "the sink to listen")
            data = b"eft" * (1 << 20)
            sh(*stack.beside("python3", "-c", f"""
import socket, time
c = socket.create_connection(("{stack.address}", 7100))
for _ in range(16):
    c.sendall(b"eft" * (1 << 20)); time.sleep(0.1)
"""), timeout=60)
            server.wait(30)
            result["up"] = server.log.read_text().split()[-1] == hashlib.sha256(data * 16).hexdigest()

        download = Download(scene, stack, "60M", 128 << 20)
        uploading = threading.Thread(target=upload)
        uploading.start()
        for _ in range(rounds):
            time.sleep(0.5)
            stack.kill(name)
        uploading.join()
        download.finish()
        died_together(stack, component, rounds)
        check(result.get("up"), "the upload differs")
        after, linux_after = retransmissions(stack), linux_retransmissions(stack)
        if lossless:
            check(after == before, f"killing {component} caused {after - before} retransmissions of ours")
            # On a busy machine Linux may send a probe because an acknowledgment is late, or take a late frame for lost:
            # neither shows a loss. A DSACK reports data that arrived twice, up to 64 KB in 45 segments. Frames are late
            # even without a kill, and between two kernels, too: a veth pair queues them on the sender's CPU, and they
            # overtake each other when the sender moves (with one queue for all, no frame was late in 60 runs, but
            # acknowledgments were, by more than a time-out).
            why = why_linux_retransmitted(stack)
            lost = linux_after - linux_before - why["TcpExtTCPLossProbes"] - 45 * why["TcpExtTCPDSACKRecv"]
            check(lost <= 0, f"killing {component} caused {lost} retransmissions of Linux: {why}; drops: {drops(stack)}")


def died_together(stack, component, deaths):
    """Checks that exactly the components that share a process with this one died and were reborn."""
    components = stack.components()
    killed = next(c for name, c in components.items() if name.split(":")[0] == component)
    for name, c in components.items():
        shares = c is killed or (c["process"] is not None and c["process"] == killed["process"])
        check((c["pid"] == killed["pid"]) == shares, f"{name} has the wrong process: {components}")
        check(c["deaths"] == (deaths if shares else 0), f"{name} died {c['deaths']} times: {components}")


def ip_killed_under_load():
    killed_under_load("ip", 3, kind="veth")


def filter_killed_under_load():
    killed_under_load("filter", 3, kind="veth")


def nic_killed_under_load():
    killed_under_load("nic", 3, kind="veth", lossless=False)


def edge_killed_under_load():
    # Three components share one process: if one is killed, all die. The nic loses the frames that it had sent and not
    # reported.
    for component in ("ip", "nic"):
        killed_under_load(component, 3, kind="veth", lossless=False, topology=TOPOLOGIES / "edge.toml")


def stack_killed_under_load():
    killed_under_load("tcp", 3, kind="tap", lossless=False, topology=TOPOLOGIES / "stack.toml")


def whole_killed_under_load():
    killed_under_load("sockets", 3, kind="veth", lossless=False, topology=TOPOLOGIES / "whole.toml")


def tcp_killed_under_load():
    # After its rebirth, everything sent and not acknowledged counts as lost, so tcp retransmits.
    killed_under_load("tcp", 6, kind="veth", lossless=False)


def sockets_killed_under_load():
    # sockets carries no data. The test asserts that no program notices, not a count.
    killed_under_load("sockets", 2, kind="veth", lossless=False)


def udp_killed_under_load():
    with Scene("crash-udp") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", f"""
import socket
s = socket.socket({family(stack.address)}, socket.SOCK_DGRAM); s.bind(("{stack.address}", 7200))
while True:
    d, a = s.recvfrom(2048); s.sendto(d, a)"""), log="echo.log")
        ask = f"""
import socket, sys
s = socket.socket({family(stack.address)}, socket.SOCK_DGRAM); s.settimeout(0.2)
got = 0
for i in range(300):
    s.sendto(b"%d" % i, ("{stack.address}", 7200))
    try:
        # An answer that comes too late is not the next one's.
        while s.recvfrom(2048)[0] != b"%d" % i:
            pass
        got += 1
    except TimeoutError:
        pass
print(got)"""
        wait_until(lambda: int(sh(*stack.beside("python3", "-c", ask.replace("300", "3"))).stdout) > 0, 10, "the echo")
        done = {}
        client = threading.Thread(target=lambda: done.update(n=int(sh(*stack.beside("python3", "-c", ask)).stdout)))
        client.start()
        for _ in range(2):
            time.sleep(0.02)
            stack.kill("udp")
        client.join()
        # Datagrams in flight may be lost; the socket survives.
        check(done["n"] >= 280, f"only {done['n']} of 300 datagrams came back")


def a_component_that_always_dies_is_tried_again():
    with Scene("again") as scene:
        stack = Stack(scene)
        download = Download(scene, stack, "2M", 8 << 20)
        deaths = 0
        deadline = time.monotonic() + 60
        while deaths < 8 and time.monotonic() < deadline:
            filter = stack.components()["filter"]
            if filter["pid"]:
                os.kill(filter["pid"], signal.SIGKILL)
            deaths = filter["deaths"]
            time.sleep(0.02)
        check(deaths >= 8, f"it died only {deaths} times")
        # While the component is away, the rest of the stack answers.
        parts = stack.components()
        check(all(parts[c]["state"] == "running" for c in parts if c != "filter"), f"{parts}")
        wait_until(lambda: stack.components()["filter"]["state"] == "running", 30, "the filter to be tried again")
        download.finish()
        log = stack.process.log.read_text()
        check("filter died 8 times in a row: it is started again in 1.6 s" in log, f"what was said: {log[-1500:]}")
        reports = list(pathlib.Path(f"/run/eft/{stack.name}/crashes").glob("filter-*.txt"))
        check(len(reports) > 3, f"crash reports: {reports}")
        report = min(reports).read_text()
        check("signal 9" in report and "last words" in report, f"a crash report: {report!r}")


def a_start_that_fails_is_tried_again():
    with Scene("start") as scene:
        # An upgrade replaces the program file while the stack runs.
        program = scene.dir / "eft"
        shutil.copy(harness.EFT, program)
        stack = Stack(scene, program=str(program))
        other = scene.dir / "other"
        other.write_text("another version")
        other.rename(program)
        stack.kill("ip")
        program.unlink()
        stack.kill("filter")
        # No server can be started: no descriptor is left, or so few that the set-up fails halfway.
        supervisor = stack.process.pid
        old, _ = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        _, hard = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        for spare in range(0, 30, 7):
            before = stack.components()["filter"]
            count = len(os.listdir(f"/proc/{supervisor}/fd"))
            resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (count + spare, hard))
            os.kill(before["pid"], signal.SIGKILL)
            time.sleep(0.3)
            check(stack.process.poll() is None, f"the stack ended: {stack.process.log.read_text()[-1000:]}")
            resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (old, hard))
            wait_until(lambda: (c := stack.components()["filter"])["generation"] > before["generation"]
                       and c["state"] == "running", 30, f"the filter to come back ({spare} descriptors were left)")
        parts = stack.components()
        check(all(parts[c]["deaths"] == (c == "ip") for c in parts if c != "filter"), f"others died: {parts}")
        check("filter cannot be started" in stack.process.log.read_text(), "it never failed to start")
        check("0% packet loss" in sh("ping", "-c", "2", "-i", "0.2", "-W", "2", stack.address).stdout, "no answer afterwards")


def a_start_without_memory_is_tried_again():
    """For half a second the supervisor may map nothing more, and whatever it starts as much as is said."""
    with Scene("start-memory") as scene:
        stack = Stack(scene)
        supervisor = stack.process.pid
        old = resource.prlimit(supervisor, resource.RLIMIT_AS)
        for component, left in (("filter", 0), ("udp", 1 << 20), ("sockets", 8 << 20), ("ip", 32 << 20)):
            before = stack.components()
            resource.prlimit(supervisor, resource.RLIMIT_AS, (left, old[1]))
            os.kill(before[component]["pid"], signal.SIGKILL)
            time.sleep(0.5)
            check(stack.process.poll() is None, f"the stack ended: {stack.process.log.read_text()[-1000:]}")
            said = stack.process.log.read_text()
            check(f"{component} works again" not in said, f"{component} needs no more than {left} bytes")
            resource.prlimit(supervisor, resource.RLIMIT_AS, old)
            wait_until(lambda: stack.components()[component]["state"] == "running", 30, f"{component} to come back ({left} bytes were left)")
            others = {name: c["deaths"] for name, c in stack.components().items() if name != component}
            check(others == {name: before[name]["deaths"] for name in others}, f"others died with {component}: {others}")
            check(f"{component} cannot be started" in said or f"{component} died " in said, f"it does not say why: {said[-1000:]}")
        check("0% packet loss" in sh("ping", "-c", "2", "-i", "0.2", "-W", "2", stack.address).stdout, "no answer afterwards")


def a_start_that_hangs_is_ended():
    with Scene("start-hangs") as scene:
        trap = scene.dir / "trap"
        source = scene.dir / "trap.c"
        source.write_text("""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* In a server's program alone, and once: what the trap says. */
__attribute__((constructor)) static void fall(int argc, char **argv) {
    const char *trap = getenv("EFT_TRAP");
    if (argc < 3 || strcmp(argv[1], "serve") || strcmp(argv[2], "filter") || !trap || unlink(trap)) return;
    if (strstr(trap, "spin")) for (;;) __asm__ volatile("");
    for (;;) pause();
}""")
        library = scene.dir / "trap.so"
        sh("gcc", "-shared", "-fPIC", "-o", str(library), str(source))
        for kind, said in (("spin", "it computes"), ("sleep", "it sleeps")):
            trap = scene.dir / f"trap-{kind}"
            stack = Stack(scene, name=f"lt{kind}"[:6], env=os.environ | {"LD_PRELOAD": str(library), "EFT_TRAP": str(trap)})
            before = stack.components()["filter"]
            trap.touch()
            os.kill(before["pid"], signal.SIGKILL)
            wait_until(lambda: (c := stack.components()["filter"])["generation"] == before["generation"] + 2
                       and c["state"] == "running", 60, f"the start that hangs ({kind}) to be ended")
            check(f"filter hangs: {said}" in stack.process.log.read_text(), "what was said")
            end(stack.process)


def kill_all_but_the_keeper(stack):
    for pid in [stack.process.pid] + [c["pid"] for c in stack.components().values()]:
        os.kill(pid, signal.SIGKILL)
    stack.process.wait()


def everything_but_the_keeper_is_killed():
    with Scene("keeper") as scene:
        load = Load(scene)
        stack, connections = load.stack, load.connections
        rules = scene.dir / "rules"
        rules.write_text("pass all\nblock in proto tcp from any to any port 9999\n")
        stack.eft("pf", "-f", str(rules))
        shown = stack.eft("pf", "-s", "rules").stdout
        for turn in range(3):
            time.sleep(0.5)
            before = stack.components()
            kill_all_but_the_keeper(stack)
            began = time.monotonic()
            stack = Stack(scene, extra=("--keep", "20"))
            print(f"        ready again after {1000 * (time.monotonic() - began):.0f} ms", flush=True)
            after = stack.components()
            check(all(after[c]["generation"] == before[c]["generation"] + 1 for c in before), f"{after}")
            connections.use()
        check(stack.eft("pf", "-s", "rules").stdout == shown, "the rules are others")
        load.download.finish()
        # New programs and connections work, too.
        Connections(stack, 10).use()
        # The keeper is killed: another one takes its place and has everything.
        keeper = only_keeper(stack)
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: keepers(stack) not in ([], [keeper]), 10, "another keeper")
        time.sleep(0.3)
        stack.process.kill()
        stack.process.wait()
        stack = Stack(scene, extra=("--keep", "20"))
        connections.use()
        # A stack with other addresses is another stack, and reports that.
        stack.process.kill()
        stack.process.wait()
        stack = Stack(scene, net=79, extra=("--keep", "20"))
        check("had other devices, addresses or sizes" in stack.process.log.read_text(), stack.process.log.read_text())
        end(stack.process)
        check(not keepers(stack), "a keeper outlives a stack that ended on purpose")


def keepers(stack):
    return [int(line.split()[0]) for line in processes_of_eft(f"keep --stack {stack.name} ")]


def ends_for_good(stack, how):
    """Sends a signal that ends the supervisor, and waits until its servers have ended, too."""
    stack.process.send_signal(how)
    stack.process.wait(10)
    wait_until(lambda: not keepers(stack), 30, "the keeper to give up")


def only_keeper(stack):
    found = keepers(stack)
    check(len(found) == 1, f"keepers: {found}")
    return found[0]


# Counts the signals that announce urgent data.
SIGNALLED = """
import fcntl, os, signal, socket, sys
count = 0
def heard(*_):
    global count
    count += 1
    print("signal", count, flush=True)
signal.signal(signal.SIGURG, heard)
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 7500), family=family)
connection, _ = listener.accept()
fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
print("owned", flush=True)
while True:
    signal.pause()
"""

URGENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], 7500))
while sys.stdin.readline():
    s.send(b"!", socket.MSG_OOB)
"""


def urgent_signals_outlast_servers():
    with Scene("crash-urgent") as scene:
        stack = Stack(scene)
        server = scene.start(*stack.on("python3", "-c", SIGNALLED, stack.address), log="signalled.log")
        stack_listens = lambda: any(s["local"].endswith(":7500") for s in json.loads(stack.eft("ss", "--json").stdout)["sockets"])
        wait_until(stack_listens, 10, "the server")
        client = subprocess.Popen(stack.beside("python3", "-c", URGENT, stack.address), stdin=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: "owned" in server.log.read_text(), 10, "a connection")
            for n, victim in enumerate(("tcp", "sockets", "tcp", None, "ip", None), 1):
                client.stdin.write("\n")
                client.stdin.flush()
                wait_until(lambda: f"signal {n}\n" in server.log.read_text(), 10, f"signal {n}: {server.log.read_text()}")
                if victim:
                    stack.kill(victim)
            check(server.log.read_text().count("signal") == 6, server.log.read_text())
        finally:
            end(client)


CASES = [
    everything_but_the_keeper_is_killed,
    tcp_killed_under_load, ip_killed_under_load, filter_killed_under_load, nic_killed_under_load, sockets_killed_under_load,
    edge_killed_under_load, stack_killed_under_load, whole_killed_under_load, udp_killed_under_load, a_component_that_always_dies_is_tried_again, a_start_that_fails_is_tried_again, a_start_without_memory_is_tried_again,
    a_start_that_hangs_is_ended, urgent_signals_outlast_servers,
]
CASES += map(over_ipv6, (tcp_killed_under_load, udp_killed_under_load))
