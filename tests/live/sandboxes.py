"""Daemons that forbid themselves most system calls, or most memory, before they read untrusted input, or to which
systemd does that. Keys, configuration and ports are the test's own."""

import hashlib
import json
import os
import pwd
import signal
import socket
import subprocess

from harness import ROOT, Scene, Stack, check, everywhere, in_url, over_ipv6, sh, sha256_of, wait_until
from programs import nginx_config

SSHD_PORT, FTP_PORT, WEB_PORT, NTP_PORT = 7022, 7021, 7080, 7123


def sshd(scene, side):
    """sshd on a side of a stack; what its clients need to know: options, and the user."""
    for key in ("host", "user"):
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scene.dir / key)
    if not os.path.isdir("/run/sshd"):
        os.mkdir("/run/sshd", 0o755)
        scene.undo("rmdir", "/run/sshd")
    config = scene.dir / "sshd_config"
    config.write_text(f"""
Port {SSHD_PORT}
ListenAddress {everywhere()}
HostKey {scene.dir}/host
PidFile none
AuthorizedKeysFile {scene.dir}/user.pub
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
Subsystem sftp internal-sftp
""")
    server = scene.start(*side("/usr/sbin/sshd", "-D", "-e", "-f", config), log="sshd.log")
    options = ["-i", scene.dir / "user", "-F", "/dev/null"]
    for option in ("StrictHostKeyChecking=no", f"UserKnownHostsFile={scene.dir}/known", "BatchMode=yes", "LogLevel=ERROR"):
        options += ["-o", option]
    return server, options, pwd.getpwuid(os.getuid()).pw_name


def sessions_and_copies(scene, side, server, options, login, address):
    """Commands with input and output, and files in both directions."""
    data, _ = scene.file("data", 3_000_000)
    for i in range(3):
        out = sh(*side("ssh", *options, "-p", SSHD_PORT, f"{login}@{address}", f"echo line {i}; wc -c"), stdin="x" * 100_000, ok=False)
        check(out.stdout.split() == ["line", str(i), "100000"], f"ssh: {out.stdout}{out.stderr}\n{server.log.read_text()[-2000:]}")
    there = f"{login}@{in_url(address)}:{scene.dir}"
    sh(*side("scp", *options, "-P", SSHD_PORT, data, f"{there}/copy"))
    sh(*side("scp", *options, "-P", SSHD_PORT, f"{there}/copy", scene.dir / "back"))
    for copy in ("copy", "back"):
        check((scene.dir / copy).read_bytes() == data.read_bytes(), "scp's copy is another")


def sshd_with_its_sandbox():
    with Scene("sshd") as scene:
        stack = Stack(scene)
        server, options, login = sshd(scene, stack.on)
        stack.listening(SSHD_PORT)
        sessions_and_copies(scene, stack.beside, server, options, login, stack.address)
        check("SIGSYS" not in server.log.read_text() and "sandbox" not in server.log.read_text(), server.log.read_text()[-2000:])


def ssh_on_the_stack():
    """OpenSSH's clients, and a port that they forward from the stack."""
    with Scene("ssh") as scene:
        stack = Stack(scene)
        server, options, login = sshd(scene, stack.beside)
        stack.listening_beside(SSHD_PORT)
        sessions_and_copies(scene, stack.on, server, options, login, stack.host)
        path, want = scene.file("www/big", 4 << 20)
        scene.start(*stack.beside("python3", "-m", "http.server", WEB_PORT, "--bind", stack.host, "--directory", path.parent))
        stack.listening_beside(WEB_PORT)
        forwarded = f"{in_url(stack.address)}:{WEB_PORT}:{in_url(stack.host)}:{WEB_PORT}"
        scene.start(*stack.on("ssh", *options, "-p", SSHD_PORT, "-N", "-o", "ExitOnForwardFailure=yes", "-L", forwarded,
                              f"{login}@{stack.host}"))
        stack.listening(WEB_PORT)
        for _ in range(3):
            check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:{WEB_PORT}/big")) == want, "a download differs")


def vsftpd_with_its_sandbox_and_its_limit_of_memory():
    with Scene("vsftpd") as scene:
        stack = Stack(scene)
        top = scene.dir / "ftp"
        (top / "in").mkdir(parents=True)
        (top / "in").chmod(0o777)
        empty = scene.dir / "empty"
        empty.mkdir()
        data, _ = scene.file("ftp/data", 3_000_000)
        for folder in [top, *top.parents]:
            if folder.stat().st_mode & 0o5 != 0o5:
                scene.undo("chmod", oct(folder.stat().st_mode & 0o7777)[2:], folder)
                folder.chmod(folder.stat().st_mode | 0o5)
        config = scene.dir / "vsftpd.conf"
        six = Stack.usual_version == 6
        config.write_text(f"""listen={"NO" if six else "YES"}
listen_ipv6={"YES" if six else "NO"}
listen_port={FTP_PORT}
background=NO
anonymous_enable=YES
anon_root={top}
anon_upload_enable=YES
write_enable=YES
no_anon_password=YES
secure_chroot_dir={empty}
xferlog_enable=NO
pasv_min_port=7100
pasv_max_port=7120
""")
        config.chmod(0o600)
        server = scene.start(*stack.on("/usr/sbin/vsftpd", config), log="vsftpd.log")
        stack.listening(FTP_PORT)
        url = f"ftp://{in_url(stack.address)}:{FTP_PORT}"
        got = scene.dir / "got"
        # PASV names an IPv4 address (RFC 2428 §3).
        for mode in ([], ["-P", "-"]) if six else ([], ["--disable-epsv"], ["-P", "-"]):
            out = sh(*stack.beside("curl", "-sS", "-m", "20", *mode, "-o", got, f"{url}/data"), ok=False)
            check(out.returncode == 0, f"curl {mode}: {out.stderr} {server.log.read_text()[-1000:]}")
            check(got.read_bytes() == data.read_bytes(), "the file that was fetched is another")
        # Slots of the arena are reused, so that many sessions need no more addresses than one.
        for i in range(60):
            out = sh(*stack.beside("curl", "-sS", "-m", "20", f"{url}/"), ok=False)
            check("data" in out.stdout, f"session {i}: {out.stderr} {server.log.read_text()[-1000:]}")
        sh(*stack.beside("curl", "-sS", "-m", "20", "-T", data, f"{url}/in/copy"))
        wait_until(lambda: (top / "in/copy").exists() and (top / "in/copy").read_bytes() == data.read_bytes(), 5, "the upload")


