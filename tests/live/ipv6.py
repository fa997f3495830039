"""IPv6: unmodified programs on the stack and on Linux, in both directions, with all kinds of addresses."""

import json
import re
import socket

from harness import EFT, Scene, Stack, check, end, sh, wait_until

OUR, HOST = "fd77:3::2", "fd77:3::1"


class DualStack(Stack):
    """A stack with an address of each version."""

    def __init__(self, scene, extra=(), **options):
        kind = options.get("kind") or Stack.usual_kind
        extra = ["--address", f"{OUR}/64", *(["--host-address", f"{HOST}/64"] if kind == "tap" else []), *extra]
        super().__init__(scene, extra=extra, **options)
        if self.netns:
            for setting in ("accept_dad=0", "disable_ipv6=0"):
                sh(*self.beside("sysctl", "-qw", f"net.ipv6.conf.far.{setting}"))
            sh("ip", "-n", self.netns, "addr", "add", f"{HOST}/64", "dev", "far", "nodad")
        wait_until(lambda: sh(*self.beside("ping", "-6", "-c1", "-W1", OUR), ok=False).returncode == 0, 10,
                   f"an answer from {OUR}")

    def host_link_local(self):
        """The Linux side's link-local address."""
        device = "far" if self.netns else self.device
        found = lambda: re.search(r"inet6 (fe80\S+)/64 scope link(?! tentative)",
                                  sh(*self.beside("ip", "-6", "addr", "show", "dev", device)).stdout)
        return wait_until(found, 10, "a link-local address").group(1)

    def link_local(self):
        """The stack's link-local address, as a program on it sees it."""
        shown = sh(*self.on("ip", "-6", "addr")).stdout
        return re.search(r"inet6 (fe80\S+)/64", shown).group(1)


def ipv6_echo_is_answered(kind=None):
    with Scene(f"ipv6-echo-{kind}") as scene:
        stack = DualStack(scene, kind=kind)
        device = "far" if stack.netns else stack.device
        for address in (OUR, f"{stack.link_local()}%{device}"):
            # In one packet, in fragments, and as large as possible.
            for size in (56, 5000, 60000):
                done = sh(*stack.beside("ping", "-6", "-c3", "-i0.2", "-W2", "-s", size, address))
                check(" 0% packet loss" in done.stdout, done.stdout)
        check(stack.counter("ip", "echo_replies") >= 18, "replies are counted")
        check(stack.counter("ip", "reassembled") >= 12, "fragments are put together")


def ipv6_packet_device_answers():
    ipv6_echo_is_answered("packet")


def download(stack, where, url, size, digest, options=()):
    out = stack.scene.dir / "out"
    sh(*where("curl", "-s", "-g", "-m", "30", *options, "-o", out, url))
    check(out.stat().st_size == size and sh("sha256sum", out).stdout.split()[0] == digest, f"{url}: the bytes differ")


def server(scene, command, log):
    return scene.start(*command, log=log, cwd=scene.dir)


