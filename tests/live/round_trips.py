"""qperf and sockperf, as netperf's loads (which is not in Debian): requests and streams over TCP and UDP, with the server on the stack and
with the client there."""

import re

from harness import Scene, Stack, check, of_one_version, seconds, sh, wait_until

# Of each case another: what is beside the stack may be beside another case's stack, too.
QPERF_PORT, SOCKPERF_PORT = 19765, 19766
# What qperf calls TCP_STREAM, TCP_RR, UDP_STREAM and UDP_RR, and the message sizes for each.
QPERF = {"tcp_bw": (100, 65536), "tcp_lat": (1, 20000), "udp_bw": (1400, 20000), "udp_lat": (1, 20000)}


def ends(stack):
    """Who serves, who asks, and where."""
    return (("on the stack", stack.on, stack.beside, stack.address), ("beside it", stack.beside, stack.on, stack.host))


def qperf_both_ways():
    with Scene("qperf") as scene:
        stack = Stack(scene)
        for where, serve, ask, address in ends(stack):
            server = scene.start(*serve("qperf", "--listen_port", QPERF_PORT))
            listening(stack, address, QPERF_PORT)
            for test, sizes in QPERF.items():
                for size in sizes:
                    out = sh(*ask("qperf", address, "--listen_port", QPERF_PORT, "--time", max(1, seconds() // 6), "--msg_size", size, test)).stdout
                    told = re.findall(r" = +([\d.]+) ", out)
                    check(told and all(float(value) > 0 for value in told), f"{test} of {size} bytes, server {where}: {out}")
            server.terminate()
            server.wait(10)
            # A process that it forked for the last test may still have its listening socket, which the kernel's loopback has, too.
            listeners = stack.beside("ss", "-Hltn", f"sport = :{QPERF_PORT}")
            wait_until(lambda: not sh(*listeners).stdout, 10, "the server's processes to end")


def listening(stack, address, port):
    (stack.listening if address == stack.address else stack.listening_beside)(port)


@of_one_version("Debian's sockperf knows no IPv6")
def sockperf_both_ways():
    with Scene("sockperf") as scene:
        stack = Stack(scene)
        for where, serve, ask, address in ends(stack):
            for protocol, size in ((["--tcp"], 20000), ([], 1400)):
                server = scene.start(*serve("stdbuf", "-oL", "sockperf", "server", "-i", address, "-p", SOCKPERF_PORT, *protocol))
                wait_until(lambda: "[tid" in server.log.read_text(), 10, "sockperf's server")
                what = f"{size} bytes, {' '.join(protocol) or 'UDP'}, server {where}"
                out = sh(*ask("sockperf", "ping-pong", "-i", address, "-p", SOCKPERF_PORT, "-t", 1, "-m", size, *protocol)).stdout
                out = re.sub(r"\x1b\[[\d;]*m", "", out)
                counts = re.search(r"\[Valid Duration\].*SentMessages=(\d+); ReceivedMessages=(\d+)", out)
                check(counts and int(counts[2]) > 10, f"{what}: {out}")
                amiss = re.search(r"# dropped messages = (\d+); # duplicated messages = (\d+); # out-of-order messages = (\d+)", out)
                check(amiss and amiss.groups() == ("0", "0", "0"), f"{what}: {out}")
                server.terminate()
                server.wait(10)


CASES = [qperf_both_ways, sockperf_both_ways]
