"""Short connections to a program with threads, which have no descriptors of their own at first, while servers die."""

import os
import re
import signal
import socket
import struct
import threading
import time

from harness import EFT, Scene, Stack, check, in_url, of_one_version, sh, wait_until

PORT = 7007


@of_one_version("the visitors of `eft bench` have IPv4 addresses")
def visits_go_on_while_servers_die():
    with Scene("visits") as scene:
        stack = Stack(scene)
        address = f"{stack.address}:{PORT}"
        server = scene.start(*stack.on(EFT, "bench", "peer", "serve-visits", address))
        # The addresses of which `visit` makes use.
        for i in range(100, 132):
            sh("ip", "address", "add", f"{stack.host.rpartition('.')[0]}.{i}/24", "dev", stack.device)
        done = {}
        visit = (EFT, "bench", "peer", "visit", address, stack.host, "4")
        wait_until(lambda: "listening" in server.log.read_text(), 10, "the server to listen")
        sh(*stack.beside(*visit[:-1], "1"))
        accepted, calls = (stack.counter("tcp", name) for name in ("accepted_connections", "descriptor_calls"))
        # One for the listener, and two for the end of each connection whose far end tcp has.
        check(calls < 2 * accepted, f"{calls} calls on far ends of {accepted} connections")
        client = threading.Thread(target=lambda: done.update(rate=float(sh(*stack.beside(*visit)).stdout)))
        client.start()
        for component in ["sockets", "tcp", "sockets", "ip"]:
            time.sleep(0.7)
            stack.kill(component)
        client.join()
        check(done.get("rate", 0) > 10, f"visits a second: {done}")
        # The listener is left.
        wait_until(lambda: stack.counter("tcp", "blocks") <= 1, 60, "all connections to end")


def a_connection_of_a_moment_ago_outlives_sockets():
    with Scene("moment") as scene:
        stack = Stack(scene)
        scene.start(*stack.on(EFT, "bench", "peer", "echo", f"{in_url(stack.address)}:{PORT}"))
        stack.listening(PORT)

        def exchange(s):
            s.sendall(b"x" * 64)
            got = 0
            while got < 64:
                piece = s.recv(64 - got)
                check(piece, "a connection was closed")
                got += len(piece)

        for component in ["sockets", "tcp", "sockets", "tcp"]:
            with socket.create_connection((stack.address, PORT), timeout=30) as s:
                exchange(s)
                os.kill(stack.components()[component]["pid"], signal.SIGKILL)
                for _ in range(3):
                    exchange(s)
                    time.sleep(0.02)
        wait_until(lambda: stack.counter("tcp", "blocks") <= 1, 30, "the server to see that they are closed")


def a_program_that_is_killed_leaves_no_connection():
    """Another process of its domain lives on, so the end of the domain does not close what it had."""
    with Scene("killed") as scene:
        stack = Stack(scene)
        address = f"{in_url(stack.address)}:{PORT}"
        script = f"'{EFT}' bench peer serve-visits {address} & echo pid $!; exec sleep 1000"
        for component in [None, "sockets", "tcp"]:
            server = scene.start(*stack.on("sh", "-c", script))
            wait_until(lambda: "listening" in server.log.read_text(), 10, "the server to listen")
            pid = int(re.search(r"pid (\d+)", server.log.read_text())[1])
            clients = [socket.create_connection((stack.address, PORT), timeout=30) for _ in range(8)]
            for client in clients:
                client.sendall(b"x" * 10)
            # Its threads sleep on the pages of four connections.
            time.sleep(0.005)
            os.kill(pid, signal.SIGKILL)
            if component:
                os.kill(stack.components()[component]["pid"], signal.SIGKILL)
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                try:
                    check(not client.recv(1), "the end of the connection")
                except ConnectionResetError:
                    pass
                client.close()
            wait_until(lambda: stack.counter("tcp", "blocks") == 0, 30, "all connections to end")
            server.terminate()


CASES = [
    visits_go_on_while_servers_die,
    a_connection_of_a_moment_ago_outlives_sockets,
    a_program_that_is_killed_leaves_no_connection,
]
