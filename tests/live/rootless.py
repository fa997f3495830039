"""`eft run --rootless`: an ordinary user's program on a stack of its own. Each case runs as `nobody`, who cannot make TAP
devices everywhere, and as root, who can."""

import os
import shutil
import signal
import subprocess
import tempfile

from harness import EFT, Scene, Stack, check, descendants_of, sh, start_time, wait_until

# Everything on one stack: both versions, both directions, the wire (the kernel's refusals), and a crash of tcp meanwhile.
TRAFFIC = r"""
import os, socket, subprocess, threading
for family, own, far in ((socket.AF_INET, "10.0.2.15", "10.0.2.2"), (socket.AF_INET6, "fd65:6674::15", "fd65:6674::2")):
    listener = socket.create_server((own, 80), family=family)
    def serve():
        peer, _ = listener.accept()
        while data := peer.recv(65536):
            peer.sendall(data)
        peer.close()
    threading.Thread(target=serve, daemon=True).start()
    client = socket.create_connection((own, 80))
    data = os.urandom(100_000)
    for i in range(20):
        if i == 10:
            subprocess.run([os.environ["EFT_PROGRAM"], "kill", "tcp"], check=True, stdout=subprocess.DEVNULL)
        client.sendall(data)
        assert client.recv(len(data), socket.MSG_WAITALL) == data
    client.close()
    try:
        socket.create_connection((far, 9), timeout=10)
        raise SystemExit("something listens there")
    except ConnectionRefusedError:
        pass
print("fine")
"""

PROCESSES = 11


