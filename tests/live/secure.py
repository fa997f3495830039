"""TLS and HTTP/2: nginx with certificates of the test's own, under its load generator and while it reloads."""

import re
import threading
import time

from harness import Scene, Stack, check, end, in_url, over_ipv6, scaled, seconds, sh, sha256_of
from programs import PORT, nginx_config, no_worse_than_the_kernel, reload

STREAMS = 16


def certificate(scene, address):
    """The files of a key, and of a certificate for an address that vouches for itself."""
    key, cert = scene.dir / "key.pem", scene.dir / f"{address.replace(':', '-')}.pem"
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=eft",
       "-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", cert)
    return key, cert


def started(scene, side_on, address):
    """nginx with two workers, and the certificate by which its clients know it."""
    key, cert = certificate(scene, address)
    config = nginx_config(scene, address, 2, f"ssl http2; ssl_certificate {cert}; ssl_certificate_key {key}")
    return scene.start(*side_on("nginx", "-c", config)), cert


def curl(cert, *arguments):
    return ["curl", "-sf", "--cacert", str(cert), *map(str, arguments)]


def url(address, path):
    return f"https://{in_url(address)}:{PORT}{path}"


def checked_versions(command, cert, address):
    """Both versions of HTTP and of TLS that nginx offers."""
    for flags, want in ((["--http2"], "2 200"), (["--http1.1"], "1.1 200"), (["--http2", "--tls-max", "1.2"], "2 200")):
        out = sh(*command(*curl(cert, *flags, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", url(address, "/hello")))).stdout
        check(out == want, f"curl {flags}: HTTP {out}, not {want}")
    # A certificate that nobody vouches for is no certificate.
    refused = sh(*command("curl", "-s", url(address, "/hello")), ok=False)
    check(refused.returncode == 60, f"curl without the certificate: {refused.returncode}")


def h2load(command, address, path, duration):
    """Requests that were answered, and how many were not, by kind."""
    out = sh(*command("h2load", "-c", 8, "-m", STREAMS, "-t", 2, "-D", duration, url(address, path)), timeout=duration + 60).stdout
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (succeeded|failed|errored|timeout|5xx|4xx)", out)}
    check("Application protocol: h2" in out, f"h2load spoke no HTTP/2: {out}")
    check(counts.get("succeeded", 0) > 0, f"h2load got no answer: {out}")
    return counts.pop("succeeded"), {kind: n for kind, n in counts.items() if n}


def reloaded_under_load(command, server, address, duration):
    errors = {}
    load = threading.Thread(target=lambda: errors.update(h2load(command, address, "/small", duration)[1]))
    load.start()
    limit = time.monotonic() + duration * 0.7
    while time.monotonic() < limit:
        time.sleep(duration / 6)
        reload(server)
    load.join()
    return errors


def nginx_with_tls_and_http2():
    with Scene("secure") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/big", scaled(32 << 20))
        scene.file("www/small", 4096)
        third = max(2, seconds() // 3)
        server, cert = started(scene, stack.on, stack.address)
        stack.listening(PORT)
        checked_versions(stack.beside, cert, stack.address)
        download = curl(cert, "--http2", url(stack.address, "/big"))
        check(sha256_of(stack.beside(*download)) == want, "a download differs")
        _, errors = h2load(stack.beside, stack.address, "/small", third)
        check(not errors, f"h2load saw errors: {errors}")
        errors = reloaded_under_load(stack.beside, server, stack.address, third)
        check(sha256_of(stack.beside(*download)) == want, "a download after reloads differs")
        end(server)

        def errors_on(kernel):
            beside, _ = started(scene, kernel.on, kernel.address)
            kernel.listening(PORT)
            errors = reloaded_under_load(kernel.beside, beside, kernel.address, third)
            end(beside)
            return errors
        no_worse_than_the_kernel(scene, errors_on, errors, "reload")


def clients_of_tls_and_http2():
    with Scene("secure-clients") as scene:
        stack = Stack(scene)
        _, want = scene.file("www/big", scaled(32 << 20))
        scene.file("www/small", 4096)
        _, cert = started(scene, stack.beside, stack.host)
        stack.listening_beside(PORT)
        checked_versions(stack.on, cert, stack.host)
        # Several streams of one connection.
        got = scene.dir / "got"
        same = [flag for i in range(4) for flag in ("-o", f"{got}{i}", url(stack.host, "/big"))]
        sh(*stack.on(*curl(cert, "--http2", "--parallel", *same)), timeout=120)
        for i in range(4):
            check(sha256_of(["cat", f"{got}{i}"]) == want, f"download {i} of 4 differs")
        check(sha256_of(stack.on("wget", "-q", "-O", "-", f"--ca-certificate={cert}", url(stack.host, "/big"))) == want, "wget's download differs")
        _, errors = h2load(stack.on, stack.host, "/small", max(2, seconds() // 3))
        check(not errors, f"h2load saw errors: {errors}")


CASES = [nginx_with_tls_and_http2, clients_of_tls_and_http2]
CASES += map(over_ipv6, (nginx_with_tls_and_http2, clients_of_tls_and_http2))
