"""Programs that make system calls by instructions of their own."""

import os
import pathlib
import shutil

from harness import Scene, Stack, check, in_url, over_ipv6, seconds, sh, sha256_of, wait_until
from programs import PORT, quiet_wrk

SOURCE = pathlib.Path(__file__).with_name("past.c")
SERVED, FETCHED = 7006, 7007


def exchanged(scene, side, program, path):
    """Checksums of the data that came back: three times from the program, and once to it."""
    scene.start(*side.on(program, "serve", side.address, SERVED))
    # The first client sends nothing.
    side.listening(SERVED)
    sums = [sha256_of(side.beside("bash", "-c", f"socat -t30 - TCP:{in_url(side.address)}:{SERVED} < {path}")) for _ in range(3)]
    scene.start(*side.beside("socat", f"TCP-LISTEN:{FETCHED},bind={in_url(side.host)},pf=ip{Stack.usual_version},fork,reuseaddr", "EXEC:cat"))
    wait_until(lambda: f":{FETCHED} " in sh(*side.beside("ss", "-ltn")).stdout, 10, "socat")
    return sums + [sha256_of(side.on("bash", "-c", f"{program} fetch {side.host} {FETCHED} < {path}"))]


def calls_past_libc():
    with Scene("past") as scene:
        program = scene.dir / "past"
        sh("gcc", "-O2", "-Wall", "-pthread", "-o", str(program), str(SOURCE))
        path, want = scene.file("data", 8 << 20)
        for side in (scene.kernel(), Stack(scene)):
            sums = exchanged(scene, side, program, path)
            check(sums == [want] * 4, f"on {type(side).__name__}: {sums}, not {want}")


GO = """
package main

import ("fmt"; "io"; "net"; "net/http"; "os"; "os/exec"; "runtime"; "time"; _ "os/user")

func collect() { for { runtime.GC(); time.Sleep(10 * time.Millisecond) } }

func echo() {
    socket, err := net.ListenPacket("udp", os.Args[2])
    for err == nil {
        var n int
        var from net.Addr
        bytes := make([]byte, 2000)
        if n, from, err = socket.ReadFrom(bytes); err == nil { socket.WriteTo(bytes[:n], from) }
    }
    fmt.Println(err)
}

func main() {
    go collect()
    if os.Args[1] == "fetch" {
        answer, err := http.Get(os.Args[2])
        if err == nil { _, err = io.Copy(os.Stdout, answer.Body) }
        if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
        return
    }
    go echo()
    http.Handle("/", http.FileServer(http.Dir(os.Args[3])))
    http.HandleFunc("/child", func(to http.ResponseWriter, _ *http.Request) {
        said, err := exec.Command("echo", "from a child").CombinedOutput()
        fmt.Fprint(to, string(said), err)
    })
    fmt.Println(http.ListenAndServe(os.Args[2], nil))
}
"""


def go_programs():
    """Go's runtime has its own threads, stacks and signal handlers, and does not use libc for system calls. Without a
    Go toolchain the case is skipped."""
    if not shutil.which("go"):
        print("        (no Go toolchain here)")
        return
    with Scene("go") as scene:
        (scene.dir / "main.go").write_text(GO)
        program = scene.dir / "program"
        sh("go", "build", "-o", program, scene.dir / "main.go", timeout=300,
           env=os.environ | {"CGO_ENABLED": "1", "GO111MODULE": "off"})
        stack = Stack(scene)
        path, want = scene.file("www/big", 16 << 20)
        scene.file("www/small", 4096)
        scene.start(*stack.on(program, "serve", f":{PORT}", path.parent))
        stack.listening(PORT)
        url = f"http://{in_url(stack.address)}:{PORT}"
        quiet_wrk(stack, "/small", max(2, seconds() // 3), connections=100)
        check(sha256_of(stack.beside("curl", "-sf", f"{url}/big")) == want, "a download differs")
        said = sh(*stack.beside("curl", "-sf", f"{url}/child")).stdout
        check(said == "from a child\n<nil>", f"its child said {said!r}")
        back = sh("bash", "-c", f"echo over udp | timeout 3 socat -t1 - UDP:{in_url(stack.address)}:{PORT}", ok=False).stdout
        check(back == "over udp\n", f"a datagram came back as {back!r}")
        scene.start(*stack.beside("python3", "-m", "http.server", str(PORT), "--bind", stack.host, "--directory", path.parent))
        url = f"http://{in_url(stack.host)}:{PORT}"
        wait_until(lambda: sh(*stack.beside("curl", "-sf", "-o", "/dev/null", f"{url}/small"), ok=False).returncode == 0, 10, "its server")
        for _ in range(5):
            check(sha256_of(stack.on(program, "fetch", f"{url}/big")) == want, "what it fetched differs")


CASES = [calls_past_libc, go_programs, over_ipv6(calls_past_libc)]
