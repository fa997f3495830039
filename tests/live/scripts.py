"""The project's own scripts in packetdrill's language (tests/packetdrill), one for each mechanism: each is run on the kernel and
on a stack, over the IP versions that it is for. packetdrill itself runs them, too (`eft packetdrill`)."""

import re
import subprocess

from drill import Mismatch, Script, Wire
from harness import ROOT, Scene, Stack, check, over_ipv6

SCRIPTS = ROOT / "tests/packetdrill"
# What scripts set by `sysctl`, as an option of `eft up`.
SETTINGS = {
    "net.ipv4.tcp_ecn": {"1": ["--ecn", "ask"], "2": [], "3": ["--ecn", "accurate"]},
    "net.ipv4.tcp_fastopen": {"3": ["--fastopen", "both"]},
    # On a stack that is what it does by default.
    "net.ipv4.tcp_mtu_probing": {"1": []},
}
# On a kernel that remembers what an earlier script has shown of the peer, a later one would begin with it.
KERNEL = {"net.ipv4.tcp_no_metrics_save": "1", "net.ipv4.tcp_ecn": "2", "net.ipv4.tcp_fastopen": "1", "net.ipv4.tcp_mtu_probing": "0"}
# What makes a client forget the servers' cookies.
FORGET = "ip tcp_metrics flush all"


def settings_of(text):
    return dict(re.findall(r"`sysctl -q ([\w.]+)=(\S+)`", text))


def another(address):
    """An address of the same network that nobody has."""
    return re.sub(r"\d+$", "9", address)


def can_set(kernel, settings):
    """Whether the kernel knows all these values: accurate ECN (tcp_ecn=3 to 5) is only in later ones than Linux 6.18."""
    return all(subprocess.run(kernel.on("sysctl", "-q", f"{name}={value}"), stderr=subprocess.DEVNULL).returncode == 0
               for name, value in settings.items())


def run(wire, start, text, port):
    """None, or what differs."""
    wire.port = port
    while not wire.arrived.empty():
        wire.arrived.get()
    script = Script(re.sub(r".*`(sysctl|ip) .*`", "", text), start, wire)
    try:
        script.run()
        return None
    except Mismatch as e:
        return str(e)
    finally:
        script.program.kill()
        script.program.wait()


def scripts_of(version):
    other = {"4": "-v6", "6": "-v4"}[version]
    return [path for path in sorted(SCRIPTS.glob("*.pkt")) if not path.stem.endswith(other)]


def started(side):
    return lambda command: subprocess.Popen(side.on(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def scripts_of_segments():
    with Scene("scripts") as scene:
        kernel = scene.kernel()
        wires = {"kernel": Wire(kernel.far, "far", kernel.address, another(kernel.host))}
        for name, value in KERNEL.items():
            subprocess.run(kernel.on("sysctl", "-q", f"{name}={value}"), check=True)
        stacks, wrong, count, alone = {}, [], 0, []
        try:
            for number, path in enumerate(scripts_of("6" if ":" in kernel.address else "4")):
                text = path.read_text()
                settings = settings_of(text)
                options = tuple(word for name, value in settings.items() for word in SETTINGS[name][value])
                if options not in stacks:
                    stack = Stack(scene, f"lt{len(stacks)}", kind="veth", net=77 + 2 * len(stacks) + (2 if stacks else 0), extra=options)
                    stacks[options] = stack, Wire(stack.netns, "far", stack.address, another(stack.host))
                stack, wire = stacks[options]

                def attempt(side, its_wire, port):
                    if FORGET in text:
                        subprocess.run(kernel.on(*FORGET.split()), check=True)
                        stack.eft("set", "--forget-servers")
                    return run(its_wire, started(side), text, port)

                sides = [("the kernel", kernel, wires["kernel"]), ("the stack", stack, wire)]
                if not can_set(kernel, settings):
                    alone.append(path.stem)
                    del sides[0]
                for who, side, its_wire in sides:
                    problem = attempt(side, its_wire, 41000 + number)
                    # A machine that stands still for a while makes calls late.
                    problem = problem and attempt(side, its_wire, 42000 + number)
                    if problem:
                        wrong.append(f"{path.name} on {who}: {problem}")
                # Nor of the path to it.
                for version in "-4", "-6":
                    subprocess.run(kernel.on("ip", version, "route", "flush", "cache"), check=True)
                for name in settings:
                    subprocess.run(kernel.on("sysctl", "-q", f"{name}={KERNEL[name]}"), check=True)
                count += 1
        finally:
            for wire in [wires["kernel"], *(wire for _, wire in stacks.values())]:
                wire.close()
        check(not wrong, "\n".join(["", *wrong]))
        print(f"        {count} scripts, on the kernel and on the stack", flush=True)
        if alone:
            print(f"        on the stack alone, since this kernel does not know their settings: {' '.join(alone)}", flush=True)


CASES = [scripts_of_segments, over_ipv6(scripts_of_segments)]
