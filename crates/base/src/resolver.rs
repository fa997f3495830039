//! The host's name service files, as a program sees them on a stack that has its own name server.

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

/// The files, each with the function that makes its changed text.
pub const FILES: [(&str, fn(&str, IpAddr) -> String); 2] =
    [("/etc/resolv.conf", resolv_conf), ("/etc/nsswitch.conf", nsswitch_conf)];

/// resolv.conf(5) with `first` before all other name servers.
fn resolv_conf(host: &str, first: IpAddr) -> String {
    let is_first = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next() == Some("nameserver") && words.next().and_then(|w| w.parse().ok()) == Some(first)
    };
    let others = host.lines().filter(|line| !is_first(line));
    lines([format!("nameserver {first}").as_str()].into_iter().chain(others))
}

/// nsswitch.conf(5) that looks hosts up in /etc/hosts and DNS only: other sources do not ask the stack's
/// name server.
fn nsswitch_conf(host: &str, _first: IpAddr) -> String {
    let others = host.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    lines(others.chain(["hosts: files dns"]))
}

fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests;