def ipv6_files_both_ways():
    with Scene("ipv6-files") as scene:
        stack = DualStack(scene)
        size = 20_000_000
        _, digest = scene.file("blob", size)
        # On the stack: it receives by both IP versions, on the kernel's loopback as well.
        server(scene, stack.on("python3", "-m", "http.server", "--bind", "::", "8080"), "on.log")
        stack.listening(8080)
        device = "far" if stack.netns else stack.device
        for host in (f"[{OUR}]", stack.address, f"[{stack.link_local()}%25{device}]"):
            download(stack, stack.beside, f"http://{host}:8080/blob", size, digest)
        for host in ("127.0.0.1", "[::1]"):
            download(stack, lambda *command: [str(c) for c in command], f"http://{host}:8080/blob", size, digest)
        # Another program has the port at one of the kernel's addresses.
        with socket.socket() as other:
            other.bind(("127.0.0.2", 8080))
            other.listen()
        log = (scene.dir / "on.log").read_text()
        for peer in (HOST, f"::ffff:{stack.host}", "::ffff:127.0.0.1", "::1"):
            check(f"\n{peer} - -" in "\n" + log, f"the server knows {peer}: {log}")
        # On Linux.
        server(scene, stack.beside("python3", "-m", "http.server", "--bind", "::", "8081"), "beside.log")
        stack.listening_beside(8081)
        for host in (f"[{HOST}]", stack.host, f"[::ffff:{stack.host}]", f"[{stack.host_link_local()}%25{stack.device}]"):
            download(stack, stack.on, f"http://{host}:8081/blob", size, digest)
        # ip and tcp die meanwhile.
        child = scene.start(*stack.on("curl", "-s", "-m", "60", "--limit-rate", "8M", "-o", scene.dir / "slow",
                                      f"http://[{HOST}]:8081/blob"))
        wait_until(lambda: (scene.dir / "slow").exists(), 10, "the first bytes")
        for component in ("ip", "tcp", "filter", "nic:0" if "nic:0" in stack.components() else "ip"):
            stack.kill(component)
        check(child.wait(60) == 0, "a download survives deaths")
        check(sh("sha256sum", scene.dir / "slow").stdout.split()[0] == digest, "its bytes are the same")


def ipv6_nginx_serves_both():
    with Scene("ipv6-nginx") as scene:
        stack = DualStack(scene)
        size = 5_000_000
        scene.dir.chmod(0o755)
        _, digest = scene.file("blob", size)
        conf = scene.dir / "nginx.conf"
        # Two sockets on one port: one for each version.
        conf.write_text(f"daemon off; user root; pid {scene.dir}/pid; error_log {scene.dir}/error.log;\n"
                        "events {}\nhttp { access_log off; server { listen 80; listen [::]:80 ipv6only=on;"
                        f" root {scene.dir}; }} }}\n")
        scene.start(*stack.on("nginx", "-c", conf))
        stack.listening(80)
        for host in (f"[{OUR}]", stack.address):
            download(stack, stack.beside, f"http://{host}/blob", size, digest)


# Prints one word for each assertion that holds; others raise.
SOCKETS = """
import errno, socket, sys
ours, ours4, host, device = sys.argv[1:5]
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
def six(kind, only=None):
    s = socket.socket(socket.AF_INET6, kind)
    if only is not None:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    return s
def fails(what, call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        assert e.errno == what, (errno.errorcode[e.errno], errno.errorcode[what], arguments)
    else:
        raise AssertionError(("no error", arguments))
for kind in (TCP, UDP):
    # One for each version, or one for both.
    a, b = six(kind, 1), socket.socket(socket.AF_INET, kind)
    a.bind(("::", 5000)); b.bind(("0.0.0.0", 5000))
    assert a.getsockname() == ("::", 5000, 0, 0) and a.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1
    fails(errno.EINVAL, a.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    a.close(); b.close()
    a, b = six(kind, 0), socket.socket(socket.AF_INET, kind)
    a.bind(("::", 5001))
    fails(errno.EADDRINUSE, b.bind, ("0.0.0.0", 5001))
    a.close(); b.close()
    # Addresses of the wrong kind, of others, and without their link.
    fails(errno.EINVAL, six(kind, 1).bind, ("::ffff:" + ours4, 5002))
    fails(errno.ENETUNREACH, six(kind, 1).connect, ("::ffff:" + ours4, 5002))
    fails(errno.EADDRNOTAVAIL, six(kind).bind, (host, 5002))
    fails(errno.EINVAL, six(kind).bind, ("fe80::1", 5002))
    fails(errno.EINVAL, six(kind).connect, ("fe80::1", 5002))
    print("kind")
# To oneself, over the stack; and the accepted socket's names.
l = six(TCP); l.bind((ours, 5003)); l.listen()
c = six(TCP); c.connect((ours, 5003))
s, peer = l.accept()
assert peer == c.getsockname() and s.getsockname() == (ours, 5003, 0, 0) and peer[0] == ours
assert s.family == socket.AF_INET6
c.sendall(b"x"); assert s.recv(1) == b"x"
print("self")
# A dual-stack datagram socket hears both, and says who.
d = six(UDP, 0); d.bind(("::", 5004))
d.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
d.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
e = six(UDP, 0); e.bind(("::", 0))
for to in (ours, "::ffff:" + ours4):
    e.sendto(b"y", (to, 5004))
    data, control, _, peer = d.recvmsg(100, 200)
    assert data == b"y" and peer[:2] == (to, e.getsockname()[1]), peer
    found = {kind: value for _, kind, value in control}
    assert found[socket.IPV6_PKTINFO][:16] == socket.inet_pton(socket.AF_INET6, to), control
    assert (socket.IPV6_HOPLIMIT in found) == (to == ours)
print("dual")
index = socket.if_nametoindex(device)
import fcntl, os
own = [a for a in os.popen("ip -6 addr show dev " + device).read().split() if a.startswith("fe80")][0].split("/")[0]
l = six(TCP); l.bind((own, 5005, 0, index)); l.listen()
assert l.getsockname() == (own, 5005, 0, index), l.getsockname()
c = six(TCP); c.connect((own, 5005, 0, index))
assert l.accept()[1][3] == index
print("zone")
"""


