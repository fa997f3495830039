//! NETLINK_ROUTE on the fake stack: what `ip` shows, and how such a socket behaves.

mod support;

use std::process::Output;
use support::{Domain, Fake};

fn run(domain: &Domain, command: &[&str]) -> Output {
    let mut timeout = domain.command("timeout");
    timeout.args(["-k", "5", "20"]).args(command).output().expect("timeout runs")
}

/// The output, with single blanks.
fn said(domain: &Domain, command: &[&str]) -> String {
    let done = run(domain, command);
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && error.is_empty(), "{command:?}: {}: {error}", done.status);
    let lines = String::from_utf8_lossy(&done.stdout).into_owned();
    lines.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn ip_shows_the_stack() {
    let fake = Fake::start();
    let domain = fake.domain();
    let addresses = said(&domain, &["ip", "-o", "addr"]);
    assert_eq!(addresses.lines().count(), 2, "{addresses}");
    assert!(addresses.contains("1: lo inet 127.0.0.1/8 scope host lo"), "{addresses}");
    assert!(addresses.contains("7: eft0 inet 10.78.0.2/24 brd 10.78.0.255 scope global eft0"), "{addresses}");
    let links = said(&domain, &["ip", "-o", "link", "show", "dev", "eft0"]);
    assert!(links.starts_with("7: eft0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500"), "{links}");
    assert!(links.contains("link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff"), "{links}");
    let routes = said(&domain, &["ip", "route"]);
    assert!(routes.contains("default via 10.78.0.1 dev eft0 proto static"), "{routes}");
    assert!(routes.contains("10.78.0.0/24 dev eft0 proto kernel scope link src 10.78.0.2"), "{routes}");
    assert!(
        said(&domain, &["ip", "route", "get", "10.78.0.9"]).starts_with("10.78.0.9 dev eft0 src 10.78.0.2")
    );
    assert!(said(&domain, &["ip", "route", "get", "8.8.8.8"]).starts_with("8.8.8.8 via 10.78.0.1 dev eft0"));
    assert!(said(&domain, &["ip", "route", "get", "10.78.0.2"]).starts_with("local 10.78.0.2 dev lo"));
}

#[test]
fn changes_are_refused() {
    let fake = Fake::start();
    let domain = fake.domain();
    for command in ["ip link set eft0 down", "ip addr add 10.78.0.3/24 dev eft0", "ip link show dev nosuch"] {
        let done = run(&domain, &command.split(' ').collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success(), "{command} was done");
        let words = ["not supported", "does not exist", "No such device"];
        assert!(words.iter().any(|w| error.contains(w)), "{command}: {error}");
    }
}

/// Polls, peeks, names and copies of the descriptor are as on the kernel.
#[test]
fn a_netlink_socket_behaves_as_the_kernels() {
    const PROGRAM: &str = r#"
import os, select, socket, struct, sys
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
s.bind((0, 0))
port, groups = s.getsockname()
p = select.epoll(); p.register(s, select.EPOLLIN)
said = [port == os.getpid(), groups, p.poll(0)]
for send in s.sendto, lambda request, to: s.sendmsg([request], [], 0, to), lambda request, to: os.write(s.fileno(), request):
    request = struct.pack("=IHHII", 20, 18, 0x301, 9, 0) + b"\0\0\0\0"
    said.append(send(request, (0, 0)))
    said.append(len(p.poll(5)))
    peeked = s.recv(8192, socket.MSG_PEEK)
    data, ancillary, flags, address = os.dup(s.fileno()) and s.recvmsg(8192)
    said += [peeked == data, address, flags, struct.unpack("=IHHII", data[:16])[1:]]
    data, address = s.recvfrom(8192)
    said += [struct.unpack("=IHHII", data[:16])[1:], address, p.poll(0)]
print([port if item == port else item for item in said] if port != os.getpid() else
      [[("port" if x == port else x) for x in item] if isinstance(item, tuple) else item for item in said])
"#;
    let fake = Fake::start();
    let on_eft = said(&fake.domain(), &["python3", "-c", PROGRAM]);
    let turn = "20, 1, True, [0, 0], 0, [16, 2, 9, 'port'], [3, 2, 9, 'port'], [0, 0], []";
    assert_eq!(on_eft, format!("[True, 0, [], {turn}, {turn}, {turn}]\n"));
}
