"""What each server has given up, what one that is taken over can still reach, and whose memory each maps."""

import collections
import contextlib
import ctypes
import errno
import json
import mmap
import os
import pathlib
import socket
import struct
import tomllib

import inside
from harness import TOPOLOGIES, Failure, Scene, Stack, check, children_of, everywhere, sh, wait_until
from sandboxes import BLOCKING


def servers_have_given_up_what_they_do_not_need():
    with Scene("security") as scene:
        stack = Stack(scene)
        first = namespaces_of(stack)
        table = stack.eft("ps", "--security").stdout
        check(table.count("listed") == len(first) and "SYSTEM-CALLS" in table, table)
        for component in first:
            stack.kill(component)
        # Successors are in their predecessors' namespaces; cores sees the host's files as they are mounted now.
        again = namespaces_of(stack)
        same = {component for component in first if first[component]["mnt"] == again[component]["mnt"]}
        check(same >= set(first) - {"cores"} or not can_unshare("mnt"), f"{first} became {again}")
        check(len({namespaces["net"] for namespaces in again.values()}) == len(again) or not can_unshare("net"), f"shared: {again}")


def namespaces_of(stack):
    """Checks what each component has given up, and returns its namespaces."""
    parts = json.loads(stack.eft("ps", "--security", "--json").stdout)["components"]
    for part in parts:
        held = part["security"]
        kept = ["perfmon"] if part["component"] == "cores" else []
        check(held["capabilities"] == kept, f"{part}")
        limits = pathlib.Path(f"/proc/{part['pid']}/limits").read_text()
        core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
        check(int(core.split()[4]) <= 1, f"{part['component']} would leave a core: {core}")
        check(held["no_new_privileges"] and held["system_calls_filtered"], f"{part}")
        # sockets must recognize root, and cores needs the host's files and counters.
        alone = part["component"] not in ("sockets", "cores")
        wanted = [name for name in NAMESPACES if can_unshare(name) and (alone or name != "user")]
        check(held["own_namespaces"] == wanted, f"{part}: not {wanted}")
        if can_unshare("mnt") and part["component"] != "cores":
            mounts = pathlib.Path(f"/proc/{part['pid']}/mountinfo").read_text().splitlines()
            check(len(mounts) == 1 and mounts[0].split()[4] == "/", f"{part['component']} has {mounts}")
        check(part["landlock"] == has_landlock(), f"{part}")
        open_at = [os.readlink(link) for link in pathlib.Path(f"/proc/{part['pid']}/fd").iterdir()]
        check(not any(":[" in place and place.split(":")[0] in NAMESPACES for place in open_at), f"{part} holds {open_at}")
    return {part["component"]: {name: os.readlink(f"/proc/{part['pid']}/ns/{name}") for name in NAMESPACES} for part in parts}


NAMESPACES = {"user": "-U", "mnt": "-m", "net": "-n", "ipc": "-i"}


def can_unshare(name):
    return sh("unshare", NAMESPACES[name], "true", ok=False).returncode == 0


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


# Numbers of system calls and flags of x86_64, none of which a server may use.
RDONLY, RDWR, FDCWD, CLONE_NEWUSER, PTRACE_ATTACH = 0, 2, -100, 0x10000000, 16


