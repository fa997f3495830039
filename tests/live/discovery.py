"""IPv6 neighbour discovery with Linux: redirects of a router, the groups of own addresses, and labels of flows, on the wire."""

import ipaddress
import re

from harness import Scene, check, sh, wait_until
from ipv6 import HOST, OUR, DualStack

FAR, PORT = "fd99::9", 7413

ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7413))
print("bound", flush=True)
while True:
    s.sendto(*s.recvfrom(2000))
"""

ASK = """
import socket, sys, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(0.5)
s.connect((sys.argv[1], 7413))
for n in range(20):
    try:
        s.send(b"%d" % n)
        print(s.recv(100).decode())
        break
    except (TimeoutError, ConnectionError, OSError):
        time.sleep(0.1)
"""


# IPV6_MTU is 24, IPV6_FLOWINFO_SEND 33, IPV6_AUTOFLOWLABEL 70.
WISH = """
import socket, sys
V6 = socket.IPPROTO_IPV6
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(V6, 24, 1280)
s.setsockopt(V6, 33, 1)
s.sendto(bytes(1600), (sys.argv[1], 9, 0x12345, 0))
s = socket.socket(socket.AF_INET6)
s.setsockopt(V6, 33, 1)
s.settimeout(5)
s.connect_ex((sys.argv[1], 9, 0x54321, 0))
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(V6, 70, 0)
s.connect((sys.argv[1], 9, 0xfffff, 0))
assert s.getpeername()[2] == 0, s.getpeername()
s.send(b"no label")
s.setsockopt(V6, 33, 1)
assert s.getsockopt(V6, 24) == 1500
s.connect((sys.argv[1], 9, 0xabcde, 0))
assert s.getpeername()[2] == 0xabcde, s.getpeername()
try:
    s.send(b"a label")
except ConnectionRefusedError:
    s.send(b"a label")
print(s.getsockname()[1])
"""


def redirects_of_a_router_are_followed():
    """Linux routes, and knows a better router on the same link, which itself it cannot reach: only who follows its redirect can."""
    with Scene("redirects") as scene:
        stack = DualStack(scene, kind="packet")
        better = "eft-ltbetter"
        sh("ip", "netns", "add", better)
        scene.undo("ip", "netns", "del", better)
        sh(*stack.beside("ip", "link", "add", "link", "far", "name", "near", "type", "macvlan", "mode", "private"))
        sh(*stack.beside("ip", "link", "set", "near", "netns", better))
        on_better = lambda *command: ["ip", "netns", "exec", better, *command]
        for command in ("ip addr add fd77:3::7/64 dev near nodad", "ip addr add fe80::7/64 dev near nodad",
                        f"ip addr add {FAR}/128 dev lo nodad", "ip link set lo up", "ip link set near up"):
            sh(*on_better(*command.split()))
        for setting in ("all.forwarding=1", "far.forwarding=1"):
            sh(*stack.beside("sysctl", "-qw", f"net.ipv6.conf.{setting}"))
        sh(*stack.beside("ip", "-6", "route", "add", f"{FAR}/128", "via", "fe80::7", "dev", "far"))
        stack.eft("route", "add", f"{FAR}/128", "via", stack.host_link_local(), "dev", stack.device)
        echo = scene.start(*on_better("python3", "-c", ECHO, FAR), log="echo.log")
        wait_until(lambda: "bound" in echo.log.read_text(), 10, "a server beyond the better router")
        answer = sh(*stack.on("python3", "-c", ASK, FAR), timeout=60).stdout
        check(answer and int(answer) > 0, f"the answer {answer!r}: the first is lost")
        check(stack.counter("ip", "redirected") > 0, "no redirect was followed")


def solicited(address):
    """The group in which an address is asked for (RFC 4291 §2.7.1)."""
    low = int(ipaddress.IPv6Address(address)) & 0xffffff
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("ff02::1:ff00:0")) | low))


def groups_and_flows_on_the_wire():
    """As Linux tells a switch that snoops, and labels the packets of a connection."""
    with Scene("discovery") as scene:
        stack = DualStack(scene, kind="packet")
        echo = scene.start(*stack.beside("python3", "-c", ECHO, HOST), log="echo.log")
        capture = scene.start(*stack.beside("tcpdump", "-Z", "root", "-l", "-n", "-v", "-i", "far", "ip6"), log="tcpdump.log")
        wait_until(lambda: "listening on" in capture.log.read_text() and "bound" in echo.log.read_text(), 10, "tcpdump")
        # A device that comes up again hears everything again.
        sh("ip", "link", "set", stack.device, "down")
        sh("ip", "link", "set", stack.device, "up")
        link_local = stack.link_local()
        groups = [solicited(OUR), solicited(link_local)]
        reported = lambda: [g for g in groups if re.search(rf"{link_local} > ff02::16.*multicast listener report v2[^\n]*\n?[^\n]*{g}",
                                                           capture.log.read_text())]
        wait_until(lambda: len(reported()) == 2, 20, f"reports of {groups}: {capture.log.read_text()[-3000:]}")
        for _ in range(2):
            check(sh(*stack.on("python3", "-c", ASK, HOST)).stdout, "no answer")
        sent = rf"IP6 \(flowlabel (0x[0-9a-f]+),[^\n]*\n?[^\n]*{OUR}\.(\d+) > {HOST}\.{PORT}"
        flows = lambda: {port: label for label, port in re.findall(sent, capture.log.read_text())}
        wait_until(lambda: len(flows()) == 2, 10, f"labels of two flows: {capture.log.read_text()[-2000:]}")
        check(len(set(flows().values())) == 2, f"labels by port: {flows()}")


def wishes_of_programs_on_the_wire():
    """Labels that programs choose, and fragments of a length that they allow: eft's packets are as Linux's."""
    with Scene("wishes") as scene:
        stack = DualStack(scene, kind="packet")
        capture = scene.start(*stack.beside("tcpdump", "-Z", "root", "-l", "-n", "-v", "-i", "far", "ip6"), log="tcpdump.log")
        wait_until(lambda: "listening on" in capture.log.read_text(), 10, "tcpdump")
        for ours, theirs, run in ((OUR, HOST, stack.on), (HOST, OUR, stack.beside)):
            port = sh(*run("python3", "-c", WISH, theirs)).stdout.split()[-1]
            head, rest = r"IP6 \(", rf"[^\n]*\n?[^\n]*{ours}"
            for what in (rf"{head}flowlabel 0x12345,[^\n]*Fragment \(44\) payload length: 1240\){rest} >", rf"{head}flowlabel 0x54321,{rest}\.\d+ > {theirs}\.9: Flags \[S\]",
                         rf"{head}hlim{rest}\.{port} > {theirs}\.9: ", rf"{head}flowlabel 0xabcde,{rest}\.{port} > {theirs}\.9: "):
                wait_until(lambda: re.search(what, capture.log.read_text()), 10, f"{what} of {ours}: {capture.log.read_text()[-3000:]}")


CASES = [redirects_of_a_router_are_followed, groups_and_flows_on_the_wire, wishes_of_programs_on_the_wire]
