"""What a live stack received is replayed in the simulator: the same segments come out, bit for bit."""

import os
import pathlib
import signal
import socket
import struct
import threading
import tomllib

from harness import *
from inputs import refused

# Echoes streams and datagrams on one port until it is ended.
ECHO = """
import socket, sys, threading
address = (sys.argv[1], int(sys.argv[2]))
def stream(s):
    with s:
        while data := s.recv(1 << 16):
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)
def datagrams():
    while True:
        data, peer = u.recvfrom(1 << 16)
        u.sendto(data, peer)
u = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
u.bind(address)
threading.Thread(target=datagrams, daemon=True).start()
with socket.create_server(address, family=u.family) as listener:
    while True:
        threading.Thread(target=stream, args=(listener.accept()[0],), daemon=True).start()
"""

# Sends streams and datagrams to the echo and compares the answers.
ASK = """
import os, random, socket, sys, threading
address, streams, size, datagrams = (sys.argv[1], int(sys.argv[2])), *map(int, sys.argv[3:6])
def stream():
    data = os.urandom(size)
    with socket.create_connection(address) as s:
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        back = b""
        while more := s.recv(1 << 16):
            back += more
        sender.join()
    assert back == data, "a stream came back altered"
for _ in range(streams):
    stream()
u = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(2)
u.connect(address)
back = 0
for n in range(datagrams):
    data = os.urandom(random.choice([1, 100, 1400, 5000]))
    u.send(data)
    try:
        back += u.recv(1 << 16) == data
    except TimeoutError:
        pass
assert back * 10 >= datagrams * 9, f"only {back} of {datagrams} datagrams came back"
"""


def recorded(folder):
    return {p.name.removesuffix(".eftrec"): p for p in pathlib.Path(folder).glob("*.eftrec")}


def identical(recording, died=False):
    """Replays a recording, which must be identical; returns the output."""
    said = sh(EFT, "replay", str(recording)).stdout
    check("all identical" in said and " 0 calls" not in said, f"{recording.name}: {said}")
    check(("did not end in order" in said) == died, f"{recording.name}: {said}")
    return said


def a_live_recording_replays_to_identical_segments():
    """All four engines, with ip killed twice, in a folder that did not exist; and files that are not recordings."""
    with Scene("record") as scene:
        folder = scene.dir / "recordings" / "new"
        stack = Stack(scene, extra=("--record", str(folder)))
        _, want = scene.file("www/f", 4 << 20)
        scene.start(*stack.on("python3", "-m", "http.server", "8000", "--bind", stack.address, "--directory", str(scene.dir / "www")))
        stack.listening(8000)
        for _ in range(2):
            check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:8000/f")) == want, "a download differs")
            stack.kill("ip")
        end(stack.process)
        recordings = recorded(folder)
        check(set(recordings) == {"ip-1", "ip-2", "ip-3", "filter-1", "tcp-1", "udp-1"}, f"lives: {sorted(recordings)}")
        for name, recording in recordings.items():
            identical(recording, died=name in ("ip-1", "ip-2"))
        files_that_are_none(scene, recordings["ip-3"].read_bytes())