def forbidden(others):
    """What an attacker would try first in a server, to reach the machine and other processes."""
    yield "open", (2, "/etc/passwd", RDWR)
    yield "openat", (257, FDCWD, "/etc/passwd", RDWR)
    yield "openat2", (437, FDCWD, "/etc/passwd", bytes(24), 24)
    yield "link", (86, "/etc/passwd", "/etc/passwd-eft")
    yield "unlink", (87, "/run/eft/nobody")
    yield "mkdir", (83, "/run/eft/nobody", 0o755)
    yield "socket", (41, 2, 1, 0)
    yield "connect", (42, 0, bytes(16), 16)
    yield "bind", (49, 0, bytes(16), 16)
    yield "fork", (57,)
    yield "clone", (56, 17, 0, 0, 0, 0)
    yield "clone3", (435, bytes(88), 88)
    yield "execve", (59, "/bin/sh", bytes(8), bytes(8))
    yield "execveat", (322, FDCWD, "/bin/sh", bytes(8), bytes(8), 0)
    for whose, pid in others.items():
        yield f"kill {whose}", (62, pid, 0)
        yield f"tgkill {whose}", (234, pid, pid, 0)
        yield f"own news of {whose}", (72, 0, 8, pid)
        yield f"own news of {whose} by ioctl", (16, 0, 0x8901, struct.pack("i", pid))
        yield f"move {whose}", (203, pid, 8, b"\1" + bytes(7))
        yield f"name {whose} by a descriptor", (434, pid, 0)
    yield "unshare", (272, CLONE_NEWUSER)
    yield "setns", (308, 0, 0)
    yield "mount", (165, "none", "/", "tmpfs", 0, 0)
    yield "chroot", (161, "/")
    yield "pivot_root", (155, "/", "/")
    yield "setuid", (105, 0)
    yield "capset", (126, struct.pack("=Ii", 0x20080522, 0), b"\xff" * 24)
    yield "bpf", (321, 0, bytes(64), 64)
    yield "init_module", (175, bytes(16), 16, "")
    yield "memfd_create", (319, "more", 0)
    yield "io_uring_setup", (425, 8, bytes(120))
    yield "perf_event_open", (298, bytes(128), -1, 0, -1, 0)
    yield "shmget", (29, 1, 4096, 0o1666)
    yield "keyctl", (250, 0, 0, 0, 0, 0)
    yield "setrlimit", (160, 7, bytes(16))
    yield "prctl", (157, 4, 1, 0, 0, 0)


# What cores may do besides: read files, count events. A process that it started would have its rights.
OF_CORES = ("perf_event_open",)
# An event that every machine has: PERF_TYPE_SOFTWARE, in a structure of the first version's length.
SOFTWARE_CLOCK = struct.pack("II", 1, 64) + bytes(56)


def traces(others):
    """Calls on another process's memory. Whoever may make them is told that nothing lies there."""
    nowhere = struct.pack("QQ", 4096, 8)
    for whose, pid in others.items():
        yield f"trace {whose}", (101, PTRACE_ATTACH, pid, 0, 0)
        yield f"read {whose}", (310, pid, nowhere, 1, nowhere, 1, 0)
        yield f"write {whose}", (311, pid, nowhere, 1, nowhere, 1, 0)


def opens(others):
    """Files that are another process's memory."""
    for whose, pid in others.items():
        for rights, flags in (("read", RDONLY), ("write", RDWR)):
            yield f"{rights} the memory of {whose}", (257, FDCWD, f"/proc/{pid}/mem", flags)
            yield f"{rights} that of its thread", (257, FDCWD, f"/proc/{pid}/task/{pid}/mem", flags)
            for number in shared_descriptors(pid):
                yield f"{rights} descriptor {number} of {whose}", (257, FDCWD, f"/proc/{pid}/fd/{number}", flags)


def looks(others):
    """Files that show something of it: where what lies, and the variables that the process was started with."""
    for whose, pid in others.items():
        for file in ("maps", "environ", "auxv", "pagemap"):
            yield f"see {file} of {whose}", (257, FDCWD, f"/proc/{pid}/{file}", RDONLY)


