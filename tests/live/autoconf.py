"""Addresses, routes and name servers that a stack gets from the network: dnsmasq is the router and the server."""

import json
import os
import re
import signal
import socket
import subprocess
import time

from harness import EFT, Scene, Stack, check, end, sh, wait_until

ROUTER, NETWORK = "fd77:5::1", "fd77:5::"
DOMAIN = "lab.example"


class Learner(Stack):
    """A stack on a TAP device without any configured address. The device, with its host's addresses, is there before the stack,
    and so is the server."""

    def __init__(self, scene, methods, *host, name="lt", options=(), extra=()):
        self.scene, self.name, self.kind, self.netns = scene, name, "tap", None
        self.device, self.program, self.env = f"eft{name}", EFT, None
        self.options = ["--name", name, "--device", f"tap:{self.device}"]
        self.options += [word for method in methods for word in ("--address", method)]
        sh("ip", "tuntap", "add", self.device, "mode", "tap", "vnet_hdr")
        scene.undo("ip", "link", "del", self.device)
        sh("sysctl", "-qw", f"net.ipv6.conf.{self.device}.disable_ipv6=0", f"net.ipv6.conf.{self.device}.accept_dad=0")
        sh("ip", "link", "set", self.device, "up")
        for address in host:
            sh("ip", "addr", "add", address, "dev", self.device, *(["nodad"] if ":" in address else []))
        self.server, self.files = None, 0
        self.serve(*options)
        self.up(*extra)

    def up(self, *extra, **options):
        """It is ready when it has its addresses."""
        super().up(*extra, patience=60, **options)

    def serve(self, *options):
        """Starts dnsmasq with these options, in place of the one before."""
        if self.server:
            end(self.server)
        self.files += 1
        self.server = self.scene.start(
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root",
            f"--pid-file={self.scene.dir}/dnsmasq.pid", f"--dhcp-leasefile={self.scene.dir}/leases", "--log-dhcp",
            "--log-facility=-", f"--interface={self.device}", "--bind-dynamic", "--except-interface=lo", f"--domain={DOMAIN}",
            *options, log=f"dnsmasq-{self.files}.log")

    def learnt(self, version=6):
        """The addresses that it has learnt."""
        interfaces = json.loads(self.eft("addr", f"-{version}", "--json").stdout)["interfaces"]
        return [address for i in interfaces for address in i["learnt"]]

    def learns(self, version=6, beginning=NETWORK, seconds=30):
        """Waits for an address that begins so."""
        found = lambda: next((a for a in self.learnt(version) if a["address"].startswith(beginning)), None)
        entry = wait_until(found, seconds, f"an address that begins with {beginning}")
        self.address = entry["address"].split("/")[0]
        return entry

    def answers(self, address=None):
        ping = ["ping", "-6" if ":" in (address or self.address) else "-4", "-c1", "-W1", address or self.address]
        wait_until(lambda: sh(*ping, ok=False).returncode == 0, 20, f"an answer from {address or self.address}")

    def resolv_conf(self):
        return sh(*self.on("cat", "/etc/resolv.conf")).stdout


def advertise(network, *more, name=f"server.{DOMAIN}", at=ROUTER, time="1h"):
    return ["--enable-ra", "--ra-param=*,10,1200", f"--dhcp-range={network},slaac,64,{time}",
            f"--dhcp-option=option6:dns-server,[{at}]", f"--dhcp-option=option6:domain-search,{DOMAIN}",
            f"--host-record={name},{at}", *more]


def router(device, address=ROUTER):
    sh("ip", "addr", "add", f"{address}/64", "dev", device, "nodad")


def web(scene, where, size=3_000_000):
    """A server of a file on the Linux side. Returns the file's checksum."""
    _, digest = scene.file("blob", size)
    scene.start("python3", "-m", "http.server", "--bind", "::", "8080", cwd=scene.dir, log="web.log")
    wait_until(lambda: sh("curl", "-sfgI", f"http://{where}:8080/blob", ok=False).returncode == 0, 10, "the web server")
    return digest


def fetches(stack, url, digest, *options):
    out = stack.scene.dir / "out"
    sh(*stack.on("curl", "-sfg", "-m", "30", *options, "-o", out, url))
    check(sh("sha256sum", out).stdout.split()[0] == digest, f"{url}: the bytes differ")


# Sends lines and checks that each comes back, until it is told to stop by a file.
TALK = """
import os, socket, sys, time
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
print(peer.getsockname()[0], flush=True)
count = 0
while not os.path.exists(sys.argv[3]):
    line = b"%d\\n" % count + b"x" * 10000
    peer.sendall(line)
    back = b""
    while len(back) < len(line):
        piece = peer.recv(65536)
        assert piece, "ended"
        back += piece
    assert back == line
    count += 1
    time.sleep(0.002)
print("done", count, flush=True)
"""

