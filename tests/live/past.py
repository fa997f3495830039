"""Programs that make their system calls by instructions of their own."""

import pathlib

from harness import Scene, Stack, check, sh, sha256_of, wait_until

SOURCE = pathlib.Path(__file__).with_name("past.c")
SERVED, FETCHED = 7006, 7007


def exchanged(scene, side, program, path):
    """Checksums of what came back: three times from the program, and once to it."""
    scene.start(*side.on(program, "serve", side.address, SERVED))
    # The first client, which sends nothing.
    side.listening(SERVED)
    sums = [sha256_of(side.beside("bash", "-c", f"socat -t30 - TCP:{side.address}:{SERVED} < {path}")) for _ in range(3)]
    scene.start(*side.beside("socat", f"TCP-LISTEN:{FETCHED},bind={side.host},fork,reuseaddr", "EXEC:cat"))
    wait_until(lambda: f":{FETCHED} " in sh(*side.beside("ss", "-ltn")).stdout, 10, "socat")
    return sums + [sha256_of(side.on("bash", "-c", f"{program} fetch {side.host} {FETCHED} < {path}"))]


def calls_past_libc():
    with Scene("past") as scene:
        program = scene.dir / "past"
        sh("gcc", "-O2", "-Wall", "-pthread", "-o", str(program), str(SOURCE))
        path, want = scene.file("data", 8 << 20)
        for side in (scene.kernel(), Stack(scene)):
            sums = exchanged(scene, side, program, path)
            check(sums == [want] * 4, f"on {type(side).__name__}: {sums}, not {want}")


CASES = [calls_past_libc]
