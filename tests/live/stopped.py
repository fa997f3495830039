"""A program that is stopped (SIGSTOP) with full rings, a full queue of connections and datagrams that nobody reads: only its own
connections wait, whatever dies meanwhile, and all of them go on when it does."""

import os
import re
import signal
import socket
import threading
import time

from harness import Failure, Scene, Stack, check, family, seconds, wait_until

STOPPED, OTHER = 7401, 7403
ROUND = 251
# Each connection is served by a thread as its first byte says: `o` sends without end, `i` takes until the end and says how much
# and whether it was right, anything else is sent back. Datagrams are sent back, too.
SERVER = """
import os, socket, threading
pattern = bytes(range(%(round)d)) * 257
def serve(s):
    what, place = s.recv(1), 0
    if what == b"o":
        while True:
            place += s.send(pattern[place %% %(round)d:])
    if what == b"i":
        right = True
        while data := s.recv(65536):
            at = place %% %(round)d
            right = right and data == (pattern + pattern)[at:at + len(data)]
            place += len(data)
        s.sendall(b"%%d %%s" %% (place, str(right).encode()))
        s.close()
    while data := s.recv(65536):
        s.sendall(data)
def datagrams(s):
    while True:
        data, who = s.recvfrom(2048)
        s.sendto(data, who)
family = %(family)s
listener = socket.create_server(("%(address)s", %(port)d), family=family, backlog=8)
d = socket.socket(family, socket.SOCK_DGRAM)
d.bind(("%(address)s", %(port)d))
threading.Thread(target=datagrams, args=(d,), daemon=True).start()
print("listening", os.getpid(), flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def server(scene, stack, port):
    text = SERVER % {"round": ROUND, "family": family(stack.address), "address": stack.address, "port": port}
    process = scene.start(*stack.on("python3", "-c", text))
    wait_until(lambda: "listening" in process.log.read_text(), 10, "a server to listen")
    return int(re.search(r"listening (\d+)", process.log.read_text())[1])


def connect(stack, port, what=b""):
    s = socket.create_connection((stack.address, port), timeout=60)
    s.sendall(what)
    return s


def pattern(place, length):
    at = place % ROUND
    return (bytes(range(ROUND)) * (length // ROUND + 2))[at:at + length]


def echo(s, word):
    s.sendall(word)
    got = b""
    while len(got) < len(word):
        piece = s.recv(len(word) - len(got))
        check(piece, "a connection was closed")
        got += piece
    check(got == word, "an answer says something else")


class Requests:
    """Connections, and datagrams, that are asked all the time."""

    def __init__(self, stack, port):
        self.count = {"tcp": 0, "udp": 0, "new": 0}
        self.failures, self.ends = [], False
        self.threads = [threading.Thread(target=self.keep, args=(turn, stack, port)) for turn in (self.tcp, self.udp, self.new)]
        for thread in self.threads:
            thread.start()

    def keep(self, turn, stack, port):
        try:
            turn(stack, port)
        except Exception as error:
            self.failures.append(f"{turn.__name__}: {error}")

    def tcp(self, stack, port):
        with connect(stack, port, b"e") as s:
            while not self.ends:
                echo(s, b"x" * 64)
                self.count["tcp"] += 1

    def udp(self, stack, port):
        with socket.socket(socket.AF_INET6 if ":" in stack.address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((stack.address, port))
            s.settimeout(0.1)
            while not self.ends:
                s.send(b"y" * 64)
                try:
                    self.count["udp"] += s.recv(2048) == b"y" * 64
                except TimeoutError:
                    pass

    def new(self, stack, port):
        while not self.ends:
            with connect(stack, port, b"e") as s:
                echo(s, b"z" * 64)
            self.count["new"] += 1

    def during(self, action):
        """How many were answered in a second meanwhile."""
        before, begin = dict(self.count), time.monotonic()
        action()
        check(not self.failures, f"of the other program: {self.failures}")
        return {name: (self.count[name] - before[name]) / (time.monotonic() - begin) for name in before}

    def end(self):
        self.ends = True
        for thread in self.threads:
            thread.join()
        check(not self.failures, f"of the other program: {self.failures}")


def fill(s, place):
    """Sends until nobody takes anything for a second; returns how much there is then."""
    s.settimeout(1)
    try:
        while True:
            place += s.send(pattern(place, 65536))
    except TimeoutError:
        return place


def drain(s, place):
    """Takes what comes, until nothing comes for a second."""
    s.settimeout(1)
    try:
        while True:
            data = s.recv(65536)
            check(data == pattern(place, len(data)) and data, f"damaged or ended after {place} bytes")
            place += len(data)
    except TimeoutError:
        return place


def a_stopped_program_harms_nobody():
    with Scene("stopped") as scene:
        stack = Stack(scene)
        pid = server(scene, stack, STOPPED)
        server(scene, stack, OTHER)
        out, into, idle = (connect(stack, STOPPED, what) for what in (b"o", b"i", b"e"))
        idle.sendall(b"first")
        check(idle.recv(5) == b"first", "no answer before it was stopped")
        requests = Requests(stack, OTHER)
        before = requests.during(lambda: time.sleep(3))
        # Its ring to the client is full: nobody has read that yet.
        os.kill(pid, signal.SIGSTOP)
        try:
            sent, got, queued = while_stopped(stack, out, into, idle, requests, before)
        finally:
            os.kill(pid, signal.SIGCONT)
        out.settimeout(60)
        while got < (1 << 22):
            data = out.recv(65536)
            check(data == pattern(got, len(data)) and data, f"the stream to the client is damaged after {got} bytes")
            got += len(data)
        out.close()
        into.settimeout(60)
        into.sendall(pattern(sent, 1 << 20))
        into.shutdown(socket.SHUT_WR)
        said = into.recv(64)
        check(said == b"%d True" % (sent + (1 << 20)), f"of the stream to the program: {said}, {sent} bytes before it went on")
        idle.settimeout(60)
        check(idle.recv(6) == b"second", "the connection that slept does not go on")
        for s in queued:
            s.setblocking(True)
            s.settimeout(60)
            s.sendall(b"ee")
            check(s.recv(1) == b"e", "a connection of the queue has no answer")
            s.close()
        with socket.socket(idle.family, socket.SOCK_DGRAM) as s:
            s.connect((stack.address, STOPPED))
            wait_until(lambda: answers(s), 30, "the datagrams' socket to go on")
        requests.end()
        # Stopped again, and killed: nothing of it is left.
        os.kill(pid, signal.SIGSTOP)
        idle.sendall(b"third")
        os.kill(pid, signal.SIGKILL)
        check(ends(idle), "the connection of a program that was killed while it was stopped")
        try:
            wait_until(lambda: stack.counter("tcp", "blocks") <= 1, 30, "all its connections to end")
        except Failure as late:
            # Which ones, and in which state, is what a failure is understood by.
            raise Failure(f"{late}\n{stack.eft('ss').stdout}") from late


def while_stopped(stack, out, into, idle, requests, before):
    sent, got = fill(into, 0), drain(out, 0)
    idle.sendall(b"second")
    queued = [socket.socket(idle.family) for _ in range(40)]
    for s in queued:
        s.setblocking(False)
        s.connect_ex((stack.address, STOPPED))
    with socket.socket(idle.family, socket.SOCK_DGRAM) as flood:
        for _ in range(20_000):
            flood.sendto(b"f" * 1200, (stack.address, STOPPED))
    after = requests.during(lambda: time.sleep(2 * seconds()))
    for name, rate in before.items():
        check(after[name] > rate / 8, f"{name}: {rate:.0f} answers a second before, {after[name]:.0f} beside the stopped program")
    for component in ("tcp", "sockets", "udp", "ip"):
        requests.during(lambda: stack.kill(component))
    again = requests.during(lambda: time.sleep(seconds()))
    check(min(again.values()) > 0, f"after deaths beside the stopped program: {again}")
    check("ESTAB" in stack.eft("ss").stdout, "eft ss shows nothing")
    return sent, got, queued


def answers(s):
    s.settimeout(0.2)
    s.send(b"alive")
    try:
        return s.recv(2048) == b"alive"
    except TimeoutError:
        return False


def ends(s):
    try:
        while s.recv(100):
            pass
        return True
    except ConnectionResetError:
        return True


CASES = [a_stopped_program_harms_nobody]
