"""libuv's own tests (Debian's source package libuv1) on the stack, at its address instead of 127.0.0.1.

Whatever passes on the kernel passes on the stack, apart from what KNOWN lists with its reason."""

import os
import re
import shutil

from harness import ROOT, Scene, check, sh
from ipv6 import DualStack

SOURCES = ROOT / "target/sources/libuv1"

# They use no socket of IP.
LEFT_OUT = re.compile(
    "fs_|thread|timer|spawn|fork_|utf8_|idna_|process_|tty|get_|barrier|condvar|semaphore|signal_|we_get_|random_|stdio_|metrics_|"
    "queue_|str|platform_|env_vars|cwd|homedir|tmpdir|uname|kill|dlerror|pipe_|ipc_send_recv_pipe|idle_|loop_|test_macros")

KNOWN = {
    # All numbers but one are taken, and the stack's side of a connection's descriptors takes two more for a moment.
    "emfile",
    # It counts on the ICMP error of a datagram being there before the next one is sent, as on the kernel's loopback.
    "udp_send_unreachable",
    # It counts how often the receiver takes what there is, 20 datagrams at a time: on the kernel's loopback each is there when its send
    # returns. On the stack udp brings them a moment later, so on a busy machine it may take them in more steps.
    "udp_mmsg",
}

# Runs tests one after the other.
RUNNER = """
program=$1; shift
for test; do
    "$program" "$test" 2>&1 | sed "s/^\\(not ok\\|ok\\) 1 - /\\1 - /"
done
"""


def built(scene, address):
    """libuv's test program with this address in the place of 127.0.0.1."""
    sources, build = scene.dir / "libuv", scene.dir / "build"
    check(SOURCES.is_dir(), f"{SOURCES} is missing: ./test fetches it")
    shutil.copytree(SOURCES, sources)
    for path in (sources / "test").glob("*.[ch]"):
        # Its sockets in the file system lie in the working folder, one for each side.
        path.write_text(path.read_text().replace("127.0.0.1", address).replace('"/tmp/uv-test-sock', '"uv-test-sock'))
    quick = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O0 -g0"]
    sh("cmake", "-S", sources, "-B", build, *quick)
    sh("make", "-C", build, "-j2", "uv_run_tests", timeout=600)
    return build / "uv_run_tests"


def results(run):
    """The names of the tests that passed and that failed; those that were skipped are neither."""
    lines = re.findall(r"^(not ok|ok) - (\w+)(.*)$", run.log.read_text(), re.MULTILINE)
    chosen = lambda what: {name for word, name, more in lines if word == what and "SKIP" not in more}
    return chosen("ok"), chosen("not ok")


def tests_of_libuv():
    with Scene("libuv") as scene:
        sides = {"stack": DualStack(scene), "kernel": scene.kernel()}
        # The kernel's side has the stack's address, too.
        address = sides["stack"].address
        sh("ip", "-n", sides["kernel"].netns, "addr", "add", f"{address}/32", "dev", "lo")
        program = built(scene, address)
        # Root may send and bind what others may not; the tests are told that they are not alone.
        env = os.environ | {"UV_RUN_AS_ROOT": "1", "UV_TEST_TIMEOUT_MULTIPLIER": "6"}
        names = re.findall(r"^(\w+)", sh(program, "--list", env=env).stdout, re.MULTILINE)
        names = [name for name in names if not LEFT_OUT.match(name)]
        command = ["timeout", "300", "sh", "-c", RUNNER, "sh", str(program), *names]
        runs = {}
        for name, side in sides.items():
            folder = scene.dir / name
            folder.mkdir()
            runs[name] = scene.start(*side.on(*command), env=env, cwd=folder, log=f"{name}.log")
        for run in runs.values():
            run.wait(320)
        (stack, failed), (kernel, _) = (results(run) for run in runs.values())
        missing = kernel - stack - KNOWN
        said = re.findall(r"^not ok(?:.*\n#)*.*", runs["stack"].log.read_text(), re.MULTILINE)
        check(not missing, f"passes on the kernel alone: {sorted(missing)}: {said}")
        check(len(stack & kernel) > 150, f"only {len(stack & kernel)} of {len(names)} tests passed")
        print(f"        {len(stack & kernel)} tests hold on both, on the stack do not: {sorted(failed)}", flush=True)


CASES = [tests_of_libuv]
