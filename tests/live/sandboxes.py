"""Daemons that forbid themselves most system calls, or most memory, before they speak with strangers. Keys, configuration and
ports are the test's own."""

import os
import pathlib
import pwd

from harness import Scene, Stack, check, sh, wait_until

SSHD_PORT, FTP_PORT = 7022, 7021


def sshd_with_its_sandbox():
    with Scene("sshd") as scene:
        stack = Stack(scene)
        for key in ("host", "user"):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scene.dir / key)
        if not os.path.isdir("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)
            scene.undo("rmdir", "/run/sshd")
        config = scene.dir / "sshd_config"
        config.write_text(f"""
Port {SSHD_PORT}
ListenAddress 0.0.0.0
HostKey {scene.dir}/host
PidFile none
AuthorizedKeysFile {scene.dir}/user.pub
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
Subsystem sftp internal-sftp
""")
        server = scene.start(*stack.on("/usr/sbin/sshd", "-D", "-e", "-f", config), log="sshd.log")
        stack.listening(SSHD_PORT)
        options = ["-i", scene.dir / "user", "-F", "/dev/null"]
        for option in ("StrictHostKeyChecking=no", f"UserKnownHostsFile={scene.dir}/known", "BatchMode=yes", "LogLevel=ERROR"):
            options += ["-o", option]
        user = pwd.getpwuid(os.getuid()).pw_name
        data, _ = scene.file("data", 3_000_000)
        for i in range(3):
            out = sh(*stack.beside("ssh", *options, "-p", SSHD_PORT, f"{user}@{stack.address}", f"echo line {i}; wc -c"),
                     stdin="x" * 100_000, ok=False)
            check(out.stdout.split() == ["line", str(i), "100000"], f"ssh: {out.stdout}{out.stderr}\n{server.log.read_text()[-2000:]}")
        sh(*stack.beside("scp", *options, "-P", SSHD_PORT, data, f"{user}@{stack.address}:{scene.dir}/copy"))
        check((scene.dir / "copy").read_bytes() == data.read_bytes(), "scp's copy is another")
        # The client on the stack, too.
        check("SIGSYS" not in server.log.read_text() and "sandbox" not in server.log.read_text(), server.log.read_text()[-2000:])


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
        config.write_text(f"""listen=YES
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
        url = f"ftp://{stack.address}:{FTP_PORT}"
        got = scene.dir / "got"
        for mode in ([], ["--disable-epsv"], ["-P", "-"]):
            out = sh(*stack.beside("curl", "-sS", "-m", "20", *mode, "-o", got, f"{url}/data"), ok=False)
            check(out.returncode == 0, f"curl {mode}: {out.stderr} {server.log.read_text()[-1000:]}")
            check(got.read_bytes() == data.read_bytes(), "the file that was fetched is another")
        # Slots of the arena are used again, so that many sessions take no more addresses than one.
        for i in range(60):
            out = sh(*stack.beside("curl", "-sS", "-m", "20", f"{url}/"), ok=False)
            check("data" in out.stdout, f"session {i}: {out.stderr} {server.log.read_text()[-1000:]}")
        sh(*stack.beside("curl", "-sS", "-m", "20", "-T", data, f"{url}/in/copy"))
        wait_until(lambda: (top / "in/copy").exists() and (top / "in/copy").read_bytes() == data.read_bytes(), 5, "the upload")


CASES = [sshd_with_its_sandbox, vsftpd_with_its_sandbox_and_its_limit_of_memory]
