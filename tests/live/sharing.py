"""SO_REUSEPORT: several processes of a program at one port, on the stack and on the kernel. Each gets a share; what one leaves, the
others get."""

import json

from harness import Scene, Stack, check, everywhere, over_ipv6, sh, wait_until

PORT, SHARERS, CALLERS = 8080, 4, 200

# Processes that answer each connection, and each datagram, with their number; the datagram "end" ends who gets it.
SHARERS_OF_A_PORT = """
import os, select, socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
number = None
for n in range(count):
    if os.fork() == 0:
        number = b"%d" % n
        break
while number is None:
    os.wait()
def at(kind):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 1
    s.bind((address, port))
    return s
stream, datagrams = at(socket.SOCK_STREAM), at(socket.SOCK_DGRAM)
stream.listen(100)
print("listens", number.decode(), flush=True)
while True:
    for s in select.select([stream, datagrams], [], [])[0]:
        if s is stream:
            c, _ = s.accept()
            c.sendall(number)
            c.close()
        else:
            data, to = s.recvfrom(100)
            s.sendto(number, to)
            if data == b"end":
                os._exit(0)
"""

# Who answered, of the connections and of the datagrams (each socket asks three times); at last, whom it ended.
CALLER = """
import json, socket, sys
to, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
def connected():
    with socket.create_connection(to, 20) as s:
        return s.recv(10).decode()
def asked(word=b"who", times=3):
    s = socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    said = []
    while len(said) < times:
        s.sendto(word, to)
        said.append(s.recv(10).decode())
    return said
print(json.dumps([[connected() for _ in range(count)], [asked() for _ in range(count)], asked(b"end", 1)[0]]))
"""


def a_port_is_shared():
    with Scene("sharing") as scene:
        for side in (scene.kernel(), Stack(scene)):
            who = type(side).__name__
            log = scene.start(*side.on("python3", "-c", SHARERS_OF_A_PORT, everywhere(), PORT, SHARERS), log=f"{who}.log").log
            wait_until(lambda: log.read_text().count("listens") == SHARERS, 20, "those who share a port")

            left = {str(n) for n in range(SHARERS)}
            while len(left) > SHARERS - 2:
                said = sh(*side.beside("python3", "-c", CALLER, side.address, PORT, CALLERS), timeout=120).stdout
                connections, datagrams, ended = json.loads(said)
                check(set(connections) == left, f"{who}: connections were taken by {set(connections)}, not {left}")
                check({word for said in datagrams for word in said} == left, f"{who}: datagrams went to others than {left}")
                check(all(len(set(said)) == 1 for said in datagrams), f"{who}: datagrams of one flow went to several sockets")
                # Chance gives each about the same: that one of four gets less than 15 of 200 happens once in thousands of millions.
                for n in left:
                    check(connections.count(n) >= 15, f"{who}: {n} got {connections.count(n)} of {CALLERS} connections")
                left.remove(ended)


CASES = [a_port_is_shared, over_ipv6(a_port_is_shared)]
