"""Addresses and routes that change while a stack runs. What programs see of them is Python's, libc's and iproute2's view."""

import json
import socket
import subprocess

from harness import EFT, Scene, Stack, check, sh, wait_until

SERVE = """
import socket, sys, threading
server = socket.create_server((sys.argv[1], 7070), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listening", flush=True)
def serve(peer):
    while data := peer.recv(65536):
        peer.sendall(data)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
"""


# Bound to an address that the stack does not have yet; without the option, and to be transparent, is refused.
FREE = SERVE.replace('server = socket.create_server((sys.argv[1], 7070), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)', '''
server = socket.socket()
for attempt in (lambda: server.bind((sys.argv[1], 7072)), lambda: server.setsockopt(socket.SOL_IP, 19, 1)):
    try:
        attempt()
        sys.exit("not refused")
    except OSError:
        pass
server = socket.socket()
server.setsockopt(socket.SOL_IP, socket.IP_FREEBIND if hasattr(socket, "IP_FREEBIND") else 15, 1)
server.bind((sys.argv[1], 7072))
server.listen()
''')


def echo(connection, text=b"hello"):
    connection.sendall(text)
    return connection.recv(len(text), socket.MSG_WAITALL) == text


def refused(stack, command, *words):
    done = stack.eft(command, *words, ok=False)
    check(done.returncode == 1 and len(done.stderr.splitlines()) == 1, f"{command} {words}: {done}")
    return done.stderr