ECHO = """
import socket, sys, threading
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listening", flush=True)
def serve(peer):
    while data := peer.recv(65536):
        peer.sendall(data)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
"""


class Talk:
    """A connection from the stack over which bytes go both ways until it is stopped."""

    def __init__(self, stack, address, port=7071):
        scene = stack.scene
        server = scene.start("python3", "-c", ECHO, address, str(port), log=f"echo-{port}.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the echo server")
        self.stop = scene.dir / f"stop-{port}"
        self.process = scene.start(*stack.on("python3", "-c", TALK, address, str(port), self.stop), log=f"talk-{port}.log")
        said = lambda: re.match(r"(\S+)\n", self.process.log.read_text()) or self.process.poll() is not None
        wait_until(said, 20, "the connection")
        check(self.process.poll() is None, self.process.log.read_text())
        self.source = self.process.log.read_text().split()[0]

    def ends_well(self):
        self.stop.touch()
        self.process.wait(60)
        check(self.process.returncode == 0 and "done" in self.process.log.read_text(), self.process.log.read_text())


def slaac_gives_address_route_and_names():
    with Scene("slaac") as scene:
        stack = Learner(scene, ["slaac"], f"{ROUTER}/64", options=advertise(NETWORK))
        entry = stack.learns()
        check(entry["source"] == "slaac" and 3000 < entry["valid_s"] <= 3600, entry)
        stack.answers()
        digest = web(scene, f"[{ROUTER}]")
        # The router's name server and search list, and its default route: the address lies beyond.
        fetches(stack, "http://server:8080/blob", digest)
        seen = stack.resolv_conf()
        check(f"nameserver {ROUTER}" in seen and f"search {DOMAIN}" in seen, seen)
        sh("ip", "addr", "add", "fd99::1/128", "dev", "lo")
        fetches(stack, "http://[fd99::1]:8080/blob", digest)
        routes = json.loads(stack.eft("route", "-6", "--json").stdout)["routes"]
        check(any(r["destination"] == "::/0" and r.get("source") == "slaac" and r["valid_s"] <= 1200 for r in routes), routes)
        check("slaac, " in stack.eft("route").stdout and "VALID" in stack.eft("addr").stdout, "what is shown")
        # Nothing of it is lost with any server, nor a byte of a connection.
        talk = Talk(stack, ROUTER)
        check(talk.source == stack.address, f"{talk.source} is not {stack.address}")
        for component in ("ip", "udp", "tcp", "filter", "sockets", f"nic:{stack.device}", "ip"):
            stack.kill(component)
            stack.answers()
        stack.eft("update", "--all", timeout=120)
        stack.answers()
        stack.up("--take-over", log="2")
        stack.answers()
        check(stack.learns()["address"].split("/")[0] == talk.source, "the successor has another address")
        talk.ends_well()
        # Another life of the stack has the same address in this network (RFC 7217).
        before = stack.address
        end(stack.process)
        stack.up(log="3")
        stack.learns()
        check(stack.address == before, f"{before} became {stack.address}")


def a_new_prefix_is_used_and_the_old_connection_lives_on():
    with Scene("slaac-renumbering") as scene:
        stack = Learner(scene, ["slaac"], f"{ROUTER}/64", options=advertise(NETWORK))
        stack.learns()
        stack.answers()
        talk = Talk(stack, ROUTER)
        # The old prefix is deprecated: its lifetime is not over, but new connections use the other (RFC 6724, rule 3).
        stack.serve(*advertise("fd77:6::", f"--dhcp-range={NETWORK},slaac,64,deprecated"))
        router(stack.device, "fd77:6::1")
        stack.learns(beginning="fd77:6:")
        old = lambda: next((a for a in stack.learnt() if a["address"].startswith(NETWORK)), None)
        wait_until(lambda: old()["preferred_s"] == 0, 30, "the old prefix to be deprecated")
        check(old()["valid_s"] != 0, old())
        stack.answers()
        new = Talk(stack, "fd77:6::1", 7072)
        check(new.source.startswith("fd77:6:"), f"a new connection comes from {new.source}")
        sh("ip", "addr", "add", "fd98::1/128", "dev", "lo")
        far = Talk(stack, "fd98::1", 7073)
        check(far.source.startswith("fd77:6:"), f"a connection through the router comes from {far.source}")
        for each in (talk, new, far):
            each.ends_well()


GATEWAY4, NETWORK4 = "10.77.5.1", "10.77.5."


def lend4(*more, time="2m"):
    return [f"--dhcp-range={NETWORK4}10,{NETWORK4}50,255.255.255.0,{time}", f"--dhcp-option=option:dns-server,{GATEWAY4}",
            f"--host-record=server.{DOMAIN},{GATEWAY4}", *more]


