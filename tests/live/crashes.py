"""Servers killed while they work."""

import hashlib
import os
import pathlib
import signal
import threading
import time

from harness import Scene, Stack, check, sh, sha256_of, wait_until
from programs import PORT, nginx_config


def retransmissions(stack):
    tcp = stack.counters()["tcp"]
    return sum(v for k, v in tcp.items() if "retransmit" in k)


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


def killed_under_load(component, rounds, kind="tap", lossless=True):
    with Scene(f"crash-{component}") as scene:
        # A namespace of its own on the far side, so that its counters are this test's alone.
        stack = Stack(scene, kind=kind)
        _, want = scene.file("www/big", 128 << 20)
        config = nginx_config(scene, stack.address, 1)
        scene.start(*stack.on("nginx", "-c", str(config)))
        stack.listening(PORT)
        url = f"http://{stack.address}:{PORT}/big"
        name = component if component != "nic" else f"nic:{stack.device}"
        before, linux_before = retransmissions(stack), linux_retransmissions(stack)
        result = {}

        def download():
            result["sum"] = sha256_of(stack.beside("curl", "-sf", "--limit-rate", "60M", url))

        def upload():
            # Into the stack, so that arriving segments are covered too.
            sink = stack.on("python3", "-c", f"""
import hashlib, socket
s = socket.create_server(("{stack.address}", 7100)); c, _ = s.accept(); h = hashlib.sha256()
while d := c.recv(1 << 16): h.update(d)
print(h.hexdigest())""")
            server = scene.start(*sink, log="sink.log")
            stack.listening_quietly = None
            time.sleep(0.7)
            data = b"eft" * (1 << 20)
            sh(*stack.beside("python3", "-c", f"""
import socket, time
c = socket.create_connection(("{stack.address}", 7100))
for _ in range(16):
    c.sendall(b"eft" * (1 << 20)); time.sleep(0.1)
"""), timeout=60)
            server.wait(30)
            result["up"] = server.log.read_text().strip() == hashlib.sha256(data * 16).hexdigest()

        threads = [threading.Thread(target=download), threading.Thread(target=upload)]
        for t in threads:
            t.start()
        for _ in range(rounds):
            time.sleep(0.5)
            stack.kill(name)
        for t in threads:
            t.join()
        check(result.get("sum") == want, "the download differs")
        check(result.get("up"), "the upload differs")
        after, linux_after = retransmissions(stack), linux_retransmissions(stack)
        if lossless:
            check(after == before, f"killing {component} caused {after - before} retransmissions of ours")
            # On a busy machine Linux may send a probe because an acknowledgment is late; it says nothing was lost.
            why = why_linux_retransmitted(stack)
            lost = linux_after - linux_before - why["TcpExtTCPLossProbes"]
            check(lost <= 0, f"killing {component} caused {lost} retransmissions of Linux: {why}; drops: {drops(stack)}")


def ip_killed_under_load():
    killed_under_load("ip", 3, kind="veth")


def filter_killed_under_load():
    killed_under_load("filter", 3, kind="veth")


def nic_killed_under_load():
    killed_under_load("nic", 3, kind="veth", lossless=False)


def sockets_killed_under_load():
    # It carries no data; what is claimed is that nobody notices, not a count.
    killed_under_load("sockets", 2, kind="veth", lossless=False)


def udp_killed_under_load():
    with Scene("crash-udp") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("{stack.address}", 7200))
while True:
    d, a = s.recvfrom(2048); s.sendto(d, a)"""), log="echo.log")
        ask = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)
got = 0
for i in range(300):
    s.sendto(b"%d" % i, ("{stack.address}", 7200))
    try:
        got += s.recvfrom(2048)[0] == b"%d" % i
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
        # Datagrams in flight may be lost; the socket lives on.
        check(done["n"] >= 280, f"only {done['n']} of 300 datagrams came back")


def a_component_that_always_dies_is_given_up():
    with Scene("give-up") as scene:
        stack = Stack(scene)
        deadline = time.monotonic() + 60
        while stack.process.poll() is None and time.monotonic() < deadline:
            try:
                pid = stack.components()["filter"]["pid"]
                if pid:
                    os.kill(pid, signal.SIGKILL)
            except Exception:
                pass
            time.sleep(0.02)
        check(stack.process.poll() not in (None, 0), "the stack did not give up")
        last = stack.process.log.read_text().strip().splitlines()[-1]
        check("filter" in last and "given up" in last, f"its last word: {last!r}")
        reports = pathlib.Path(last.rsplit(" ", 1)[1])
        scene.undo("rm", "-r", reports.parent)
        check(len(list(reports.glob("filter-*.txt"))) > 3, f"no crash reports in {reports}")
        report = min(reports.glob("filter-*.txt")).read_text()
        check("signal 9" in report and "last words" in report, f"a crash report: {report!r}")


CASES = [
    ip_killed_under_load, filter_killed_under_load, nic_killed_under_load, sockets_killed_under_load,
    udp_killed_under_load, a_component_that_always_dies_is_given_up,
]
