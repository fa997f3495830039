"""redis's own tests (of Debian's source package redis) on the stack: server, client and benchmark, and the tests themselves, which are
Tcl, are programs on it. Whatever passes on the kernel passes on the stack, apart from what KNOWN lists with its reason."""

import re
import shutil

from harness import ROOT, Scene, Stack, check

SOURCES = ROOT / "target/sources/redis"
PROGRAMS = ["server", "cli", "benchmark", "check-aof", "check-rdb", "sentinel"]
# Those that are about connections, buffers and clients, and take seconds.
UNITS = ["unit/protocol", "unit/querybuf", "unit/pendingquerybuf", "unit/pubsub", "unit/pubsubshard", "unit/networking", "unit/limits",
         "unit/auth", "unit/quit", "unit/multi", "unit/replybufsize", "integration/redis-cli", "integration/redis-benchmark"]
KNOWN = [
    # They count on what one connection has sent being read before what another sends next, as on the kernel's loopback.
    "PUBLISH/SUBSCRIBE after UNSUBSCRIBE without arguments",
    "PUBLISH/PSUBSCRIBE after PUNSUBSCRIBE without arguments",
    "SPUBLISH/SSUBSCRIBE after UNSUBSCRIBE without arguments",
    # It is about addresses that are not the loopback's, as all are here.
    "Protected mode works as expected",
]


def prepared(scene, name, address):
    """A folder with the tests, with this address in the place of 127.0.0.1, and with Debian's programs."""
    folder = scene.dir / name
    (folder / "src").mkdir(parents=True)
    for program in PROGRAMS:
        (folder / "src" / f"redis-{program}").symlink_to(shutil.which(f"redis-{program}") or shutil.which("redis-server"))
    shutil.copytree(SOURCES / "tests", folder / "tests")
    (folder / "tests/tmp").mkdir(exist_ok=True)
    for path in [*(folder / "tests").rglob("*.tcl"), *(folder / "tests/assets").glob("*.conf")]:
        text = path.read_text(errors="surrogateescape")
        # Whoever comes from another address than the loopback's would have to give a password.
        text = f"protected-mode no\n{text}" if path.suffix == ".conf" else text
        text = text.replace("127.0.0.1", address).replace("socket localhost", f"socket {address}")
        path.write_text(text, errors="surrogateescape")
    return folder


def results(run):
    """The names of the tests that passed, and what was said of the others."""
    text = re.sub(r"\x1b\[[\d;]*m", "", run.log.read_text(errors="replace"))
    return set(re.findall(r"^\[ok\]: (.*) \(\d+ ms\)$", text, re.MULTILINE)), re.findall(r"^\[(?:err|exception)\]: .*\n.*", text, re.MULTILINE)


def tests_of_redis():
    with Scene("redis-tests") as scene:
        check(SOURCES.is_dir(), f"{SOURCES} is missing: ./test fetches it")
        sides = {"stack": Stack(scene), "kernel": scene.kernel()}
        runs = {}
        for name, side in sides.items():
            units = [word for unit in UNITS for word in ("--single", unit)]
            left_out = [word for test in KNOWN for word in ("--skiptest", test)]
            command = ["timeout", "300", "tclsh", "tests/test_helper.tcl", "--clients", "4", *units, *left_out]
            runs[name] = scene.start(*side.on(*command), cwd=prepared(scene, name, side.address), log=f"{name}.log")
        for run in runs.values():
            run.wait(320)
        (stack, wrong), (kernel, _) = (results(run) for run in runs.values())
        check(not kernel - stack, f"passes on the kernel alone: {sorted(kernel - stack)}: {wrong}")
        check(len(stack & kernel) > 100, f"only {len(stack & kernel)} tests passed")
        print(f"        {len(stack & kernel)} tests hold on both", flush=True)


CASES = [tests_of_redis]
