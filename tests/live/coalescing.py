"""Receive coalescing: segments of a connection that arrive one behind the other are one for the servers, and no byte is another."""

from harness import Scene, Stack, check, end, over_ipv6, sh

SERVER = """
import hashlib, socket, sys, threading
listener = socket.create_server((sys.argv[1], 7320), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("ready", flush=True)
def serve(connection):
    whole = hashlib.sha256()
    while data := connection.recv(1 << 20):
        whole.update(data)
    connection.sendall(whole.hexdigest().encode())
    connection.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"""

CLIENT = """
import socket, sys, threading
data = open(sys.argv[2], "rb").read()
def send(answers):
    connection = socket.create_connection((sys.argv[1], 7320), 60)
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    answers.append(connection.makefile().read())
answers = []
threads = [threading.Thread(target=send, args=(answers,)) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(*answers)
"""


def segments_that_arrive_together_are_merged():
    with Scene("coalescing") as scene:
        stack = Stack(scene, "co", kind="veth")
        # The peer sends each segment as a frame of its own, as one whose card segments does.
        sh("ip", "-n", stack.netns, "link", "set", "far", "gso_max_segs", "1")
        server, client = scene.dir / "server.py", scene.dir / "client.py"
        server.write_text(SERVER)
        client.write_text(CLIENT)
        data, digest = scene.file("data", 8 << 20)
        running = scene.start(*stack.on("python3", server, stack.address))
        stack.listening(7320)
        for component in None, "nic:" + stack.device, "ip":
            if component:
                stack.eft("kill", component)
            answers = sh(*stack.beside("python3", client, stack.address, data), timeout=120).stdout.split()
            check(answers == [digest] * 4, f"after the death of {component}: {answers}, not {digest}")
        merged, frames = (stack.counter("nic", name) for name in ("coalesced", "frames_in"))
        check(merged > frames / 20, f"of {frames} frames {merged} were merged")
        end(running)


CASES = [segments_that_arrive_together_are_merged, over_ipv6(segments_that_arrive_together_are_merged)]
