"""Unmodified programs on the stack under their own load generators."""

import json
import os
import re
import signal
import subprocess
import threading
import time

from harness import ROOT, Failure, Kernel, Scene, Stack, check, end, in_url, over_ipv6, over_veth, scaled, seconds, sh, sha256_of, wait_until

PORT = 8080


def nginx_config(scene, address, workers, extra=""):
    d = scene.dir
    config = d / "nginx.conf"
    config.write_text(f"""
user root; worker_processes {workers}; daemon off; pid {d}/nginx.pid; error_log {d}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
    client_body_temp_path {d}/body; proxy_temp_path {d}/proxy; fastcgi_temp_path {d}/fcgi;
    uwsgi_temp_path {d}/uwsgi; scgi_temp_path {d}/scgi;
    server {{ listen {in_url(address)}:{PORT} {extra}; root {d}/www; location /hello {{ return 200 "hello\\n"; }} }}
}}
""")
    return config


def wrk(stack, path, duration, connections=32, on_stack=False, address=None):
    """Requests made, and errors by kind."""
    command = ["wrk", "-t2", f"-c{connections}", f"-d{duration}s", f"http://{in_url(address or stack.address)}:{PORT}{path}"]
    command = stack.on(*command) if on_stack else stack.beside(*command)
    output = sh(*command, timeout=duration + 60).stdout
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    check(requests > 0, "wrk made no request")
    errors = {kind: int(n) for line in re.findall(r"Socket errors: (.*)", output) for kind, n in re.findall(r"(\w+) (\d+)", line)}
    errors |= {"status": int(n) for n in re.findall(r"Non-2xx or 3xx responses: (\d+)", output)}
    return requests, {kind: n for kind, n in errors.items() if n}


def quiet_wrk(*arguments, **options):
    requests, errors = wrk(*arguments, **options)
    check(not errors, f"wrk saw errors: {errors}")
    return requests


