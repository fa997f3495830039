"""Addresses and routes that change while a stack runs. What programs see of them is Python's, libc's and iproute2's view."""

import json
import socket
import subprocess
import time

from harness import EFT, Scene, Stack, check, everywhere, family, over_ipv6, sh, wait_until

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
family, level, transparent, free = (socket.AF_INET6, 41, 75, 78) if ":" in sys.argv[1] else (socket.AF_INET, 0, 19, 15)
server = socket.socket(family)
for attempt in (lambda: server.bind((sys.argv[1], 7072)), lambda: server.setsockopt(level, transparent, 1)):
    try:
        attempt()
        sys.exit("not refused")
    except OSError:
        pass
server = socket.socket(family)
server.setsockopt(level, free, 1)
server.bind((sys.argv[1], 7072))
server.listen()
''')


def near(number):
    """A host's address in the stack's network."""
    return f"fd77:3::{number}" if Stack.usual_version == 6 else f"10.77.3.{number}"


def far(network, number):
    """A host's address in another one."""
    return f"fd{network}::{number}" if Stack.usual_version == 6 else f"10.{network}.0.{number}"


def whole(network):
    return f"fd{network}::/64" if Stack.usual_version == 6 else f"10.{network}.0.0/24"


def lengths():
    """Of a network's prefix, and of an address."""
    return (64, 128) if Stack.usual_version == 6 else (24, 32)


def add_to_kernel(scene, address, device):
    sh("ip", "addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
    if device == "lo":
        scene.undo("ip", "addr", "del", address, "dev", device)


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
        device, first, added, (length, _) = stack.device, stack.address, near(9), lengths()
        other, other_host, other_length = ("10.77.3.2", "10.77.3.1", 24) if length == 64 else ("fd77:3::2", "fd77:3::1", 64)
        server = scene.start(*stack.on("python3", "-c", SERVE, everywhere()), log="server.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
        # A connection to the first address lives through all of it.
        old = socket.create_connection((first, 7070), timeout=10)
        free = scene.start(*stack.on("python3", "-c", FREE, added), log="free.log")
        wait_until(lambda: "listening" in free.log.read_text(), 10, "the server with IP_FREEBIND")
        stack.eft("addr", "add", f"{added}/{length}", "dev", device)
        check(echo(socket.create_connection((added, 7072), timeout=10)), "a server that was bound before does not answer")
        check(echo(socket.create_connection((added, 7070), timeout=10)), "the second address does not answer")
        # The kernel's table has it at once, since the stack announced it.
        check(added in sh("ip", "neigh", "show", "dev", device).stdout, "the address was not announced")
        stack.eft("addr", "add", f"{other}/{other_length}")
        add_to_kernel(scene, f"{other_host}/{other_length}", device)
        six = scene.start(*stack.on("python3", "-c", SERVE.replace("7070", "7071"), other), log="six.log")
        wait_until(lambda: "listening" in six.log.read_text(), 10, "the server of the other version")
        check(echo(socket.create_connection((other, 7071), timeout=10)), "the address of the other version does not answer")
        seen = sh(*stack.on("ip", "addr")).stdout
        for address in (f"{first}/{length}", f"{added}/{length}", f"{other}/{other_length}"):
            check(address in seen, f"`ip addr` on the stack does not show {address}: {seen}")
        # Every component dies, and knows the addresses again.
        for component in ("ip", "tcp", "udp", "filter", "sockets", f"nic:{device}"):
            stack.kill(component)
            check(echo(socket.create_connection((added, 7070), timeout=10)), f"after the death of {component}")
        check(f"{added}/{length}" in sh(*stack.on("ip", "addr")).stdout, "sockets has forgotten the address")
        stack.eft("update", "--all", timeout=120)
        check(echo(socket.create_connection((added, 7070), timeout=10)), "after an update of all")
        check(echo(old), "the old connection is dead")
        # A successor of the whole stack has them, too.
        stack.up("--take-over", log="2")
        check(echo(socket.create_connection((added, 7070), timeout=10)), "after the take-over")
        check(echo(old), "the old connection died at the take-over")
        stack.eft("addr", "del", f"{added}/{length}")
        check(added not in sh(*stack.on("ip", "addr")).stdout, "`ip addr` shows a removed address")
        bound = sh(*stack.on("python3", "-c", f"import socket; socket.socket({family(added)}).bind(('{added}', 0))"), ok=False)
        check("Cannot assign requested address" in bound.stderr, f"bind to a removed address: {bound.stderr}")
        sh("ip", "neigh", "flush", "dev", device)
        gone = socket.socket(old.family)
        gone.settimeout(1)
        check(gone.connect_ex((added, 7070)) != 0, "a removed address answers")
        check(echo(old), "the old connection is dead")
        check("already" in refused(stack, "addr", "add", f"{first}/{length - 8}"), "an address twice")
        check("is an address of this host" in refused(stack, "addr", "add", f"{stack.host}/{length}"), "the host's address")
        check("it has" in refused(stack, "addr", "del", f"{far(9, 9)}/{length}"), "an address that is not there")
        check(f"this stack has {device}" in refused(stack, "addr", "add", f"{far(9, 9)}/{length}", "dev", "eth7"), "no such device")
        if length == 24:
            check("first or last" in refused(stack, "addr", "add", "10.9.9.255/24"), "a broadcast address")


def routes_change_while_programs_run():
    with Scene("routes") as scene:
        stack = Stack(scene)
        device, (length, whole_length) = stack.device, lengths()
        hop, nobody, there, beyond = near(5), near(77), far(88, 1), whole(99)
        # Networks behind two hosts of the link, which are both the kernel.
        add_to_kernel(scene, f"{hop}/{length}", device)
        add_to_kernel(scene, f"{there}/{whole_length}", "lo")
        server = socket.create_server((there, 0), family=socket.AF_INET6 if ":" in there else socket.AF_INET)
        port = server.getsockname()[1]
        reach = ["python3", "-c", f"import socket; print(socket.create_connection(('{there}', {port}), timeout=5).getsockname()[0])"]
        on = lambda: sh(*stack.on(*reach), ok=False)
        check("Network is unreachable" in on().stderr, "it is reached without a route")
        stack.eft("route", "add", whole(88), "via", hop)
        done = on()
        check(done.stdout.strip() == stack.address, f"by the route: {done.stderr}")
        check(f"{whole(88)} via {hop} dev {device}" in sh(*stack.on("ip", f"-{Stack.usual_version}", "route")).stdout, "`ip route` does not show it")
        # The lowest metric counts: nobody is at that hop.
        check("metric" in refused(stack, "route", "add", whole(88), "via", nobody), "the same route twice")
        stack.eft("route", "del", whole(88))
        stack.eft("route", "add", whole(88), "via", nobody, "metric", "5")
        check(on().returncode != 0, "it is reached by nobody")
        stack.eft("route", "add", "default", "via", hop, "metric", "1")
        check(on().returncode != 0, "a shorter prefix wins")
        stack.eft("route", "add", whole(88), "via", stack.host, "metric", "4")
        check(on().returncode == 0, "the lower metric does not win")
        asked = sh(*stack.on("ip", "route", "get", there)).stdout
        check(f"via {stack.host}" in asked and f"src {stack.address}" in asked, f"`ip route get`: {asked}")
        # TCP's segments fit the route. They go to another address: for 10 s tcp has the way to one in mind.
        mtu, headers, least = (1300, 60, "1280") if length == 64 else (1000, 40, "576")
        add_to_kernel(scene, f"{far(88, 9)}/{whole_length}", "lo")
        other = socket.create_server((far(88, 9), port), family=server.family)
        size = ["python3", "-c", f"import socket, struct; s = socket.create_connection(('{far(88, 9)}', {port}), timeout=5); "
                "print(struct.unpack_from('I', s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 16)[0])"]
        stack.eft("route", "add", whole(88), "via", stack.host, "metric", "3", "mtu", str(mtu))
        mss = sh(*stack.on(*size)).stdout.strip()
        check(mss == str(mtu - headers - 12), f"segments of {mss} bytes on a route that takes packets of {mtu}")
        other.close()
        # What TCP announces, and the window with which it begins, by another address again. After ip's death both hold as well.
        add_to_kernel(scene, f"{far(88, 10)}/{whole_length}", "lo")
        other = socket.create_server((far(88, 10), port), family=server.family)
        stack.eft("route", "add", whole(88), "via", stack.host, "metric", "2", "advmss", "700", "initcwnd", "23")
        stack.kill("ip")
        begun = ["python3", "-c", f"import socket, struct; s = socket.create_connection(('{far(88, 10)}', {port}), timeout=5); "
                 "info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104); "
                 "print(struct.unpack_from('I', info, 80)[0], struct.unpack_from('I', info, 88 - 4)[0])"]
        check((told := sh(*stack.on(*begun)).stdout.split()) == ["23", "688"], f"window and MSS by the route: {told}")
        taken, _ = other.accept()
        theirs = taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        check(theirs == 688, f"the other end was told an MSS of {theirs}")
        taken.close()
        other.close()
        shown = [r for r in json.loads(stack.eft("route", "--json").stdout)["routes"] if r.get("advmss")]
        check([(r["advmss"], r["initcwnd"]) for r in shown] == [(700, 23)], f"`eft route --json`: {shown}")
        check("from 88" in refused(stack, "route", "add", beyond, "via", stack.host, "advmss", "87"), "a tiny MSS")
        check("one segment" in refused(stack, "route", "add", beyond, "via", stack.host, "initcwnd", "0"), "no window")
        check(least in refused(stack, "route", "add", beyond, "via", stack.host, "mtu", "100"), "a tiny MTU")
        stack.kill("ip")
        check(on().returncode == 0, "ip has forgotten the routes")
        routes = json.loads(stack.eft("route", "--json").stdout)["routes"]
        check([r["metric"] for r in routes if r["destination"] == whole(88)] == [5, 4, 3, 2], f"`eft route --json`: {routes}")
        check("no interface's network" in refused(stack, "route", "add", beyond, "via", far(10, 1)), "an unreachable gateway")
        check("goes with it" in refused(stack, "route", "del", "fd77:3::/64" if length == 64 else "10.77.3.0/24"), "the route of an address")
        check(f"no route to {beyond}" in refused(stack, "route", "del", beyond), "a route that is not there")
        # Routes that an address takes along are named.
        stack.eft("addr", "add", f"{far(66, 2)}/{length}")
        stack.eft("route", "add", beyond, "via", far(66, 1))
        said = stack.eft("addr", "del", f"{far(66, 2)}/{length}").stderr
        check(f"{beyond} by {far(66, 1)} went with" in said, said)
        stack.eft("route", "flush")
        check("Network is unreachable" in on().stderr, "a route is left")
        server.close()


def a_configured_neighbour_is_not_asked_for():
    with Scene("neighbours") as scene:
        stack = Stack(scene)
        mac = json.loads(sh("ip", "-json", "link", "show", stack.device).stdout)[0]["address"]
        server = socket.create_server((stack.host, 0), family=socket.AF_INET6 if ":" in stack.host else socket.AF_INET)
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
        sh(*stack.on("python3", "-c", f"import socket; socket.create_connection(('{near(77)}', 9), timeout=9)"), ok=False)
        states = {n["address"]: (n["mac"], n["state"]) for n in json.loads(stack.eft("neigh", "--json").stdout)["found"]}
        check(states[near(77)] == (None, "failed"), f"a host that is not there: {states}")
        check("not configured" in refused(stack, "neigh", "del", stack.host), "a neighbour that is not there")
        check("one host's link address" in refused(stack, "neigh", "add", near(9), "lladdr", "ff:ff:ff:ff:ff:ff"), "broadcast")
        server.close()


def addresses_change_on_an_existing_interface():
    """The kernel is kept from answering for them, and is not any more when they go."""
    with Scene("addresses-veth") as scene:
        stack = Stack(scene, kind="veth")
        server = scene.start(*stack.on("python3", "-c", SERVE, everywhere()), log="server.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
        rules = lambda: sh("nft", "list", "ruleset").stdout
        stack.eft("addr", "add", f"{near(9)}/{lengths()[0]}")
        check(near(9) in rules(), f"the kernel may answer: {rules()}")
        script = f"import socket; c = socket.create_connection(('{near(9)}', 7070), timeout=5); c.sendall(b'hello'); print(c.recv(5))"
        check("hello" in sh(*stack.beside("python3", "-c", script)).stdout, "the new address does not answer")
        stack.eft("addr", "del", f"{near(9)}/{lengths()[0]}")
        check(near(9) not in rules() and stack.address in rules(), f"{rules()}")
        subprocess.run([EFT, "addr", "--name", stack.name], check=True, stdout=subprocess.DEVNULL)


def an_interface_that_goes_down_costs_nothing():
    """The NIC sleeps while it is down, and goes on when it is up, whoever serves by then."""
    with Scene("down-veth") as scene:
        stack = Stack(scene, kind="veth")
        server = scene.start(*stack.on("python3", "-c", SERVE, everywhere()), log="server.log")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server")
        script = f"import socket; c = socket.create_connection(('{stack.address}', 7070), timeout=20); c.sendall(b'hello'); print(c.recv(5))"
        for death in False, True:
            sh("ip", "link", "set", stack.device, "down")
            time.sleep(0.2)
            before = stack.counter("nic", "sleeps")
            time.sleep(1)
            slept = stack.counter("nic", "sleeps") - before
            check(slept < 500, f"the NIC of an interface that is down woke {slept} times in a second")
            if death:
                stack.eft("kill", "nic:" + stack.device)
            sh("ip", "link", "set", stack.device, "up")
            check("hello" in sh(*stack.beside("python3", "-c", script), timeout=60).stdout, "the stack does not answer")


CASES = [
    addresses_change_while_programs_run, routes_change_while_programs_run, a_configured_neighbour_is_not_asked_for,
    addresses_change_on_an_existing_interface, an_interface_that_goes_down_costs_nothing,
]
CASES += [over_ipv6(case) for case in CASES]