def shared_descriptors(pid):
    """A descriptor of shared memory that a process holds, if there is any: it could be opened anew."""
    links = {link.name: os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    return [number for number, place in links.items() if place.startswith("/memfd:eft-")][:1]


def everybody(stack):
    """The processes of a stack by name: its components', the supervisor, and the keeper."""
    parts = {name: part["pid"] for name, part in stack.components().items()}
    keepers = set(children_of(stack.process.pid)) - set(parts.values())
    check(len(keepers) == 1, f"which is the keeper: {keepers}")
    check(shared_descriptors(*keepers) and shared_descriptors(stack.process.pid), "who holds the shared memory?")
    return parts | {"the supervisor": stack.process.pid, "the keeper": keepers.pop()}


def refuses(it, name, attempts, errors):
    """Makes calls inside a server; none may succeed, or fail for another reason."""
    for what, arguments in attempts:
        result = it.call(*arguments)
        check(-result in errors, f"{name} may {what}: {result}")


# A server may not open anything. cores may: what it must not see it does not find, or is denied.
REFUSED, DENIED = (errno.EPERM,), (errno.EPERM, errno.EACCES, errno.ENOENT)


def others_memory(pid):
    """Shared mappings that a server may only read, as (address, length, name)."""
    for line in open(f"/proc/{pid}/maps"):
        span, rights, *_, name = line.split(maxsplit=5)
        start, end = (int(n, 16) for n in span.split("-"))
        if "memfd:eft-" in name and not rights.startswith("rw"):
            yield start, end - start, name


def a_server_that_is_taken_over_reaches_nothing_but_its_own():
    check(inside.AVAILABLE, "this test knows the registers and calls of x86_64 alone")
    with Scene("inside") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", BLOCKING, 7301, everywhere()), log="echo.log")
        stack.listening(7301)
        parts, all_of_it = stack.components(), everybody(stack)
        for name, part in parts.items():
            pid = part["pid"]
            others = {whose: other for whose, other in all_of_it.items() if other != pid}
            read = list(others_memory(pid))
            with inside.Inside(pid) as it:
                check(it.call(39) == pid, f"{name}: getpid")
                more = OF_CORES if name == "cores" else ()
                refuses(it, name, [attempt for attempt in forbidden(others) if attempt[0] not in more], REFUSED)
                refuses(it, name, traces(others), REFUSED)
                if name != "cores":
                    refuses(it, name, [*opens(others), *looks(others)], REFUSED)
                elif has_landlock():
                    refuses(it, name, [*opens(others), *looks(others)], DENIED)
                for address, length, whose in read:
                    result = it.call(10, address, length, mmap.PROT_READ | mmap.PROT_WRITE)
                    check(result == -errno.EACCES, f"{name} may write {whose}: {result}")
                if name == "cores":
                    counted = it.call(298, SOFTWARE_CLOCK, parts["tcp"]["pid"], -1, -1, 0)
                    check(counted >= 0 and it.call(3, counted) == 0, f"cores counts no events of tcp: {counted}")
            check(read, f"{name} reads nobody's memory")
        with socket.create_connection((stack.address, 7301), 10) as s:
            s.sendall(b"12345678")
            check(s.recv(8, socket.MSG_WAITALL) == b"12345678", "the stack came to harm")
        after = stack.components()
        check(all(after[n]["pid"] == parts[n]["pid"] for n in parts), "a server died of it")


def managing(scene):
    """A topology in which cores manages the second CPU. Its policy leaves that alone."""
    check(os.cpu_count() > 1, "this needs two CPUs")
    topology = scene.dir / "managing.toml"
    topology.write_text((TOPOLOGIES / "default.toml").read_text() + '[scheduling]\nmanaged = "1"\n')
    return topology


def cores_with_managed_cpus_reaches_no_others_memory():
    """It needs so many rights that what the kernel shows of processes is open to it, and their memory is not."""
    check(inside.AVAILABLE, "this test knows the registers and calls of x86_64 alone")
    with Scene("inside-managing") as scene:
        stack = Stack(scene, topology=managing(scene))
        parts, all_of_it = stack.components(), everybody(stack)
        cores = parts["cores"]["pid"]
        others = {whose: pid for whose, pid in all_of_it.items() if pid != cores}
        if has_landlock():
            with inside.Inside(cores) as it:
                refuses(it, "cores", [*traces(others), *opens(others)], DENIED)
        after = stack.components()
        check(all(after[n]["pid"] == parts[n]["pid"] for n in parts), "a server died of it")


# Who may map what, written down a second time: see crates/control/src/plan.rs.
ARENA_OWNERS = ("tcp", "udp", "filter", "ip")


def role(name):
    return name.split(":")[0].rstrip("0123456789")


def neighbours(topology, names):
    """Who exchanges messages with whom, of components with these names."""
    pairs = [edge["between"] for edge in tomllib.loads(topology.read_text())["edge"]]
    of = lambda name: "nic" if role(name) == "nic" else name
    return {name: [other for other in names if [of(name), of(other)] in pairs or [of(other), of(name)] in pairs] for name in names}


def pools(name, names):
    """The pools of a component, each as the set of its readers."""
    of = lambda *roles: {other for other in names if role(other) in roles}
    return {"tcp": [of("ip")], "udp": [of("ip")], "ip": [of("nic"), of("nic", "tcp", "udp")],
            "nic": [of("ip", "tcp", "udp")]}.get(role(name), [])


def needs(name, beside, domains):
    """The shared memory that a component needs by its edges, pools and domains, as (rights, segment) with how often."""
    need = collections.Counter({("rw", f"status-{name}"): 1, ("r", f"bell-{name}"): 1})
    for other in beside if name == "cores" else beside[name]:
        if other != name:
            need["r", f"status-{other}"] += 1
    for other in beside[name]:
        need["rw", f"queue-{name}-{other}"] += 1
        need["r", f"queue-{other}-{name}"] += 1
        # Its own place in the queue to it, and the other's in its own.
        need["rw", "position"] += 1
        need["r", "position"] += 1
    for owner in beside:
        for readers in pools(owner, beside):
            need["r", f"pool-{owner}"] += (owner == name) + (name in readers)
            need["rw", f"pool-{owner}"] += owner == name
    if role(name) in ARENA_OWNERS:
        need["rw", f"arena-{name}"] += 1
    if role(name) in ("sockets", "tcp", "udp", "ip", "nic"):
        rights = "r" if role(name) in ("ip", "nic") else "rw"
        need.update((rights, domain) for domain in domains)
    return +need


def mapped(pid):
    """The shared memory of a process, as (rights, segment, its number)."""
    for line in open(f"/proc/{pid}/maps"):
        _, rights, _, _, number, *name = line.split(maxsplit=5)
        if rights[3] == "s":
            segment = name[0].split()[0].removeprefix("/memfd:eft-") if name else "nameless"
            yield rights[:3].replace("-", ""), segment, number


def mapped_beyond(stack, topology, domains):
    """How what the processes map differs from what their components need: empty if it does not."""
    parts = stack.components()
    beside = neighbours(topology, parts)
    has = {pid: list(mapped(pid)) for pid in {part["pid"] for part in parts.values()}}
    for pid, maps in has.items():
        here = [name for name in parts if parts[name]["pid"] == pid]
        need = sum((needs(name, beside, domains) for name in here), collections.Counter())
        found = collections.Counter((rights, segment) for rights, segment, _ in maps)
        if found != need:
            return f"{here} map beyond their needs {+(found - need)}, and lack {+(need - found)}"
    numbers = collections.defaultdict(set)
    for rights, segment, number in (one for maps in has.values() for one in maps):
        numbers[segment].add(number)
    # The same name is the same memory in all of them: one segment, one for each pool of an owner, one for each queue.
    for segment, those in numbers.items():
        owner = segment.removeprefix("pool-")
        one_each = sum(map(len, beside.values())) if segment == "position" else len(pools(owner, parts)) if owner != segment else 1
        if len(those) != one_each:
            return f"{segment} is {those}"
    # A position is that of a queue between the two that map it.
    place = {pid: {rights: {n for r, segment, n in maps if (r, segment) == (rights, "position")} for rights in ("r", "rw")}
             for pid, maps in has.items()}
    for name, others in beside.items():
        for other in others:
            own, its = (place[parts[who]["pid"]] for who in (name, other))
            if not own["rw"] & its["r"]:
                return f"{name} does not tell {other} its position"
    return ""


def no_more_is_mapped(stack, topology, domains):
    """Successors have new pools. Packets may lie in the old ones for a while."""
    beyond = lambda: mapped_beyond(stack, topology, domains)
    with contextlib.suppress(Failure):
        wait_until(lambda: not beyond(), 60, "old pools to go")
    check(not beyond(), f"{topology.name}: {beyond()}")


def servers_map_no_more_than_their_edges_need():
    for name in ("default", "no-filter", "spread", "edge", "whole"):
        with Scene(f"mapped-{name}") as scene:
            topology = TOPOLOGIES / f"{name}.toml"
            stack = Stack(scene, kind="tap", topology=topology)
            for port in (7301, 7302):
                scene.start(*stack.on("python3", "-c", BLOCKING, port, everywhere()))
                stack.listening(port)
            no_more_is_mapped(stack, topology, ("domain-1", "domain-2"))
            for component in stack.components():
                stack.kill(component)
            no_more_is_mapped(stack, topology, ("domain-1", "domain-2"))


CASES = [
    servers_have_given_up_what_they_do_not_need,
    a_server_that_is_taken_over_reaches_nothing_but_its_own,
    cores_with_managed_cpus_reaches_no_others_memory,
    servers_map_no_more_than_their_edges_need,
]