def dhcp4_lends_renews_and_gets_back():
    with Scene("dhcp4") as scene:
        stack = Learner(scene, ["dhcp4"], f"{GATEWAY4}/24", options=lend4("--dhcp-option=option:T1,30s"))
        # It was not ready before.
        check(stack.learnt(4), "ready without an address")
        entry = stack.learns(4, NETWORK4)
        check(entry["source"] == "dhcp4" and 60 < entry["valid_s"] <= 120, entry)
        stack.answers()
        digest = web(scene, GATEWAY4)
        fetches(stack, "http://server:8080/blob", digest)
        seen = stack.resolv_conf()
        check(f"nameserver {GATEWAY4}" in seen and f"search {DOMAIN}" in seen, seen)
        # By the lent gateway.
        sh("ip", "addr", "add", "10.99.5.1/32", "dev", "lo")
        fetches(stack, "http://10.99.5.1:8080/blob", digest)
        talk = Talk(stack, GATEWAY4)
        check(talk.source == stack.address, f"{talk.source} is not {stack.address}")
        for component in ("ip", "udp", "tcp", "filter", "sockets", f"nic:{stack.device}", "ip"):
            stack.kill(component)
            stack.answers()
        stack.up("--take-over", log="2")
        stack.answers()
        # After the time that it named the server is asked for more; the successors know when.
        left = lambda: next(a["valid_s"] for a in stack.learnt(4))
        least = left()
        def renewed():
            nonlocal least
            now = left()
            least, before = min(least, now), least
            return now > before + 20
        wait_until(renewed, 100, "the lease to be renewed")
        check(60 < least <= 90, f"renewed {least} s before its end")
        check(stack.learns(4, NETWORK4)["address"].split("/")[0] == talk.source, "another address")
        talk.ends_well()
        # The end of the stack gives the address back; which one the next life gets is for the server to say.
        before = stack.address
        end(stack.process)
        wait_until(lambda: f"DHCPRELEASE({stack.device}) {before}" in stack.server.log.read_text(), 5, "the release")
        stack.up(log="3")
        stack.learns(4, NETWORK4)


def lend6(*more):
    return ["--enable-ra", "--ra-param=*,10,1200", f"--dhcp-range={NETWORK}100,{NETWORK}1ff,64,1h",
            f"--dhcp-option=option6:dns-server,[{ROUTER}]", f"--dhcp-option=option6:domain-search,{DOMAIN}",
            f"--host-record=server.{DOMAIN},{ROUTER}", *more]


def dhcp6_lends_where_routers_say_so():
    with Scene("dhcp6") as scene:
        stack = Learner(scene, ["auto"], f"{ROUTER}/64", f"{GATEWAY4}/24", options=[*lend6(), *lend4()])
        check(stack.learnt(4) and stack.learnt(6), "ready without an address of each version")
        entry = stack.learns()
        check(entry["source"] == "dhcp6" and 3000 < entry["valid_s"] <= 3600, entry)
        stack.answers()
        six, digest = stack.address, web(scene, f"[{ROUTER}]")
        stack.learns(4, NETWORK4)
        stack.answers()
        fetches(stack, "http://server:8080/blob", digest)
        fetches(stack, f"http://[{ROUTER}]:8080/blob", digest, "--interface", six)
        sh("ip", "addr", "add", "fd97::1/128", "dev", "lo")
        talk = Talk(stack, "fd97::1")
        check(talk.source == six, f"{talk.source} is not {six}")
        for component in ("ip", "udp", "tcp", f"nic:{stack.device}"):
            stack.kill(component)
            stack.answers(six)
        talk.ends_well()
        # The nic's successor tries the link-local address out (RFC 4862 §5.4); until then nothing is sent from it.
        time.sleep(3)
        end(stack.process)
        wait_until(lambda: re.search(r"DHCPRELEASE.* 00:04:", stack.server.log.read_text()), 5, "the release by its DUID")
        stack.up(log="2")
        stack.learns()
        check(stack.address == six, f"{six} became {stack.address}")


def a_stack_is_ready_after_a_while_without_a_server():
    with Scene("dhcp4-none") as scene:
        stack = Learner(scene, ["dhcp4"], f"{GATEWAY4}/24", extra=("--wait-online", "2"))
        check(not stack.learnt(4), "an address from nowhere")
        said = stack.process.log.read_text()
        check(f"ready, though {stack.device} has no address by dhcp4 yet" in said, said)
        stack.serve(*lend4())
        stack.learns(4, NETWORK4, seconds=60)
        stack.answers()


CASES = [a_stack_is_ready_after_a_while_without_a_server, slaac_gives_address_route_and_names, a_new_prefix_is_used_and_the_old_connection_lives_on,
         dhcp4_lends_renews_and_gets_back, dhcp6_lends_where_routers_say_so]