def files_that_are_none(scene, whole):
    """Each gives one line and fails."""
    for name, content, says in [
        ("cut", whole[: len(whole) // 2], "cut short"),
        ("beheaded", whole[:20], "cut short"),
        ("damaged", whole[:200] + b"\xff" * 64 + whole[264:], "damaged"),
        ("empty", b"", "not a recording"),
        ("old", b"eft recording 2\n" + whole[16:], 'format "2"'),
    ]:
        file = scene.dir / f"{name}.eftrec"
        file.write_bytes(content)
        refused(EFT, "replay", file, says=says)


def tcp_and_udp_replay_to_identical_segments():
    """Streams in both directions, opened from either side, with retransmission and closing, and datagrams. tcp and udp
    are killed in between, so that the second life begins with what the first left."""
    with Scene("transports") as scene:
        stack = Stack(scene, extra=("--record", str(scene.dir)))
        rules = scene.dir / "rules"

        def load(text):
            rules.write_text(text)
            stack.eft("pf", "-f", str(rules))

        load("pass all\n")
        echo = lambda side, address: scene.start(*side("python3", "-c", ECHO, address, "7"))
        ask = lambda side, address, *n: side("python3", "-c", ASK, address, "7", *map(str, n))
        echo(stack.on, stack.address)
        echo(stack.beside, stack.host)
        stack.listening(7)
        sh(*ask(stack.beside, stack.address, 3, 2 << 20, 100))
        sh(*ask(stack.on, stack.host, 3, 2 << 20, 100))
        # Nothing arrives until tcp has sent something again.
        before = stack.counter("tcp", "retransmitted_segments")
        slow = scene.start(*ask(stack.beside, stack.address, 1, 256 << 20, 0))
        wait_until(lambda: stack.counter("tcp", "received_bytes") > 24 << 20, 10, "the transfer to be under way")
        load("pass out all\nblock in all\n")
        wait_until(lambda: stack.counter("tcp", "retransmitted_segments") > before, 30, "a retransmission")
        load("pass all\n")
        end(slow)
        for component in ("tcp", "udp"):
            stack.kill(component)
        sh(*ask(stack.beside, stack.address, 2, 1 << 20, 50))
        end(stack.process)
        recordings = recorded(scene.dir)
        check(set(recordings) == {f"{c}-{n}" for c in ("tcp", "udp") for n in (1, 2)} | {"ip-1", "filter-1"},
              f"lives: {sorted(recordings)}")
        for name in ("tcp-2", "udp-1", "udp-2"):
            said = identical(recordings[name], died=name == "udp-1")
            payload = int(said.split(" bytes of payload")[0].split()[-1])
            check(payload > 50_000, f"{name}: {said}")
        full = sh(EFT, "replay", str(recordings["tcp-1"])).stdout
        check("all identical" in full, full)
        a_changed_word_is_told(scene, recordings["tcp-2"].read_bytes())


def entries(whole):
    """The positions of a recording's entries."""
    at = 16
    while at + 8 <= len(whole):
        length = struct.unpack_from("<I", whole, at)[0]
        yield at + 8, length
        at += 8 + length


def checksum(value):
    h = 0xCBF29CE484222325
    for byte in value:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return (h ^ h >> 32) & 0xFFFFFFFF


def a_changed_word_is_told(scene, whole):
    """Changes the last byte of entries, which belongs to an output, until a replay notices, with both versions."""
    places = [(at, length) for at, length in entries(whole) if 100 < length < 2000][5:40]
    check(places, "no entry to change")
    told = 0
    for at, length in places:
        value = bytearray(whole[at:at + length])
        value[-1] ^= 1
        changed = scene.dir / "changed.eftrec"
        changed.write_bytes(whole[:at - 4] + struct.pack("<I", checksum(value)) + value + whole[at + length:])
        done = sh(EFT, "replay", str(changed), ok=False)
        check(done.returncode != 0, f"a byte at {at} was changed, and nobody noticed: {done.stdout}")
        told += "recorded: " in done.stderr and "replayed: " in done.stderr and "call " in done.stderr
    check(told > 0, "no difference was told with both versions")


def a_life_after_a_failure_is_recorded():
    with Scene("failure") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", ECHO, stack.address, 7300), log="echo.log")
        stack.listening(7300)
        folder = pathlib.Path(f"/run/eft/{stack.name}/crashes")
        with socket.create_connection((stack.address, 7300), 10) as s:
            def use():
                s.sendall(b"12345678")
                check(s.recv(8, socket.MSG_WAITALL) == b"12345678", "the connection says something else")
            # An operator's kill is not a failure; two faults in a row are.
            for generation, signal_number in ((2, None), (3, signal.SIGSEGV), (4, signal.SIGSEGV)):
                use()
                if signal_number is None:
                    stack.eft("kill", "tcp")
                else:
                    os.kill(stack.components()["tcp"]["pid"], signal_number)
                wait_until(lambda: (c := stack.components()["tcp"])["generation"] == generation
                           and c["state"] == "running", 20, f"tcp's life {generation}")
                use()
                # The arena has room for thousands of connections; one that is read where nothing was written becomes memory.
                state = stack.components()["tcp"]["recovery"]["state_bytes"]
                check(0 < state < 2 << 20, f"tcp's life {generation} took over {state} bytes")
        kept = sorted(path.name for path in folder.glob("*.eftrec"))
        check(kept == ["tcp-3.eftrec", "tcp-4.eftrec"], f"{kept}")
        check((folder / kept[0]).stat().st_mode & 0o777 == 0o600, "others may read it")
        said = sh(EFT, "replay", folder / kept[0]).stdout
        check("it did not end in order" in said and "identical" in said, said)


def a_panic_after_the_recording_was_full_is_kept_alone():
    """A changed bit of the arena ends tcp by an assertion, long after its recording was full."""
    with Scene("alone") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", ECHO, stack.address, 7300), log="echo.log")
        stack.listening(7300)
        folder = pathlib.Path(f"/run/eft/{stack.name}/crashes")
        def life():
            return stack.components()["tcp"]["generation"]
        stack.eft("inject", "tcp", "failure")
        wait_until(lambda: life() == 2 and stack.components()["tcp"]["state"] == "running", 20, "tcp's life 2")
        with socket.create_connection((stack.address, 7300), 10) as s:
            def use(block):
                s.sendall(block)
                back = b""
                while len(back) < len(block):
                    more = s.recv(len(block))
                    check(more, "the connection ended")
                    back += more
                check(back == block, "the connection says something else")
            for _ in range(800):
                use(bytes(65536))
            check((folder / "tcp-2.eftrec").stat().st_size > 16 << 20, "the recording is not full")
            for seed in range(1000):
                stack.eft("inject", "tcp", "flip-arena", "--seed", str(seed))
                use(b"12345678")
                if life() > 2:
                    break
            wait_until(lambda: life() > 2 and stack.components()["tcp"]["state"] == "running", 20, "tcp's life 3")
            use(b"12345678")
        done = sh(EFT, "replay", folder / "tcp-2.eftrec", ok=False)
        check("was full" in done.stdout and "the call in which it panicked later, alone: " in done.stdout,
              done.stdout + done.stderr)
        # A successor mends the bit, so the call ends well; the replay says so, if it does not panic.
        check("it panics, as it did" in done.stdout or "ends well for a successor" in done.stderr, done.stderr)


def a_fault_or_a_hang_leaves_the_call_in_which_it_came():
    """tcp breaks in the middle of its work: by a write through NULL, and by a jump to itself, which the supervisor finds. Most of
    these are in a call; a recording that is not full ends with it."""
    with Scene("signals") as scene:
        stack = Stack(scene, extra=("--record", str(scene.dir)))
        scene.start(*stack.on("python3", "-c", ECHO, stack.address, 7300), log="echo.log")
        stack.listening(7300)
        for kind, cause in (("failure", "died of signal 11"), ("loop", "hung")):
            # Three of four are put into an input.
            for seed in range(12):
                generation = stack.components()["tcp"]["generation"]
                with Chatter(stack.address, 7300):
                    stack.eft("inject", "tcp", kind, "--seed", str(seed))
                    wait_until(lambda: (c := stack.components()["tcp"])["generation"] > generation
                               and c["state"] == "running", 60, f"the successor of tcp {generation} after {kind}")
                done = sh(EFT, "replay", scene.dir / f"tcp-{generation}.eftrec", ok=False)
                if f"the server {cause} in the last one, and all before are identical" in done.stdout:
                    break
                check("all identical" in done.stdout and "did not end in order" in done.stdout, done.stdout + done.stderr)
            else:
                check(False, f"no {kind} came in a call")
            # What was put into its code is not in the recording.
            check(f"in which the server {cause}, ends well here" in done.stderr, done.stderr)


class Chatter:
    """Says something to an echo for as long as it is open."""

    def __init__(self, *address):
        self.socket = socket.create_connection(address, 10)
        self.socket.settimeout(30)
        self.over = False
        self.wrong = None
        self.thread = threading.Thread(target=self.talk)

    def talk(self):
        word = bytes(range(256)) * 8
        try:
            while not self.over:
                self.socket.sendall(word)
                if self.socket.recv(len(word), socket.MSG_WAITALL) != word:
                    raise OSError("the connection says something else")
        except OSError as why:
            self.wrong = why

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over = True
        self.thread.join()
        self.socket.close()
        check(kind or not self.wrong, f"the connection: {self.wrong}")


def a_fault_after_the_recording_was_full_is_kept_alone():
    with Scene("fault") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("python3", "-c", ECHO, stack.address, 7300), log="echo.log")
        stack.listening(7300)
        folder = pathlib.Path(f"/run/eft/{stack.name}/crashes")
        full = lambda: stack.process.log.read_text().count("the recording is full")
        # Three of four failures are put behind the name of an input; a short one may be over by then.
        for seed in range(12):
            generation = stack.components()["tcp"]["generation"]
            with Chatter(stack.address, 7300):
                recording = folder / f"tcp-{generation}.eftrec"
                if recording.exists():
                    wait_until(lambda: full() == generation - 1, 60, "a full recording")
                stack.eft("inject", "tcp", "failure", "--seed", str(seed))
                wait_until(lambda: (c := stack.components()["tcp"])["generation"] > generation
                           and c["state"] == "running", 20, f"the successor of tcp {generation}")
            if recording.exists():
                done = sh(EFT, "replay", recording, ok=False)
                if "the call in which it died of signal 11 later, alone: " in done.stdout:
                    check("ends well for a successor" in done.stderr, done.stderr)
                    return
        check(False, f"no fault came in a call: {done.stdout}")


def costs_are_counted_by_replays():
    """A load's recordings, replayed under callgrind, give a calibration file; without valgrind nothing is counted, and one line says so."""
    with Scene("costs") as scene:
        topology, folder, file = scene.dir / "topology.toml", scene.dir / "load", scene.dir / "costs.toml"
        # A replay's memory must fit into what valgrind gives a program.
        topology.write_text((ROOT / "topologies/default.toml").read_text() + "\n[limits]\nsockets_per_domain = 400\n")
        stack = Stack(scene, topology=topology, extra=("--record", str(folder)))
        scene.start(*stack.on("python3", "-c", ECHO, stack.address, "7"))
        stack.listening(7)
        sh(*stack.beside("python3", "-c", ASK, stack.address, "7", "20", "100000", "10"))
        end(stack.process)
        costs = ("bench", "costs", str(file), "--recordings", str(folder), "--calls", "2000")
        sh(EFT, *costs, timeout=300)
        counted = tomllib.loads(file.read_text())["eft"]
        for name in ("tcp_data", "tcp_segment", "handshake", "write", "ip_segment", "ip_acknowledgement", "ip_sent"):
            cost = counted[f"{name}_cycles"]
            check(cost["tag"] == "measured" and cost["source"], f"{name}: {cost}")
            check(cost["low"] <= cost["value"] <= cost["high"], f"{name}: {cost}")
        check(counted["handshake_cycles"]["value"] > counted["tcp_sent_cycles"]["value"], f"{counted}")
        told = sh(EFT, *costs, ok=False, env=os.environ | {"PATH": "/nonexistent"})
        check(told.returncode != 0 and "install the package valgrind" in told.stderr, told.stderr)
        refused(EFT, "bench", "costs", file, "--recordings", scene.dir / "nowhere", says="No such file")


CASES = [
    a_panic_after_the_recording_was_full_is_kept_alone,
    a_fault_after_the_recording_was_full_is_kept_alone,
    a_fault_or_a_hang_leaves_the_call_in_which_it_came,
    costs_are_counted_by_replays,
    a_live_recording_replays_to_identical_segments,
    tcp_and_udp_replay_to_identical_segments,
    a_life_after_a_failure_is_recorded,
]