class Place:
    """A copy of the program that every user may run, and how a user runs it."""

    def __init__(self, scene, user):
        folder = tempfile.mkdtemp(prefix="eft-lt-rootless-")
        scene.stack_.callback(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        for name in ("eft", "libeft.so"):
            shutil.copy(os.path.join(os.path.dirname(EFT), name), folder)
        self.program = f"{folder}/eft"
        self.prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if user == "nobody" else []
        self.env = os.environ | {"EFT_PROGRAM": self.program}

    def on(self, *command):
        return [*self.prefix, self.program, "run", "--rootless", "--", *command]

    def run(self, *command, env=None):
        return subprocess.run(self.on(*command), capture_output=True, text=True, timeout=60, cwd="/",
                              env=self.env | (env or {}))


def for_each_user(case):
    def run():
        for user in ("nobody", "root"):
            with Scene(f"rootless-{user}") as scene:
                case(scene, Place(scene, user), user)
    run.__name__ = f"rootless_{case.__name__}"
    return run


@for_each_user
def a_program_has_a_stack_of_its_own(scene, place, user):
    done = place.run("python3", "-c", TRAFFIC)
    check(done.returncode == 0 and done.stdout.endswith("fine\n"), f"{user}: {done.stdout}{done.stderr}")
    check("reaches only the kernel of its own namespace" in done.stderr, f"{user} is not told the limits: {done.stderr}")
    seen = place.run("sh", "-c", "id -u; id -g; pwd")
    own = "65534" if user == "nobody" else "0"
    check(seen.stdout.split() == [own, own, "/"], f"{user}: {seen.stdout}")


@for_each_user
def its_status_is_handed_through(scene, place, user):
    for status in (0, 3, 255):
        done = place.run("sh", "-c", f"exit {status}")
        check(done.returncode == status, f"{user}: {done.returncode} instead of {status}")
    for name in ("KILL", "TERM", "USR1"):
        done = place.run("sh", "-c", f"kill -{name} $$")
        check(done.returncode == -signal.Signals[f"SIG{name}"], f"{user}: {done.returncode} instead of {name}")
    check(place.run("/no/such/program").returncode == 127, "a missing program")
    check(place.run("/etc/passwd").returncode == 126, "a file that is no program")


@for_each_user
def signals_reach_the_program(scene, place, user):
    program = "trap 'echo got it; exit 9' TERM; echo begun; while :; do sleep 0.05; done"
    process = subprocess.Popen(place.on("sh", "-c", program), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env=place.env)
    check(process.stdout.readline() == "begun\n", "it has not begun")
    process.terminate()
    check(process.wait(20) == 9 and process.stdout.read() == "got it\n", f"{user}: the program has not heard SIGTERM")


@for_each_user
def its_servers_are_in_their_sandboxes(scene, place, user):
    done = place.run("sh", "-c", "$EFT_PROGRAM ps --security")
    rows = [line.split() for line in done.stdout.splitlines()]
    servers = {row[0]: row for row in rows}
    for name in ("tcp", "udp", "ip", "filter", "nic:eft0"):
        row = servers.get(name, [])
        check(row[2:] == ["0", "none", "never", "listed", "user", "mnt", "net", "ipc", "landlock"], f"{user}: {row}")
    check(servers["sockets"][3:] == ["none", "never", "listed", "mnt", "net", "ipc", "landlock"], f"{user}: {servers['sockets']}")
    check(servers["cores"][-1] == "landlock", f"{user}: {servers['cores']}")
    # The program has no right over them, nor over the stack's network.
    for forbidden in ("cat /proc/$(pgrep -f 'serve tcp')/mem", "env -u LD_PRELOAD nsenter --net=/proc/1/ns/net true"):
        check(place.run("sh", "-c", forbidden).returncode != 0, f"{user} may: {forbidden}")


@for_each_user
def nothing_is_left_behind(scene, place, user):
    before = sorted(os.listdir("/run")), sorted(os.listdir("/tmp")), os.listdir("/run/eft")
    # It ends by itself with a child in the background; it is killed; its stack is killed.
    for way in ("by itself", "killed", "its supervisor"):
        end = "sleep 0.3" if way == "by itself" else "sleep 1000"
        process = scene.start(*place.on("sh", "-c", f"sleep 1001 & {end}"), env=place.env)
        wait_until(lambda: len(descendants_of(process.pid)) >= PROCESSES or process.poll() is not None, 10, "the processes")
        all_of_it = descendants_of(process.pid)
        init = all_of_it[0][0]
        if way == "killed":
            process.kill()
        elif way == "its supervisor":
            children = sorted(int(p) for p in open(f"/proc/{init}/task/{init}/children").read().split())
            os.kill(children[0], signal.SIGKILL)
        status = process.wait(20)
        wait_until(lambda: not [pid for pid, started in all_of_it if start_time(pid) == started], 10,
                   f"{user}, {way}: all processes to end")
        expected = {"by itself": 0, "killed": -signal.SIGKILL, "its supervisor": 125}[way]
        check(status == expected, f"{user}, {way}: status {status}: {process.log.read_text()}")
    after = sorted(os.listdir("/run")), sorted(os.listdir("/tmp")), os.listdir("/run/eft")
    check(after[0] == before[0] and after[2] == before[2], f"{user} left behind: {before} {after}")
    check(not set(after[1]) - set(before[1]), f"{user} left behind: {set(after[1]) - set(before[1])}")


@for_each_user
def it_needs_no_folder_of_running_stacks(scene, place, user):
    done = place.run("sh", "-c", "$EFT_PROGRAM ps >/dev/null && ls -A /run", env={"EFT_RUN_DIR": "/run/eft-lt-none"})
    check(done.returncode == 0, f"{user}: {done.stderr}")
    outside = set(os.listdir("/run"))
    check(set(done.stdout.split()) == outside | {"eft-lt-none"}, f"{user}: /run is {done.stdout} instead of {outside}")


@for_each_user
def it_outlives_the_last_stack_of_the_machine(scene, place, user):
    """Its folder of stacks is mounted on the machine's, and would go with that."""
    folder = os.path.join(os.path.dirname(place.program), "stacks")
    os.mkdir(folder)
    env = place.env | {"EFT_RUN_DIR": folder}
    program = subprocess.Popen(place.on("sh", "-c", "echo begun; read line; exec $EFT_PROGRAM ps"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd="/")
    check(program.stdout.readline() == "begun\n", f"{user}: it has not begun")
    other = Stack(scene, name="ltlast", env=env)
    other.process.terminate()
    other.process.wait(20)
    out, errors = program.communicate("\n", timeout=20)
    check(program.returncode == 0 and "tcp" in out, f"{user}: {out}{errors}")
    check(os.listdir(folder) == [], f"{user}: left behind: {os.listdir(folder)}")


def rootless_is_refused_clearly_without_user_namespaces():
    with Scene("rootless-refused") as scene:
        place = Place(scene, "root")
        script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
        # The limit is that of a user namespace, and counts for those in it.
        done = sh("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *place.on("true"), ok=False)
        lines = done.stderr.splitlines()
        check(done.returncode == 125 and len(lines) == 1 and "max_user_namespaces" in lines[0], f"{done.returncode} {done.stderr}")


CASES = [
    a_program_has_a_stack_of_its_own,
    its_status_is_handed_through,
    signals_reach_the_program,
    its_servers_are_in_their_sandboxes,
    nothing_is_left_behind,
    it_needs_no_folder_of_running_stacks,
    it_outlives_the_last_stack_of_the_machine,
    rootless_is_refused_clearly_without_user_namespaces,
]
