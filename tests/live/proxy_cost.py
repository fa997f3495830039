#!/usr/bin/env python3
"""What a proxy costs: the same program, once preloaded and once statically linked, in turns. Prints ratios, proxied to
preloaded: medians of the rounds, and the least and the greatest. Argument: rounds (5)."""

import os
import statistics
import sys
import time

from harness import ROOT, Scene, Stack, alone, sh
from proxied import SOURCE

ASKED, VISITED, BYTES = 20_000, 1_000, 128 << 20


def bulk(side, program, port, path):
    """Bytes a second, there and back."""
    start = time.monotonic()
    sh(*side("bash", "-c", f"exec {program} fetch {port} < {path} > /dev/null"), timeout=250)
    return BYTES / (time.monotonic() - start)


def main(rounds):
    with Scene("cost") as scene:
        stack = Stack(scene)
        programs = {}
        for name, *compiler in (("preloaded", "gcc"), ("proxied", "musl-gcc", "-static")):
            programs[name] = scene.dir / name
            sh(*compiler, "-O2", "-o", programs[name], SOURCE)
        path, _ = scene.file("data", BYTES)
        scene.start(*stack.beside(programs["proxied"], "serve", stack.host, 7100))
        stack.listening_beside(7100)
        for port, name in ((7101, "preloaded"), (7102, "proxied")):
            scene.start(*stack.on(programs[name], "serve", stack.address, port))
            stack.listening(port)
        rate = lambda side, *words: float(sh(*side(*words), timeout=250).stdout)
        outside = programs["proxied"]
        client = lambda name, port, what, count: rate(stack.on, programs[name], what, stack.host, 7100, count)
        server = lambda name, port, what, count: rate(stack.beside, outside, what, stack.address, port, count)
        measured = {
            "client: answers on one connection": lambda name, port: client(name, port, "ask", ASKED),
            "client: connections": lambda name, port: client(name, port, "visit", VISITED),
            "client: bytes both ways": lambda name, port: bulk(stack.on, programs[name], f"{stack.host} 7100", path),
            "server: answers on one connection": lambda name, port: server(name, port, "ask", ASKED),
            "server: connections": lambda name, port: server(name, port, "visit", VISITED),
            "server: bytes both ways": lambda name, port: bulk(stack.beside, outside, f"{stack.address} {port}", path),
        }
        for what, measure in measured.items():
            ratios = []
            for _ in range(rounds):
                preloaded, proxied = measure("preloaded", 7101), measure("proxied", 7102)
                ratios.append(proxied / preloaded)
            print(f"{what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
                  f"last {proxied:.0f} and {preloaded:.0f} a second", flush=True)


if __name__ == "__main__":
    if os.environ.get("EFT_LIVE_INSIDE") != "yes":
        command = [str(ROOT / "scripts/own-network"), sys.executable, *sys.argv]
        os.execvpe(command[0], command, os.environ | {"EFT_LIVE_INSIDE": "yes"})
    with alone():
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