def chrony(scene, name, lines):
    """A configuration for a chronyd that leaves the clock and the machine's own chrony alone."""
    config = scene.dir / f"{name}.conf"
    config.write_text(f"""{lines}
cmdport 0
bindcmdaddress /
pidfile {scene.dir}/{name}.pid
driftfile {scene.dir}/{name}.drift
""")
    # -x: the clock is not set. -F 1: a call that its filter does not allow kills it.
    return ("chronyd", "-x", "-d", "-u", "root", "-F", "1", "-f", config)


def chrony_with_its_filter():
    """A time server and clients, on the stack and beside it."""
    with Scene("chrony") as scene:
        stack = Stack(scene)
        server = scene.start(*stack.on(*chrony(scene, "server", f"port {NTP_PORT}\nlocal stratum 8\nallow all")), log="server.log")
        wait_until(lambda: f" {NTP_PORT}" in listening_datagrams(stack), 10, "chronyd to listen")
        ask = f"server {stack.address} port {NTP_PORT} iburst maxsamples 2 minpoll 0"
        # A client that opens a socket for each request does so under its filter, which allows everything that the
        # kernel's sockets need.
        clients = [(stack.beside, ["-F", "1"], ""), (stack.on, [], ""), (stack.on, ["-F", "1"], "acquisitionport 7124")]
        for where, filtered, port in clients:
            command = ["chronyd", "-Q", "-t", "20", *filtered, "-u", "root", "-f", "/dev/null", f"pidfile {scene.dir}/client.pid", ask, port]
            out = sh(*where(*command), ok=False)
            check(out.returncode == 0 and "System clock wrong by" in out.stdout + out.stderr,
                  f"a client: {out.returncode} {out.stdout}{out.stderr}\n{server.log.read_text()}")
        check(server.poll() is None, f"the server died: {server.log.read_text()}")


def listening_datagrams(stack):
    sockets = json.loads(stack.eft("ss", "--json").stdout)["sockets"]
    return "".join(f" {s['local'].rsplit(':', 1)[1]}" for s in sockets if s["proto"] == "udp")


BLOCKING = """
import socket, sys
s = socket.create_server((sys.argv[2], int(sys.argv[1])), family=socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
while True:
    c, _ = s.accept()
    while data := c.recv(65536): c.sendall(data)
    c.close()
"""

FETCH = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())"


def services_with_the_filter_of_systemd():
    """All of `eft run` under the filter, like a unit with SystemCallFilter=@system-service: any other call kills."""
    with Scene("services") as scene:
        stack = Stack(scene, extra=("--nameserver", "10.77.0.1"))
        filtered = lambda *command: ("python3", ROOT / "tests/live/system_call_filter.py", "--", *stack.on(*command))
        killed = sh("python3", ROOT / "tests/live/system_call_filter.py", "-uname", "--", "uname", ok=False)
        check(killed.returncode == -signal.SIGSYS, f"the filter does not kill: {killed}")
        data, digest = scene.file("www/data", 5_000_000)
        nginx = scene.start(*filtered("nginx", "-c", nginx_config(scene, everywhere(), 2)), log="nginx.log")
        blocking = scene.start(*filtered("python3", "-c", BLOCKING, 7301, everywhere()), log="blocking.log")
        stack.listening(8080)
        stack.listening(7301)
        check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:8080/data")) == digest, "nginx's file is another")
        with socket.create_connection((stack.address, 7301), 10) as s:
            for size in (1, 100, 300_000):
                s.sendall(b"x" * size)
                got = b""
                while len(got) < size:
                    got += s.recv(65536)
        stack.kill("tcp")
        out = subprocess.run([str(word) for word in filtered("python3", "-c", FETCH, f"http://{in_url(stack.address)}:8080/data")], capture_output=True)
        check(hashlib.sha256(out.stdout).hexdigest() == digest, f"a client: {out.returncode} {out.stderr[-1000:]}")
        for name, process in (("nginx", nginx), ("python", blocking)):
            check(process.poll() is None, f"{name} died: {process.returncode} {process.log.read_text()[-1000:]}")


CASES = [
    sshd_with_its_sandbox, ssh_on_the_stack,
    vsftpd_with_its_sandbox_and_its_limit_of_memory,
    chrony_with_its_filter,
    services_with_the_filter_of_systemd,
    over_ipv6(sshd_with_its_sandbox), over_ipv6(ssh_on_the_stack),
]
