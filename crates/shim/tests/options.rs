//! `docs/options.md` against sockets and headers: each row is what a socket does, and no option of the
//! system's headers lacks a row. (That the document is the code's table is a test beside that table.)

mod compile;
mod support;

use compile::{EFT, check, run_on, run_on_kernel};
use std::collections::BTreeMap;
use support::Fake;

const KERNEL: &str = "127.0.0.1";

struct Row {
    level: i32,
    number: i32,
    name: String,
    stream: String,
    datagrams: String,
}

fn rows() -> Vec<Row> {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md"));
    let mut level = None;
    let mut rows = Vec::new();
    for line in document.expect("the document").lines() {
        if let Some(title) = line.strip_prefix("## ") {
            level = Some(match title.split(':').next().unwrap() {
                "SOL_SOCKET" => libc::SOL_SOCKET,
                "IPPROTO_TCP" => libc::IPPROTO_TCP,
                "IPPROTO_UDP" => libc::IPPROTO_UDP,
                "IPPROTO_IP" => libc::IPPROTO_IP,
                "IPPROTO_IPV6" => libc::IPPROTO_IPV6,
                other => panic!("a section of {other}"),
            });
        }
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_string()).collect();
        let (Some(level), [_, name, number, stream, datagrams, ..]) = (level, &cells[..]) else { continue };
        if let Ok(number) = number.parse() {
            let (name, stream, datagrams) = (name.clone(), stream.clone(), datagrams.clone());
            rows.push(Row { level, number, name, stream, datagrams });
        }
    }
    assert!(rows.len() > 100, "{} rows", rows.len());
    rows
}

fn arguments(rows: &[Row], host: &str) -> Vec<String> {
    let told =
        rows.iter().map(|r| format!("{}:{}:{}:{}:{}", r.level, r.number, r.stream, r.datagrams, r.name));
    ["rows".to_string(), host.to_string()].into_iter().chain(told).collect()
}

fn on_kernel(arguments: &[&str]) {
    check("options on the kernel", &run_on_kernel("options", arguments));
}

fn on_eft(arguments: &[&str]) {
    let fake = Fake::start();
    check("options on eft", &run_on(&fake.domain(), "options", arguments));
}

#[test]
fn each_row_is_what_a_socket_does() {
    let rows = rows();
    for host in [KERNEL, EFT] {
        let arguments = arguments(&rows, host);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if host == EFT { on_eft(&arguments) } else { on_kernel(&arguments) }
    }
}

#[test]
fn unsupported_values_are_refused_at_once() {
    on_eft(&["values", EFT]);
}

/// The options that a header defines: name and number.
fn defined(header: &str, prefixes: &[&str]) -> BTreeMap<String, i32> {
    let text = std::fs::read_to_string(format!("/usr/include/{header}")).expect("the system's headers");
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some("#define"), Some(name), Some(number)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if let (true, Ok(number)) = (prefixes.iter().any(|p| name.starts_with(p)), number.parse()) {
            all.insert(name.to_string(), number);
        }
    }
    all
}

#[test]
fn every_option_of_the_headers_has_its_row() {
    let rows = rows();
    // Values, not options; and names of the same number.
    let others = [
        "IP_PMTUDISC",
        "IP_DEFAULT",
        "IP_MAX",
        "TCP_MSS_",
        "TCP_REPAIR_O",
        "TCP_RECEIVE",
        "TCP_AO_KEYF",
        "TCP_MD5SIG_MAXKEYLEN",
        "TCP_S_DATA",
        "TCP_COOKIE_",
        "UDP_ENCAP_",
        "SO_GET_FILTER",
        "SO_SECURITY",
        "TCP_MAX_",
        "MCAST_EXCLUDE",
        "MCAST_INCLUDE",
        "SO_RCVTIMEO_OLD",
        "SO_SNDTIMEO_OLD",
        "SO_TIMESTAMP",
        "TCP_CM_",
        "TCP_NLA",
        "TCP_REPAIR_ON",
        "TCP_REPAIR_OFF",
        "IP_RECVRETOPTS",
        "IP_ORIGDSTADDR",
        "TCPI_",
        "TCP_THIN_LINEAR_TIMEOUTS_",
        "TCP_AO_MAXKEYLEN",
        "IPV6_FL_",
        "IPV6_FLOWINFO_FLOWLABEL",
        "IPV6_FLOWINFO_PRIORITY",
        "IPV6_PRIORITY_",
        "IPV6_TLV_",
        "IPV6_PMTUDISC",
        "IPV6_PREFER_",
        "IPV6_ORIGDSTADDR",
        "SCM_",
    ];
    let kinds: [(&str, &[&str], i32); 5] = [
        ("asm-generic/socket.h", &["SO_"], libc::SOL_SOCKET),
        ("linux/tcp.h", &["TCP_"], libc::IPPROTO_TCP),
        ("linux/udp.h", &["UDP_"], libc::IPPROTO_UDP),
        ("linux/in.h", &["IP_", "MCAST_"], libc::IPPROTO_IP),
        ("linux/in6.h", &["IPV6_"], libc::IPPROTO_IPV6),
    ];
    for (header, prefixes, level) in kinds {
        let all = defined(header, prefixes);
        assert!(!all.is_empty(), "{header}");
        for (name, number) in all {
            let row = rows.iter().find(|row| row.level == level && row.number == number);
            let is_other =
                others.iter().any(|other| name.starts_with(other) && row.is_none_or(|r| r.name != name));
            assert!(is_other || row.is_some_and(|row| row.name == name), "{name} ({number}) has no row");
        }
    }
}
