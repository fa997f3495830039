"""An input that kills its server twice, in a build with such an input: it is dropped, kept, and everybody else goes on."""

import pathlib
import socket
import struct

from harness import EFT, Scene, Stack, check, end, sh, wait_until
from updates import next_release
from watchdog import listening_echo

# What the feature `poison` of crates/transport asks for.
DEADLY_PORT, DEADLY_LEN = 6666, 666
ECHO_PORT = 7300


def answers(s, word):
    s.sendall(word)
    got = b""
    while len(got) < len(word):
        piece = s.recv(len(word) - len(got))
        check(piece, "a connection was closed")
        got += piece
    check(got == word, "a connection says something else")


def an_input_that_kills_twice_is_dropped_and_kept():
    program = next_release()
    with Scene("poison") as scene:
        stack = Stack(scene, program=str(program))
        listening_echo(scene, stack)
        others = [socket.create_connection((stack.address, ECHO_PORT), timeout=60) for _ in range(20)]
        deadly = socket.socket(others[0].family)
        deadly.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadly.bind((stack.host, DEADLY_PORT))
        deadly.settimeout(60)
        deadly.connect((stack.address, ECHO_PORT))
        for s in [*others, deadly]:
            answers(s, b"before")
        deadly.sendall(b"d" * DEADLY_LEN)
        wait_until(lambda: stack.components()["tcp"]["deaths"] == 2, 20, "two deaths of tcp")
        wait_until(lambda: stack.counter("tcp", "drop_fatal") > 0, 20, "the segment to be dropped")
        for _ in range(3):
            for s in others:
                answers(s, b"afterwards")
        # Its peer has sent it again meanwhile, and does so from now on, too.
        dropped = stack.counter("tcp", "drop_fatal")
        wait_until(lambda: stack.counter("tcp", "drop_fatal") > dropped, 60, "the segment to be dropped again")
        for s in others:
            answers(s, b"at last")
        components = stack.components()
        check(components["tcp"]["deaths"] == 2, f"{components}")
        check(all(c["deaths"] == 0 for name, c in components.items() if name != "tcp"), f"others died: {components}")
        # The life that was recorded since the first failure ends with that call; this program dies of it again, and a program without
        # the fault does not.
        recording = pathlib.Path(f"/run/eft/{stack.name}/crashes/tcp-2.eftrec")
        wait_until(recording.exists, 10, "a recording")
        said = sh(program, "replay", recording, ok=False)
        check(said.returncode == 0 and "it panics, as it did" in said.stdout, said.stdout + said.stderr)
        check(f"{DEADLY_LEN} bytes from port {DEADLY_PORT}" in said.stdout + said.stderr, said.stdout + said.stderr)
        said = sh(EFT, "replay", recording, ok=False)
        check("as it did" not in said.stdout, said.stdout + said.stderr)
        deadly.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        deadly.close()
        for s in others:
            s.close()
        end(stack.process)


CASES = [an_input_that_kills_twice_is_dropped_and_kept]
