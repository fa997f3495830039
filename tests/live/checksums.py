"""A device without offloads: the stack segments, and computes and verifies all checksums itself."""

import socket
import struct
import threading

from coalescing import CLIENT, SERVER
from harness import Scene, Stack, check, end, over_ipv6, sh

SO_RCVBUFFORCE = 33

FETCH = """
import hashlib, socket, sys
connection, whole = socket.create_connection((sys.argv[1], 7321), 60), hashlib.sha256()
while data := connection.recv(1 << 20):
    whole.update(data)
print(whole.hexdigest())
"""

GIVE = """
import contextlib, socket, sys
data = open(sys.argv[2], "rb").read()
listener = socket.create_server((sys.argv[1], 7321), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
while True:
    # Who only looks whether it listens goes away at once.
    with listener.accept()[0] as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
"""


class Watcher:
    """Looks at all that crosses a device: how long frames are, and TCP segments whose checksum is wrong."""

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.bind((device, 0))
        self.socket.settimeout(0.2)
        self.longest, self.segments, self.wrong, self.ends = 0, 0, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ends:
            try:
                self.look(self.socket.recv(1 << 17))
            except TimeoutError:
                pass

    def look(self, frame):
        self.longest = max(self.longest, len(frame))
        kind, packet = frame[12:14], frame[14:]
        if kind == b"\x08\x00" and packet[9] == 6:
            end_ = struct.unpack("!H", packet[2:4])[0]
            addresses, segment = packet[12:20], packet[(packet[0] & 15) * 4:end_]
        elif kind == b"\x86\xdd" and packet[6] == 6:
            addresses, segment = packet[8:40], packet[40:40 + struct.unpack("!H", packet[4:6])[0]]
        else:
            return
        self.segments += 1
        whole = addresses + struct.pack("!HH", 6, len(segment)) + segment + b"\0" * (len(segment) % 2)
        total = sum(struct.unpack(f"!{len(whole) // 2}H", whole))
        self.wrong += total % 0xffff != 0

    def stop(self):
        self.ends = True
        self.thread.join()
        self.socket.close()


def a_device_without_offloads():
    with Scene("checksums") as scene:
        stack = Stack(scene, "ck", kind="plain-tap")
        data, digest = scene.file("data", 4 << 20)
        for name, text in (("server.py", SERVER), ("client.py", CLIENT), ("fetch.py", FETCH), ("give.py", GIVE)):
            (scene.dir / name).write_text(text)
        takes = scene.start(*stack.on("python3", scene.dir / "server.py", stack.address))
        gives = scene.start(*stack.on("python3", scene.dir / "give.py", stack.address, data))
        for port in 7320, 7321:
            stack.listening(port)
        watcher = Watcher(stack.device)
        try:
            for component in None, "nic:" + stack.device, "ip", "tcp":
                if component:
                    stack.eft("kill", component)
                answers = sh("python3", scene.dir / "client.py", stack.address, data, timeout=120).stdout.split()
                check(answers == [digest] * 4, f"to the stack, after the death of {component}: {answers}, not {digest}")
                answer = sh("python3", scene.dir / "fetch.py", stack.address, timeout=120).stdout.strip()
                check(answer == digest, f"from the stack, after the death of {component}: {answer}, not {digest}")
        finally:
            watcher.stop()
        check(watcher.segments > 2000, f"only {watcher.segments} segments were seen")
        check(watcher.longest <= 1514, f"a frame has {watcher.longest} bytes")
        check(watcher.wrong == 0, f"{watcher.wrong} of {watcher.segments} checksums are not complete")
        print(f"        {watcher.segments} segments seen")
        end(takes)
        end(gives)


CASES = [a_device_without_offloads, over_ipv6(a_device_without_offloads)]