def no_worse_than_the_kernel(scene, errors_on, seen, what, tries=3):
    """`errors_on(side)` loads a service and disturbs it; `seen` is the result on the stack. Every kind of error in it
    must also occur when the kernel serves the same."""
    known = {}
    for _ in range(tries):
        if all(kind in known for kind in seen):
            return
        known |= errors_on(scene.kernel())
    check(all(kind in known for kind in seen), f"{what}: errors on the stack: {seen}; on the kernel: {known}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]


def disturbed(side, server, path, duration, disturb):
    """The errors of a load in the middle of which `disturb(server)` is called."""
    timer = threading.Timer(duration / 2, lambda: disturb(server))
    timer.start()
    _, errors = wrk(side, path, duration)
    timer.join()
    quiet_wrk(side, path, 2)
    check(server.poll() is None, "the server ended")
    return errors


def reload(server):
    os.kill(server.pid, signal.SIGHUP)


def kill_a_worker(server):
    """Kills the worker with the most connections: on the kernel a worker may have none, and its death would show
    nothing."""
    os.kill(max(children(server.pid), key=lambda pid: len(os.listdir(f"/proc/{pid}/fd"))), signal.SIGKILL)


def nginx(kind, workers):
    with Scene(f"nginx-{kind}-{workers}") as scene:
        stack = Stack(scene, kind=kind)
        _, want = scene.file("www/big", scaled(64 << 20))
        scene.file("www/small", 4096)
        third = max(2, seconds() // 3)

        def start(side):
            # `reuseport` off: the workers share one listener, as in most configurations.
            config = nginx_config(scene, side.address, workers)
            server = scene.start(*side.on("nginx", "-c", config))
            side.listening(PORT)
            return server

        def download(side):
            check(sha256_of(side.beside("curl", "-sf", f"http://{in_url(side.address)}:{PORT}/big")) == want, "a download differs")

        server = start(stack)
        download(stack)
        quiet_wrk(stack, "/small", third)
        seen = {
            (path, disturb): disturbed(stack, server, path, third, disturb)
            for path, disturb in (("/hello", reload), ("/small", kill_a_worker))
        }
        download(stack)
        end(server)
        for (path, disturb), errors in seen.items():
            def errors_on(kernel):
                beside = start(kernel)
                errors = disturbed(kernel, beside, path, third, disturb)
                end(beside)
                return errors
            no_worse_than_the_kernel(scene, errors_on, errors, disturb.__name__)


def nginx_one_worker():
    nginx("tap", 1)


def nginx_four_workers():
    nginx("tap", 4)


def nginx_over_veth():
    nginx("veth", 2)


def lighttpd():
    with Scene("lighttpd") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/big", scaled(32 << 20))
        scene.file("www/small", 2048)
        half = max(2, seconds() // 2)

        def start(side):
            config = scene.dir / "lighttpd.conf"
            config.write_text(f'server.document-root = "{scene.dir}/www"\nserver.port = {PORT}\nserver.max-worker = 2\n'
                              f'server.bind = "{in_url(side.address)}"\nserver.max-keep-alive-requests = 100000\n')
            # Its master ends its whole process group.
            server = scene.start(*side.on("lighttpd", "-D", "-f", config), process_group=0)
            side.listening(PORT)
            return server

        server = start(stack)
        check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:{PORT}/big")) == want, "a download differs")
        quiet_wrk(stack, "/small", half)
        errors = disturbed(stack, server, "/small", half, kill_a_worker)
        end(server)

        def errors_on(kernel):
            beside = start(kernel)
            errors = disturbed(kernel, beside, "/small", half, kill_a_worker)
            end(beside)
            return errors
        no_worse_than_the_kernel(scene, errors_on, errors, kill_a_worker.__name__)


def redis_server():
    with Scene("redis-server") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("redis-server", "--bind", stack.address, "--port", "6379", "--save", "", "--protected-mode", "no",
                              "--dir", scene.dir, "--io-threads", "2"))
        stack.listening(6379)
        limit = time.monotonic() + seconds()
        rounds = 0
        while time.monotonic() < limit:
            out = sh(*stack.beside("redis-benchmark", "-h", stack.address, "-q", "-n", str(scaled(20000)), "-c", "50", "-t", "set,get,lpush,mset"),
                     timeout=120)
            check("rror" not in out.stdout + out.stderr, f"redis-benchmark: {out.stdout}{out.stderr}")
            rounds += 1
        value = os.urandom(3 << 20).hex()
        sh(*stack.beside("redis-cli", "-h", stack.address, "-x", "set", "big"), stdin=value)
        back = sh(*stack.beside("redis-cli", "-h", stack.address, "get", "big")).stdout.strip()
        check(back == value, "a large value came back changed")
        check(rounds > 0, "no round")


def redis_benchmark_on_the_stack():
    with Scene("redis-benchmark") as scene:
        stack = Stack(scene)
        scene.start(*stack.beside("redis-server", "--bind", stack.host, "--port", "6379", "--save", "", "--protected-mode", "no", "--dir", scene.dir))
        wait_until(lambda: "PONG" in sh(*stack.beside("redis-cli", "-h", stack.host, "ping"), ok=False).stdout, 10, "redis")
        limit = time.monotonic() + seconds()
        while time.monotonic() < limit:
            out = sh(*stack.on("redis-benchmark", "-h", stack.host, "-q", "-n", str(scaled(20000)), "-c", "50", "--threads", "2", "-t", "set,get"),
                     timeout=120)
            check("rror" not in out.stdout + out.stderr, f"redis-benchmark: {out.stdout}{out.stderr}")


def clients_curl_and_wget():
    with Scene("clients") as scene:
        stack = Stack(scene)
        path, want = scene.file("www/big", scaled(64 << 20))
        config = nginx_config(scene, stack.host, 1)
        scene.start(*stack.beside("nginx", "-c", str(config)))
        url = f"http://{in_url(stack.host)}:{PORT}/big"
        wait_until(lambda: sh(*stack.beside("curl", "-sf", "-o", "/dev/null", "-r", "0-0", url), ok=False).returncode == 0, 10, "nginx")
        limit = time.monotonic() + seconds()
        while time.monotonic() < limit:
            check(sha256_of(stack.on("curl", "-sf", url)) == want, "curl's download differs")
            check(sha256_of(stack.on("wget", "-q", "-O", "-", url)) == want, "wget's download differs")
        # Refused and unreachable look as they do on the kernel.
        refused = sh(*stack.on("curl", "-s", f"http://{in_url(stack.host)}:9/"), ok=False)
        check(refused.returncode == 7, f"curl on a closed port: {refused.returncode}")


def wrk_on_the_stack():
    with Scene("wrk") as scene:
        stack = Stack(scene)
        scene.file("www/small", 4096)
        config = nginx_config(scene, stack.host, 1)
        scene.start(*stack.beside("nginx", "-c", str(config)))
        stack.listening_beside(PORT)
        quiet_wrk(stack, "/small", seconds(), on_stack=True, address=stack.host)


def iperf3(command, log, *flags):
    """One run of a client. An iperf3 server that still cleans up after its last client rejects the next one."""
    runs = log.read_text().count("Server listening")
    out = sh(*command, "-J", *flags, ok=False, timeout=seconds() + 60).stdout
    result = json.loads(out)
    check("error" not in result, f"iperf3 {flags}: {result.get('error')}")
    end = result["end"]
    check(end.get("sum_received", end.get("sum"))["bytes"] > 0, f"iperf3 {flags} moved nothing")
    wait_until(lambda: log.read_text().count("Server listening") > runs, 10, "the iperf3 server to be ready again")


def iperf3_both_ways():
    with Scene("iperf3") as scene:
        stack = Stack(scene)
        share = str(max(2, seconds() // 6))
        for serve, ask, address, extra in (
            (stack.on, stack.beside, stack.address, []),
            (stack.beside, stack.on, stack.host, [["-u", "-b", "200M"]]),
        ):
            server = scene.start(*serve("iperf3", "-s", "-B", address, "-p", "5201", "--forceflush"))
            wait_until(lambda: "Server listening" in server.log.read_text(), 10, "the iperf3 server to be ready")
            client = ask("iperf3", "-c", address, "-p", "5201", "-t", share)
            for flags in [[], ["-R"], ["-P", "4"], ["-P", "4", "-R"]] + extra:
                iperf3(client, server.log, *flags)


def python_server_and_clients():
    with Scene("python") as scene:
        stack = Stack(scene)
        path, want = scene.file("www/big", scaled(16 << 20))
        scene.file("www/small", 1000)
        scene.start(*stack.on("python3", "-m", "http.server", str(PORT), "--bind", stack.address, "--directory", str(scene.dir / "www")))
        stack.listening(PORT)
        limit = time.monotonic() + seconds() / 2
        while time.monotonic() < limit:
            check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:{PORT}/big")) == want, "a download differs")
        client = scene.dir / "client.py"
        client.write_text(f"""
import asyncio, hashlib, sys, time, urllib.request
url = "http://{in_url(stack.host)}:{PORT}/big"
end = time.monotonic() + {seconds() / 2}
async def fetch():
    reader, writer = await asyncio.open_connection("{stack.host}", {PORT})
    writer.write(b"GET /big HTTP/1.0\\r\\n\\r\\n")
    await writer.drain()
    data = await reader.read(-1)
    writer.close()
    return hashlib.sha256(data.split(b"\\r\\n\\r\\n", 1)[1]).hexdigest()
async def many():
    return await asyncio.gather(*[fetch() for _ in range(8)])
while time.monotonic() < end:
    assert hashlib.sha256(urllib.request.urlopen(url).read()).hexdigest() == "{want}"
    assert set(asyncio.run(many())) == {{"{want}"}}
print("fine")
""")
        scene.start(*stack.beside("python3", "-m", "http.server", str(PORT), "--bind", stack.host, "--directory", str(scene.dir / "www")))
        stack.listening_beside(PORT)
        out = sh(*stack.on("python3", str(client)), timeout=seconds() + 60)
        check(out.stdout.strip() == "fine", f"the client said {out.stdout!r} {out.stderr!r}")


def socat_both_ways():
    with Scene("socat") as scene:
        stack, v = Stack(scene), Stack.usual_version
        path, want = scene.file("data", scaled(16 << 20))
        limit = time.monotonic() + seconds() / 3
        scene.start(*stack.on("socat", "-U", f"TCP{v}-LISTEN:7001,bind={in_url(stack.address)},fork,reuseaddr", f"OPEN:{path},rdonly"))
        stack.listening(7001)
        while time.monotonic() < limit:
            got = sha256_of(stack.beside("socat", "-u", f"TCP{v}:{in_url(stack.address)}:7001", "-"))
            check(got == want, "what socat served differs")
        scene.start(*stack.beside("socat", "-U", f"TCP{v}-LISTEN:7002,bind={in_url(stack.host)},fork,reuseaddr", f"OPEN:{path},rdonly"))
        stack.listening_beside(7002)
        check(sha256_of(stack.on("socat", "-u", f"TCP{v}:{in_url(stack.host)}:7002", "-")) == want, "what socat fetched differs")
        scene.start(*stack.on("socat", f"UDP{v}-LISTEN:7003,bind={in_url(stack.address)},fork", "EXEC:cat"))
        stack.bound(7003)
        out = sh(*stack.beside("bash", "-c", f"echo over udp | timeout 3 socat -t1 - UDP{v}:{in_url(stack.address)}:7003"), ok=False)
        check("over udp" in out.stdout, f"a datagram did not come back: {out.stdout!r} {out.stderr!r}")


STREAMS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <netdb.h>
#include <sys/socket.h>
int main(int count, char **arguments) {
    struct addrinfo *to;
    if (getaddrinfo(arguments[1], "7005", 0, &to)) return 1;
    int s = socket(to->ai_family, SOCK_STREAM, 0), terminal = dup(1);
    if (connect(s, to->ai_addr, to->ai_addrlen)) return 2;
    printf("before ");
    dup2(s, 1), dup2(s, 0);
    puts("after");
    fflush(stdout);
    int n = 0;
    char word[10] = "";
    int found = scanf("%9s", word) + scanf("%9s %d", word, &n);
    dprintf(terminal, "found %d: %s %d\n", found, word, n);
    dup2(terminal, 1);
    puts("here again");
    fflush(stdout);
    dup2(s, 1);
    puts("at exit");
    return 0;
}
"""


def standard_streams():
    """The output of bash and of a C program after a socket has become their standard output."""
    with Scene("streams") as scene:
        (scene.dir / "streams.c").write_text(STREAMS)
        program = scene.dir / "streams"
        sh("gcc", "-o", str(program), str(scene.dir / "streams.c"))

        v = Stack.usual_version

        def seen(side):
            script = f"echo one > /dev/tcp/{side.host}/7004; exec 1<>/dev/tcp/{side.host}/7004; printf '%s\\n' two; echo three"
            got = scene.dir / "got"
            got.write_text("")
            # The first server writes line by line into a file, the other also sends something to read.
            servers = [scene.start(*side.beside("socat", "-u", f"TCP{v}-LISTEN:7004,fork,reuseaddr", f"OPEN:{got},append")),
                       scene.start(*side.beside("socat", f"TCP{v}-LISTEN:7005,fork,reuseaddr",
                                                f"SYSTEM:echo some word 7; cat >> {got}"))]
            for port in (7004, 7005):
                wait_until(lambda: f":{port} " in sh(*side.beside("ss", "-ltn")).stdout, 10, f"socat on {port}")
            sh(*side.on("bash", "-c", script))
            wait_until(lambda: got.read_text().count("\n") >= 3, 10, "bash's lines")
            output = sh(*side.on(program, side.host)).stdout
            wait_until(lambda: got.read_text().count("\n") >= 5, 10, "the program's lines")
            for server in servers:
                end(server)
            return sorted(got.read_text().splitlines()), output

        on_stack, on_kernel = seen(Stack(scene)), seen(scene.kernel())
        check(on_stack == on_kernel, f"on the stack {on_stack}, on the kernel {on_kernel}")
        check("before after" in on_stack[0] and "three" in on_stack[0], f"the servers got {on_stack}")
        check(on_stack[1] == "found 3: word 7\nhere again\n", f"the program printed {on_stack[1]!r}")


def calls_of_the_library():
    """The shim's own test programs, which expect Linux's behaviour, here on a whole stack, of either IP version."""
    with Scene("calls") as scene:
        stack = Stack(scene)
        sources = ROOT / "crates/shim/tests/programs"
        for name in ("stream", "events", "datagrams", "processes", "urgent"):
            program = scene.dir / name
            sh("gcc", "-O2", "-pthread", "-D_FORTIFY_SOURCE=2", "-o", program, sources / f"{name}.c")
            for case in sh(program, "list", ".").stdout.split():
                sh(*stack.on(program, case, stack.address))


CASES = [
    nginx_one_worker, nginx_four_workers, nginx_over_veth, lighttpd, redis_server, redis_benchmark_on_the_stack,
    clients_curl_and_wget, wrk_on_the_stack, iperf3_both_ways, python_server_and_clients, socat_both_ways,
    standard_streams, calls_of_the_library,
]
CASES += map(over_veth, (
    lighttpd, redis_server, redis_benchmark_on_the_stack, clients_curl_and_wget, wrk_on_the_stack, iperf3_both_ways,
    python_server_and_clients, socat_both_ways,
))
CASES += map(over_ipv6, (
    nginx_one_worker, lighttpd, redis_server, redis_benchmark_on_the_stack, clients_curl_and_wget, wrk_on_the_stack,
    iperf3_both_ways, python_server_and_clients, socat_both_ways, calls_of_the_library,
))