def ipv6_sockets_are_as_on_linux():
    with Scene("ipv6-sockets") as scene:
        stack = DualStack(scene)
        program = scene.dir / "sockets.py"
        program.write_text(SOCKETS)
        done = sh(*stack.on("python3", program, OUR, stack.address, HOST, stack.device))
        check(done.stdout.split() == ["kind", "kind", "self", "dual", "zone"], done.stdout + done.stderr)


ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", int(sys.argv[1])))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65536)
    s.sendto(data, peer)
"""

ASK = """
import os, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], int(sys.argv[2])))
same = 0
for i in range(100):
    data = os.urandom(1 + i * 370 % 30000)
    s.send(data)
    same += s.recv(65536) == data
print(same)
"""


def ipv6_datagrams_both_ways():
    with Scene("ipv6-datagrams") as scene:
        stack = DualStack(scene)
        for server, client, address in ((stack.on, stack.beside, OUR), (stack.beside, stack.on, HOST)):
            process = scene.start(*server("python3", "-c", ECHO, 6000))
            wait_until(lambda: process.log.read_text() == "ready\n", 10, "the server")
            done = sh(*client("python3", "-c", ASK, address, 6000))
            check(done.stdout == "100\n", f"{address}: {done.stdout}")
            end(process)
        # No socket listens: the error comes back.
        refused = "import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(5); " \
                  f"s.connect(('{HOST}', 6001)); s.send(b'x'); s.recv(1)"
        done = sh(*stack.on("python3", "-c", refused), ok=False)
        check("ConnectionRefusedError" in done.stderr, done.stderr)
        done = sh(*stack.beside("python3", "-c", refused.replace(HOST, OUR)), ok=False)
        check("ConnectionRefusedError" in done.stderr, done.stderr)


def ipv6_rules():
    with Scene("ipv6-rules") as scene:
        stack = DualStack(scene)
        rules = scene.dir / "pf.conf"
        rules.write_text("block in all\npass in inet6 proto tcp to port 8080 keep state\n")
        stack.eft("pf", "-f", str(rules))
        scene.file("blob", 1000)
        server(scene, stack.on("python3", "-m", "http.server", "--bind", "::", "8080"), "on.log")
        listens = lambda: any(s["local"].endswith(":8080") for s in json.loads(stack.eft("ss", "--json").stdout)["sockets"])
        wait_until(listens, 10, "the server")
        url = f"http://[{OUR}]:8080/blob"
        sh(*stack.beside("curl", "-s", "-g", "-m", "10", "-o", "/dev/null", url))
        refused = sh(*stack.beside("curl", "-s", "-m", "1", "-o", "/dev/null", f"http://{stack.address}:8080/blob"), ok=False)
        check(refused.returncode != 0, "IPv4 is blocked")
        check(sh(*stack.beside("ping", "-6", "-c1", "-W1", OUR), ok=False).returncode != 0, "echo is blocked")
        check(f"{HOST}[" in stack.eft("pf", "-s", "states").stdout, "the state is shown")


def ipv6_bad_addresses_are_refused():
    with Scene("ipv6-refused"):
        for arguments, words in (
            (["--address", "ff02::1/64"], "cannot be a stack's address"),
            (["--address", "::1/128"], "cannot be a stack's address"),
            (["--address", "fd77::2/129"], "expected ADDRESS/PREFIX"),
            (["--address", "fd77::2/64", "--mtu", "1000"], "1280"),
            (["--address", "fd77::2/64", "--gateway", "fd78::1"], "none of the stack's networks"),
            (["--address", "fd77::2/64", "--gateway", "fd77::1", "--gateway", "fd77::3"], "second one of its IP version"),
            (["--address", "fd77::2/64", "--host-address", "fd77::2/64"], "stack's own address"),
        ):
            done = sh(EFT, "up", "--name", "v6bad", "--device", "tap:eftv6bad", *arguments, ok=False)
            check(done.returncode != 0 and words in done.stderr, f"{arguments}: {done.stderr}")


def ipv6_names():
    """A name server that is reached by IPv6: both kinds of addresses, the better one first."""
    with Scene("ipv6-names") as scene:
        stack = DualStack(scene, extra=["--nameserver", HOST])
        scene.start(*stack.beside("dnsmasq", "-k", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
                                  "--user=root", f"--listen-address={HOST}", "--bind-interfaces",
                                  f"--host-record=both.test,{stack.host},{HOST}", f"--host-record=six.test,{HOST}",
                                  f"--host-record=four.test,{stack.host}", "--host-record=wide.test,2001:db8::1,10.9.9.9"))
        ask = "import socket, sys\nfor name in sys.argv[1:]:\n    print(name, " \
              "*dict.fromkeys(a[4][0] for a in socket.getaddrinfo(name, 80)))"
        names = ["both.test", "six.test", "four.test", "wide.test"]
        answer = lambda: sh(*stack.on("python3", "-c", ask, *names), ok=False).stdout
        # RFC 6724: a unique local address ranks below an IPv4 address, and so does an address of another kind than
        # ours.
        expected = f"both.test {stack.host} {HOST}\nsix.test {HOST}\nfour.test {stack.host}\nwide.test 10.9.9.9 2001:db8::1\n"
        wait_until(lambda: answer() == expected, 10, f"these names: {expected}, not {answer()}")
        back = f"import socket; print(socket.gethostbyaddr('{HOST}')[0])"
        check(sh(*stack.on("python3", "-c", back)).stdout.strip() in ("both.test", "six.test"), "the name of an address")
        scene.file("blob", 1000)
        server(scene, stack.beside("python3", "-m", "http.server", "--bind", "::", "8081"), "beside.log")
        stack.listening_beside(8081)
        for version, name, peer in (("-6", "both.test", OUR), ("-4", "both.test", stack.address), ("-v", "six.test", OUR)):
            sh(*stack.on("curl", "-s", version, "-m", "10", "-o", "/dev/null", f"http://{name}:8081/blob?{version}"))
            log = (scene.dir / "beside.log").read_text()
            said = [line.split()[0].removeprefix("::ffff:") for line in log.splitlines() if f"?{version} " in line]
            check(said == [peer], f"curl {version} {name}: {log}")


CASES = [
    ipv6_echo_is_answered, ipv6_packet_device_answers, ipv6_files_both_ways, ipv6_nginx_serves_both,
    ipv6_sockets_are_as_on_linux, ipv6_datagrams_both_ways, ipv6_rules, ipv6_bad_addresses_are_refused, ipv6_names,
]
