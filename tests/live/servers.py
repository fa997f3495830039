"""More unmodified servers, each with its own clients, while components of the stack die."""

import os
import pathlib
import pwd

from harness import Scene, Stack, check, end, in_url, over_ipv6, scaled, seconds, sh, sha256_of, wait_until
from programs import PORT, nginx_config, quiet_wrk


def dying(stack, *components):
    """Each of these dies, one after the other."""
    for component in components:
        stack.kill(component)


def both_ways(scene, stack, run, rounds):
    """`run serve ADDRESS PORT` answers what `run ask ADDRESS PORT ROUNDS` asks, each on the stack and beside it."""
    def ask(side, address, *components):
        client = scene.start(*side(*run, "ask", address, str(PORT), str(rounds)))
        dying(stack, *components)
        check(client.wait(60) == 0 and "fine" in client.log.read_text(), client.log.read_text())
    scene.start(*stack.on(*run, "serve", stack.address, str(PORT)))
    stack.listening(PORT, 20)
    ask(stack.beside, stack.address, "tcp", "sockets")
    scene.start(*stack.beside(*run, "serve", stack.host, str(PORT)))
    stack.listening_beside(PORT)
    ask(stack.on, stack.host, "ip", "tcp")


def haproxy():
    """It balances between two servers beside the stack: connections both in and out."""
    with Scene("haproxy") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/big", scaled(16 << 20))
        scene.file("www/small", 2048)
        scene.start(*stack.beside("nginx", "-c", str(nginx_config(scene, stack.host, 2))))
        stack.listening_beside(PORT)
        config = scene.dir / "haproxy.cfg"
        servers = "\n".join(f"    server s{i} {in_url(stack.host)}:{PORT} check inter 200ms" for i in range(2))
        config.write_text(f"""
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend in
    bind {in_url(stack.address)}:{PORT}
    default_backend out
backend out
    balance roundrobin
{servers}
""")
        scene.start(*stack.on("haproxy", "-db", "-f", str(config)))
        stack.listening(PORT)
        for component in ["tcp", "ip", "sockets"]:
            quiet_wrk(stack, "/small", max(1, seconds() // 5))
            stack.kill(component)
            check(sha256_of(stack.beside("curl", "-sf", f"http://{in_url(stack.address)}:{PORT}/big")) == want, "a download differs")


def apache():
    """With its event workers and its own benchmark."""
    with Scene("apache2") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/big", scaled(16 << 20))
        scene.file("www/small", 2048)
        modules = "".join(f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so\n" for m in ["mpm_event", "authz_core"])
        config = scene.dir / "apache.conf"
        config.write_text(f"""{modules}
ServerName eft
ServerRoot {scene.dir}
PidFile {scene.dir}/apache.pid
ErrorLog {scene.dir}/apache.log
User nobody
Group nogroup
Listen {in_url(stack.address)}:{PORT}
DocumentRoot {scene.dir}/www
<Directory {scene.dir}/www>
    Require all granted
</Directory>
""")
        scene.dir.chmod(0o755)
        scene.start(*stack.on("apache2", "-f", str(config), "-DFOREGROUND"))
        stack.listening(PORT)
        url = f"http://{in_url(stack.address)}:{PORT}"
        for component in ["tcp", "filter", "sockets"]:
            out = sh(*stack.beside("ab", "-q", "-k", "-n", str(scaled(4000)), "-c", "20", f"{url}/small")).stdout
            check("Failed requests:        0" in out, out)
            stack.kill(component)
            check(sha256_of(stack.beside("curl", "-sf", f"{url}/big")) == want, "a download differs")


def memcached():
    with Scene("memcached") as scene:
        stack = Stack(scene)
        scene.start(*stack.on("memcached", "-u", "nobody", "-l", stack.address, "-p", "11211", "-U", "11211", "-t", "4"))
        stack.listening(11211)
        client = scene.dir / "client.py"
        client.write_text("""
import os, random, socket, struct, sys, threading
address, rounds = (sys.argv[1], 11211), int(sys.argv[2])
def one(n):
    random.seed(n)
    s = socket.create_connection(address); f = s.makefile("rb")
    for i in range(rounds):
        value = random.randbytes(random.choice([1, 100, 5000, 500000 if i % 50 == 0 else 10]))
        s.sendall(b"set k%d 0 0 %d\\r\\n%s\\r\\n" % (n, len(value), value))
        assert f.readline() == b"STORED\\r\\n"
        s.sendall(b"get k%d\\r\\n" % n)
        assert f.readline() == b"VALUE k%d 0 %d\\r\\n" % (n, len(value))
        assert f.read(len(value)) == value and f.read(7) == b"\\r\\nEND\\r\\n"
threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
failed = []
threading.excepthook = lambda a: failed.append(a.exc_value)
[t.start() for t in threads]; [t.join() for t in threads]
assert not failed, failed
udp = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM); udp.settimeout(2)
for attempt in range(5):
    udp.sendto(struct.pack(">HHHH", attempt, 0, 1, 0) + b"get k0\\r\\n", address)
    try:
        assert udp.recv(65536)[8:].startswith(b"VALUE k0 0 "); print("fine"); break
    except TimeoutError:
        pass
""")
        for component in ["tcp", "udp", "sockets"]:
            client_runs = scene.start(*stack.beside("python3", str(client), stack.address, str(scaled(300))))
            stack.kill(component)
            check(client_runs.wait(60) == 0, f"{component} died: {client_runs.log.read_text()}")


def postgresql():
    """With pgbench on the other side while components die, then a large answer, and a connection for each transaction."""
    with Scene("postgresql") as scene:
        stack = Stack(scene)
        programs = max(pathlib.Path("/usr/lib/postgresql").iterdir()) / "bin"
        data = scene.dir / "data"
        scene.dir.chmod(0o755)
        data.mkdir()
        user = pwd.getpwnam("postgres")
        os.chown(data, user.pw_uid, user.pw_gid)
        as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
        sh(*as_postgres, programs / "initdb", "-D", data, "-A", "trust", "--no-sync")
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n")
        server = scene.start(*stack.on(*as_postgres, str(programs / "postgres"), "-D", str(data), "-h", stack.address, "-k", "", "-F"))
        stack.listening(5432, 20)
        who = ["-h", stack.address, "-U", "postgres"]
        wait_until(lambda: sh(*stack.beside("psql", *who, "-c", "select 1"), ok=False).returncode == 0, 20, "postgres")
        sh(*stack.beside("pgbench", *who, "-i", "-q", "-s", "1", "postgres"), timeout=120)
        bench = scene.start(*stack.beside("pgbench", *who, "-c", "8", "-j", "2", "-T", str(max(3, seconds() // 2)), "postgres"))
        dying(stack, "tcp", "ip", "sockets", "filter")
        check(bench.wait(60) == 0, bench.log.read_text())
        said = bench.log.read_text()
        check("number of failed transactions: 0 " in said, said)
        # A large answer, and a connection for each.
        want = "".join(f"{i}\n" for i in range(100_000))
        check(sh(*stack.beside("psql", *who, "-Atc", "select generate_series(0, 99999)")).stdout == want, "an answer differs")
        for _ in range(5):
            sh(*stack.beside("pgbench", *who, "-C", "-c", "4", "-t", "10", "-S", "postgres"))
        end(server)


def git_over_http():
    """A clone and a push over HTTP (git-http-backend behind lighttpd), then a clone by git's own protocol from beside the stack."""
    with Scene("git") as scene:
        stack = Stack(scene)
        home = {**os.environ, "HOME": str(scene.dir), "GIT_CONFIG_NOSYSTEM": "1"}
        def git(*arguments, on=None):
            command = ["git", "-c", "user.name=e", "-c", "user.email=e@e", "-c", "safe.directory=*", "-c", "init.defaultBranch=main", *arguments]
            return sh(*(on(*command) if on else command), env=home, timeout=60).stdout
        work, bare = scene.dir / "work", scene.dir / "all/r.git"
        git("init", "-q", str(work))
        (work / "data").write_bytes(os.urandom(scaled(8 << 20)))
        git("-C", str(work), "add", ".")
        git("-C", str(work), "commit", "-qm", "first")
        git("clone", "-q", "--bare", str(work), str(bare))
        git("-C", str(bare), "config", "http.receivepack", "true")
        config = scene.dir / "lighttpd.conf"
        config.write_text(f"""
server.document-root = "{scene.dir}/all"
server.port = {PORT}
server.bind = "{in_url(stack.address)}"
server.modules = ("mod_alias", "mod_cgi", "mod_setenv")
alias.url = ("/git" => "/usr/lib/git-core/git-http-backend")
cgi.assign = ("" => "")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "{scene.dir}/all", "GIT_HTTP_EXPORT_ALL" => "1", "REMOTE_USER" => "e", "HOME" => "{scene.dir}")
""")
        (scene.dir / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        server = scene.start(*stack.on("lighttpd", "-D", "-f", str(config)), process_group=0)
        stack.listening(PORT)
        url = f"http://{in_url(stack.address)}:{PORT}/git/r.git"
        git("clone", "-q", url, str(scene.dir / "one"), on=stack.beside)
        stack.kill("tcp")
        one = scene.dir / "one"
        (one / "more").write_bytes(os.urandom(scaled(4 << 20)))
        git("-C", str(one), "add", ".")
        git("-C", str(one), "commit", "-qm", "second")
        git("-C", str(one), "push", "-q", on=stack.beside)
        check(git("-C", str(bare), "rev-parse", "main") == git("-C", str(one), "rev-parse", "HEAD"), "the push arrived otherwise")
        end(server)
        # git as a client on the stack, from its own server beside it.
        scene.start(*stack.beside("git", "daemon", "--reuseaddr", f"--base-path={scene.dir}/all", "--export-all", f"--listen={stack.host}", "--port=9418"), env=home)
        stack.listening_beside(9418)
        git("clone", "-q", f"git://{in_url(stack.host)}:9418/r.git", str(scene.dir / "two"), on=stack.on)
        check((scene.dir / "two/more").read_bytes() == (one / "more").read_bytes(), "the clone differs")


def unbound_and_dnsmasq():
    """unbound on the stack asks dnsmasq beside it, and clients ask unbound, over UDP and TCP."""
    with Scene("unbound") as scene:
        stack = Stack(scene)
        scene.start(*stack.beside("dnsmasq", "-k", "-C", "/dev/null", "-R", "-h", "--port", "5353", "--bind-interfaces", "--user=root", "--listen-address", stack.host, "--pid-file=",
                                  *[f"--address=/n{i}.test/10.1.2.{i}" for i in range(100)]))
        config = scene.dir / "unbound.conf"
        config.write_text(f"""
server:
    interface: {stack.address}
    port: 5300
    access-control: 0.0.0.0/0 allow
    access-control: ::/0 allow
    do-daemonize: no
    chroot: ""
    username: ""
    directory: "{scene.dir}"
    pidfile: "{scene.dir}/unbound.pid"
    use-syslog: no
    logfile: ""
    do-not-query-localhost: no
    module-config: "iterator"
    local-zone: "test." nodefault
    domain-insecure: "test"
    cache-max-ttl: 0
remote-control:
    control-enable: no
forward-zone:
    name: "test."
    forward-addr: {stack.host}@5353
""")
        scene.start(*stack.on("unbound", "-d", "-c", str(config)))
        stack.bound(5300)
        def ask(i, *flags):
            out = sh(*stack.beside("dig", "+short", "+tries=5", "+time=2", *flags, f"@{stack.address}", "-p", "5300", f"n{i}.test", "A")).stdout.strip()
            check(out == f"10.1.2.{i}", f"n{i}.test is {out!r}")
        for i in range(20):
            ask(i)
            ask(i, "+tcp")
            if i % 5 == 4:
                stack.kill(["udp", "tcp", "ip", "sockets"][i // 5])


NODE = """
const http = require("http"), crypto = require("crypto");
const [mode, address, port, other] = process.argv.slice(2);
const answer = (request, response) => {
  const hash = crypto.createHash("sha256");
  request.on("data", (data) => hash.update(data));
  request.on("end", () => response.end(hash.digest("hex")));
};
if (mode == "serve") {
  http.createServer({ keepAliveTimeout: 60000 }, answer).listen(port, address);
} else {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
  const one = (n) => new Promise((resolve, reject) => {
    const body = crypto.randomBytes(n), want = crypto.createHash("sha256").update(body).digest("hex");
    const request = http.request({ host: address, port, agent, method: "POST" }, (response) => {
      let got = ""; response.on("data", (data) => (got += data));
      response.on("end", () => (got == want ? resolve() : reject(new Error(got))));
    });
    request.on("error", reject); request.end(body);
  });
  (async () => {
    for (let i = 0; i < Number(other); i++)
      await Promise.all(Array.from({ length: 20 }, (_, n) => one(n == 0 ? 300000 : 10 * n)));
    agent.destroy(); console.log("fine");
  })();
}
"""


def node():
    """A server and a client, each on the stack and beside it."""
    with Scene("node") as scene:
        stack = Stack(scene)
        program = scene.dir / "http.js"
        program.write_text(NODE)
        run = ["node", str(program)]
        both_ways(scene, stack, run, scaled(60))


JAVA = """
import java.io.*; import java.net.*; import java.net.http.*; import java.nio.*; import java.nio.channels.*; import java.util.*;
public class Echo {
  public static void main(String[] a) throws Exception {
    InetSocketAddress address = new InetSocketAddress(a[1], Integer.parseInt(a[2]));
    if (a[0].equals("serve")) serve(address); else ask(address, Integer.parseInt(a[3]));
  }
  // One thread, a selector, and writes that do not fit.
  static void serve(InetSocketAddress address) throws Exception {
    Selector selector = Selector.open();
    ServerSocketChannel server = ServerSocketChannel.open();
    server.bind(address); server.configureBlocking(false); server.register(selector, SelectionKey.OP_ACCEPT);
    while (true) {
      selector.select();
      Iterator<SelectionKey> keys = selector.selectedKeys().iterator();
      while (keys.hasNext()) {
        SelectionKey key = keys.next(); keys.remove();
        if (key.isAcceptable()) {
          SocketChannel c = server.accept();
          if (c == null) continue;
          c.configureBlocking(false); c.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(65536));
          continue;
        }
        SocketChannel c = (SocketChannel) key.channel(); ByteBuffer b = (ByteBuffer) key.attachment();
        if (key.isReadable() && c.read(b) < 0) { c.close(); continue; }
        b.flip(); c.write(b); b.compact();
        key.interestOps((b.hasRemaining() ? SelectionKey.OP_READ : 0) | (b.position() > 0 ? SelectionKey.OP_WRITE : 0));
      }
    }
  }
  static void ask(InetSocketAddress address, int rounds) throws Exception {
    List<Thread> threads = new ArrayList<>(); List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());
    for (int n = 0; n < 8; n++) {
      int seed = n;
      Thread t = new Thread(() -> {
        try (Socket s = new Socket(address.getAddress(), address.getPort())) {
          Random random = new Random(seed); OutputStream out = s.getOutputStream(); DataInputStream in = new DataInputStream(s.getInputStream());
          for (int i = 0; i < rounds; i++) {
            byte[] sent = new byte[i % 10 == 0 ? 200000 : 100], got = new byte[sent.length];
            random.nextBytes(sent);
            Thread writer = new Thread(() -> { try { out.write(sent); } catch (IOException e) { failed.add(e); } });
            writer.start(); in.readFully(got); writer.join();
            if (!Arrays.equals(sent, got)) throw new IOException("other bytes");
          }
        } catch (Throwable e) { failed.add(e); }
      });
      threads.add(t); t.start();
    }
    for (Thread t : threads) t.join();
    if (!failed.isEmpty()) { System.out.println(failed); System.exit(1); }
    System.out.println("fine");
  }
}
"""


def java():
    """A selector's server (NIO) and threads with blocking sockets, each on the stack and beside it."""
    with Scene("java") as scene:
        stack = Stack(scene)
        (scene.dir / "Echo.java").write_text(JAVA)
        sh("javac", "-d", scene.dir, scene.dir / "Echo.java", timeout=120)
        run = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(scene.dir), "Echo"]
        both_ways(scene, stack, run, scaled(200))


CASES = [haproxy, apache, memcached, postgresql, git_over_http, unbound_and_dnsmasq, node, java]
CASES += [over_ipv6(case) for case in CASES]