def addresses_change_while_programs_run():
    with Scene("addresses") as scene:
        stack = Stack(scene)
        device, first = stack.device, stack.address
        server = scene.start(*stack.on("python3", "-c", SERVE, "0.0.0.0"), log="server.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
        # A connection to the first address lives through all of it.
        old = socket.create_connection((first, 7070), timeout=10)
        free = scene.start(*stack.on("python3", "-c", FREE, "10.77.3.9"), log="free.log")
        wait_until(lambda: "listening" in free.log.read_text(), 10, "the server with IP_FREEBIND")
        stack.eft("addr", "add", "10.77.3.9/24", "dev", device)
        check(echo(socket.create_connection(("10.77.3.9", 7072), timeout=10)), "a server that was bound before does not answer")
        check(echo(socket.create_connection(("10.77.3.9", 7070), timeout=10)), "the second address does not answer")
        # The kernel's table has it at once, since the stack announced it.
        check("10.77.3.9" in sh("ip", "neigh", "show", "dev", device).stdout, "the address was not announced")
        stack.eft("addr", "add", "fd77:3::2/64")
        sh("ip", "addr", "add", "fd77:3::1/64", "dev", device, "nodad")
        six = scene.start(*stack.on("python3", "-c", SERVE.replace("7070", "7071"), "fd77:3::2"), log="six.log")
        wait_until(lambda: "listening" in six.log.read_text(), 10, "the server of IPv6")
        check(echo(socket.create_connection(("fd77:3::2", 7071), timeout=10)), "the IPv6 address does not answer")
        seen = sh(*stack.on("ip", "addr")).stdout
        for address in (f"{first}/24", "10.77.3.9/24", "fd77:3::2/64"):
            check(address in seen, f"`ip addr` on the stack does not show {address}: {seen}")
        # Every component dies, and knows the addresses again.
        for component in ("ip", "tcp", "udp", "filter", "sockets", f"nic:{device}"):
            stack.kill(component)
            check(echo(socket.create_connection(("10.77.3.9", 7070), timeout=10)), f"after the death of {component}")
        check("10.77.3.9/24" in sh(*stack.on("ip", "addr")).stdout, "sockets has forgotten the address")
        stack.eft("update", "--all", timeout=120)
        check(echo(socket.create_connection(("10.77.3.9", 7070), timeout=10)), "after an update of all")
        check(echo(old), "the old connection is dead")
        # A successor of the whole stack has them, too.
        stack.up("--take-over", log="2")
        check(echo(socket.create_connection(("10.77.3.9", 7070), timeout=10)), "after the take-over")
        check(echo(old), "the old connection died at the take-over")
        stack.eft("addr", "del", "10.77.3.9/24")
        check("10.77.3.9" not in sh(*stack.on("ip", "addr")).stdout, "`ip addr` shows a removed address")
        bound = sh(*stack.on("python3", "-c", "import socket; socket.socket().bind(('10.77.3.9', 0))"), ok=False)
        check("Cannot assign requested address" in bound.stderr, f"bind to a removed address: {bound.stderr}")
        sh("ip", "neigh", "flush", "dev", device)
        gone = socket.socket()
        gone.settimeout(1)
        check(gone.connect_ex(("10.77.3.9", 7070)) != 0, "a removed address answers")
        check(echo(old), "the old connection is dead")
        check("already" in refused(stack, "addr", "add", f"{first}/16"), "an address twice")
        check("is an address of this host" in refused(stack, "addr", "add", f"{stack.host}/24"), "the host's address")
        check("it has" in refused(stack, "addr", "del", "10.9.9.9/24"), "an address that is not there")
        check(f"this stack has {device}" in refused(stack, "addr", "add", "10.9.9.9/24", "dev", "eth7"), "no such device")
        check("first or last" in refused(stack, "addr", "add", "10.9.9.255/24"), "a broadcast address")


def routes_change_while_programs_run():
    with Scene("routes") as scene:
        stack = Stack(scene)
        device = stack.device
        # Networks behind two hosts of the link, which are both the kernel.
        sh("ip", "addr", "add", "10.77.3.5/24", "dev", device)
        sh("ip", "addr", "add", "10.88.0.1/32", "dev", "lo")
        scene.undo("ip", "addr", "del", "10.88.0.1/32", "dev", "lo")
        server = socket.create_server(("10.88.0.1", 0))
        port = server.getsockname()[1]
        reach = ["python3", "-c", f"import socket; print(socket.create_connection(('10.88.0.1', {port}), timeout=5).getsockname()[0])"]
        on = lambda: sh(*stack.on(*reach), ok=False)
        check("Network is unreachable" in on().stderr, "it is reached without a route")
        stack.eft("route", "add", "10.88.0.0/24", "via", "10.77.3.5")
        done = on()
        check(done.stdout.strip() == stack.address, f"by the route: {done.stderr}")
        check(f"10.88.0.0/24 via 10.77.3.5 dev {device}" in sh(*stack.on("ip", "route")).stdout, "`ip route` does not show it")
        # The lowest metric counts: nobody is at 10.77.3.77.
        check("metric" in refused(stack, "route", "add", "10.88.0.0/24", "via", "10.77.3.77"), "the same route twice")
        stack.eft("route", "del", "10.88.0.0/24")
        stack.eft("route", "add", "10.88.0.0/24", "via", "10.77.3.77", "metric", "5")
        check(on().returncode != 0, "it is reached by nobody")
        stack.eft("route", "add", "default", "via", "10.77.3.5", "metric", "1")
        check(on().returncode != 0, "a shorter prefix wins")
        stack.eft("route", "add", "10.88.0.0/24", "via", "10.77.3.1", "metric", "4")
        check(on().returncode == 0, "the lower metric does not win")
        asked = sh(*stack.on("ip", "route", "get", "10.88.0.1")).stdout
        check("via 10.77.3.1" in asked and f"src {stack.address}" in asked, f"`ip route get`: {asked}")
        # TCP's segments fit the route. They go to another address: for 10 s tcp has the way to one in mind.
        sh("ip", "addr", "add", "10.88.0.9/32", "dev", "lo")
        scene.undo("ip", "addr", "del", "10.88.0.9/32", "dev", "lo")
        other = socket.create_server(("10.88.0.9", port))
        size = ["python3", "-c", f"import socket, struct; s = socket.create_connection(('10.88.0.9', {port}), timeout=5); "
                "print(struct.unpack_from('I', s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 16)[0])"]
        stack.eft("route", "add", "10.88.0.0/24", "via", "10.77.3.1", "metric", "3", "mtu", "1000")
        mss = sh(*stack.on(*size)).stdout.strip()
        check(mss == str(1000 - 40 - 12), f"segments of {mss} bytes on a route that takes packets of 1000")
        other.close()
        check("576" in refused(stack, "route", "add", "10.99.0.0/16", "via", "10.77.3.1", "mtu", "100"), "a tiny MTU")
        stack.kill("ip")
        check(on().returncode == 0, "ip has forgotten the routes")
        routes = json.loads(stack.eft("route", "--json").stdout)["routes"]
        check([r["metric"] for r in routes if r["destination"] == "10.88.0.0/24"] == [5, 4, 3], f"`eft route --json`: {routes}")
        check("no interface's network" in refused(stack, "route", "add", "10.99.0.0/16", "via", "192.0.2.1"), "an unreachable gateway")
        check("goes with it" in refused(stack, "route", "del", "10.77.3.0/24"), "the route of an address")
        check("no route to 10.99.0.0/16" in refused(stack, "route", "del", "10.99.0.0/16"), "a route that is not there")
        # Routes that an address takes along are named.
        stack.eft("addr", "add", "10.66.0.2/24")
        stack.eft("route", "add", "10.99.0.0/16", "via", "10.66.0.1")
        said = stack.eft("addr", "del", "10.66.0.2/24").stderr
        check("10.99.0.0/16 by 10.66.0.1 went with" in said, said)
        stack.eft("route", "flush")
        check("Network is unreachable" in on().stderr, "a route is left")
        server.close()


def a_configured_neighbour_is_not_asked_for():
    with Scene("neighbours") as scene:
        stack = Stack(scene)
        mac = json.loads(sh("ip", "-json", "link", "show", stack.device).stdout)[0]["address"]
        server = socket.create_server((stack.host, 0))
        port = server.getsockname()[1]
        reach = ["python3", "-c", f"import socket; socket.create_connection(('{stack.host}', {port}), timeout=5)"]
        on = lambda: sh(*stack.on(*reach), ok=False)
        stack.eft("neigh", "add", stack.host, "lladdr", "02:00:00:00:00:99")
        check(on().returncode != 0, "frames went to another link address than the configured one")
        stack.eft("neigh", "add", stack.host, "lladdr", mac)
        stack.kill("ip")
        done = on()
        check(done.returncode == 0, f"by the configured link address: {done.stderr}")
        listed = json.loads(stack.eft("neigh", "--json").stdout)["neighbours"]
        check(listed == [{"address": stack.host, "mac": mac, "interface": stack.device}], f"{listed}")
        stack.eft("neigh", "flush")
        check(on().returncode == 0, "it is not asked for after the flush")
        found = [n for n in json.loads(stack.eft("neigh", "--json").stdout)["found"] if n["address"] == stack.host]
        check([(n["mac"], n["interface"], n["state"]) for n in found] == [(mac, stack.device, "reachable")], f"{found}")
        check(0 <= found[0]["confirmed_ms"] < 30_000 and 0 <= found[0]["used_ms"] < 60_000, f"{found}")
        sh(*stack.on("python3", "-c", "import socket; socket.create_connection(('10.77.3.77', 9), timeout=9)"), ok=False)
        states = {n["address"]: (n["mac"], n["state"]) for n in json.loads(stack.eft("neigh", "--json").stdout)["found"]}
        check(states["10.77.3.77"] == (None, "failed"), f"a host that is not there: {states}")
        check("not configured" in refused(stack, "neigh", "del", stack.host), "a neighbour that is not there")
        check("one host's link address" in refused(stack, "neigh", "add", "10.77.3.9", "lladdr", "ff:ff:ff:ff:ff:ff"), "broadcast")
        server.close()


def addresses_change_on_an_existing_interface():
    """The kernel is kept from answering for them, and is not any more when they go."""
    with Scene("addresses-veth") as scene:
        stack = Stack(scene, kind="veth")
        server = scene.start(*stack.on("python3", "-c", SERVE, "0.0.0.0"), log="server.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
        rules = lambda: sh("nft", "list", "ruleset").stdout
        stack.eft("addr", "add", "10.77.3.9/24")
        check("10.77.3.9" in rules(), f"the kernel may answer: {rules()}")
        script = "import socket; c = socket.create_connection(('10.77.3.9', 7070), timeout=5); c.sendall(b'hello'); print(c.recv(5))"
        check("hello" in sh(*stack.beside("python3", "-c", script)).stdout, "the new address does not answer")
        stack.eft("addr", "del", "10.77.3.9/24")
        check("10.77.3.9" not in rules() and stack.address in rules(), f"{rules()}")
        subprocess.run([EFT, "addr", "--name", stack.name], check=True, stdout=subprocess.DEVNULL)


CASES = [
    addresses_change_while_programs_run, routes_change_while_programs_run, a_configured_neighbour_is_not_asked_for,
    addresses_change_on_an_existing_interface,
]
