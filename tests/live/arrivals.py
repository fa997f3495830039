"""A program that looks at many connections at once is told first of those whose input came first, on the stack as on the kernel. redis
counts on it: what one client has asked for must not overtake what another had asked for before."""

import json

from harness import Scene, Stack, check, everywhere, over_ipv6, sh, wait_until

PORT, CONNECTIONS, ROUNDS = 8080, 30, 20

# Takes the connections, and looks at them each time when a byte comes on the first one, or so many seconds later. Says in which order
# they were reported.
LOOKER = """
import json, select, socket, sys, time
address, port, count, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
l = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind((address, port))
l.listen(100)
print("listens", flush=True)
bell, *others = [l.accept()[0] for _ in range(count + 1)]
poll = select.epoll()
numbers = {s.fileno(): n for n, s in enumerate(others)}
for s in others:
    poll.register(s, select.EPOLLIN)
bell.sendall(b"looks\\n")
while bell.recv(1):
    time.sleep(pause)
    order = []
    while len(order) < count:
        for fd, _ in poll.poll(20):
            order.append(numbers[fd])
            others[numbers[fd]].recv(1)
    # What was reported keeps its place until it is found to have nothing left.
    assert not poll.poll(0)
    bell.sendall(json.dumps(order).encode() + b"\\n")
"""

# Sends to all connections, each time in another order; says what it expected and what was reported.
SENDER = """
import json, random, socket, sys
to, count, rounds = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
bell, *others = [socket.create_connection(to, 20) for _ in range(count + 1)]
for s in others:
    # What is small waits for no acknowledgment.
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
answers = bell.makefile()
answers.readline()
draw = random.Random(7)
for _ in range(rounds):
    order = draw.sample(range(count), count)
    for n in order:
        others[n].sendall(b"x")
    bell.sendall(b"x")
    print(json.dumps([order, json.loads(answers.readline())]))
"""


def reported_in_order(pause):
    with Scene("arrivals") as scene:
        for side in (scene.kernel(), Stack(scene)):
            who = type(side).__name__
            log = scene.start(*side.on("python3", "-c", LOOKER, everywhere(), PORT, CONNECTIONS, pause), log=f"{who}.log").log
            wait_until(lambda: "listens" in log.read_text(), 20, "who looks at connections")
            said = sh(*side.beside("python3", "-c", SENDER, side.address, PORT, CONNECTIONS, ROUNDS), timeout=120).stdout
            rounds = [json.loads(line) for line in said.splitlines()]
            check(len(rounds) == ROUNDS, f"{who}: {said}, {log.read_text()}")
            for sent, reported in rounds:
                check(sent == reported, f"{who}: input came in the order {sent}, and was reported in the order {reported}")


def input_is_reported_in_its_order():
    reported_in_order(0)


def late_looks_find_input_in_its_order():
    """tcp has posted tokens by then, of which the kernel tells."""
    reported_in_order(0.03)


CASES = [input_is_reported_in_its_order, over_ipv6(input_is_reported_in_its_order), late_looks_find_input_in_its_order]
