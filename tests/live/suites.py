"""The test suites of Python's own network modules (Debian's libpython3.11-testsuite) on the stack, at its address.

Whatever passes on the kernel passes on the stack, apart from what KNOWN lists with its reason."""

import json

from harness import Scene, Stack, check

PYTHON = "/usr/bin/python3"

RUNNER = """
import importlib, json, os, sys, unittest
from test.support import socket_helper
host, result, *modules = sys.argv[1:]
# Defaults are as old as the functions that have them.
socket_helper.HOST = socket_helper.HOSTv4 = host
socket_helper.bind_port.__defaults__ = (host,)
# Bluetooth, CAN and the like are no matter of the stack; VSOCK hangs in some virtual machines; UDP-Lite is refused.
LEFT_OUT = ("VSOCK", "Bluetooth", "CAN", "UDPLITE")

def cases(suite):
    for test in suite:
        yield from cases(test) if isinstance(test, unittest.TestSuite) else [test]

class Results(unittest.TextTestResult):
    passed = []
    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id())

tests = [t for m in modules for t in cases(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("test." + m)))]
suite = unittest.TestSuite(t for t in tests if not any(word in t.id() for word in LEFT_OUT))
unittest.TextTestRunner(verbosity=2, resultclass=Results).run(suite)
with open(result, "w") as file:
    json.dump(Results.passed, file)
# A thread that a failed test left waiting does not keep it from ending.
os._exit(0)
"""

# test_asyncio.test_sendfile passes, too, but takes minutes: a stack that talks to itself through a send buffer of 4 KiB waits for
# a delayed acknowledgement after each. Linux acknowledges when the program has read all, which tcp does not see at once.
GROUPS = {
    "socket": ["test_socket"],
    "selectors": ["test_selectors", "test_select", "test_poll", "test_epoll"],
    "asyncio": [f"test_asyncio.test_{m}" for m in ["sock_lowlevel", "server", "streams", "events", "buffered_proto", "selector_events", "ssl"]],
    "servers": ["test_socketserver", "test_ftplib", "test_smtplib", "test_ssl"],
}

KNOWN = {
    # A listener at :: for both versions of IP has its socket on the kernel's loopback at 127.0.0.1 only.
    "test.test_socket.CreateServerFunctionalTest.test_dual_stack_client_v6",
    # They count on a reset being there as soon as it was sent, as it is on the kernel's loopback.
    "test.test_ssl.TestPreHandshakeClose.test_preauth_data_to_tls_client",
    "test.test_ssl.TestPreHandshakeClose.test_preauth_data_to_tls_server",
    # It counts on its only character of two bytes coming with one receive, though bytes of a stream may be parted anywhere.
    "test.test_ftplib.TestFTPClass.test_storlines",
}


def suites_of_python():
    with Scene("python-suites") as scene:
        sides = {"stack": Stack(scene), "kernel": scene.kernel()}
        runner = scene.dir / "runner.py"
        runner.write_text(RUNNER)
        runs = {}
        for group, modules in GROUPS.items():
            for name, side in sides.items():
                command = [PYTHON, str(runner), side.address, str(scene.dir / f"{name}-{group}.json"), *modules]
                runs[name, group] = scene.start(*side.on("timeout", "200", *command))
        for run in runs.values():
            run.wait(220)
        total = 0
        for group in GROUPS:
            results = [scene.dir / f"{name}-{group}.json" for name in sides]
            for path, name in zip(results, sides):
                check(path.exists(), f"{group} on the {name} did not end: {runs[name, group].log.read_text()[-3000:]}")
            stack, kernel = (set(json.loads(path.read_text())) for path in results)
            missing = kernel - stack - KNOWN
            check(not missing, f"{group}: passes on the kernel alone: {sorted(missing)}: {runs['stack', group].log.read_text()[-3000:]}")
            total += len(stack & kernel)
        check(total > 1000, f"only {total} tests passed")
        print(f"        {total} tests passed on both", flush=True)


CASES = [suites_of_python]
