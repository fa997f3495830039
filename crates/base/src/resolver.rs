//! The host's name service files, as a program sees them on a stack that has its own name server.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

/// What the stack says of names.
pub struct Names<'a> {
    /// Name servers, to be asked before all others.
    pub servers: &'a [IpAddr],
    /// Domains in which names are looked up, in place of the host's; none: as on the host.
    pub search: &'a [String],
}

/// The files, each with the function that makes its changed text.
pub const FILES: [(&str, fn(&str, &Names) -> String); 2] =
    [("/etc/resolv.conf", resolv_conf), ("/etc/nsswitch.conf", nsswitch_conf)];

/// resolv.conf(5) with the stack's name servers before all others.
fn resolv_conf(host: &str, names: &Names) -> String {
    let is_host = |line: &&str| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                let server = words.next().and_then(|w| w.parse().ok());
                server.is_none_or(|server| !names.servers.contains(&server))
            }
            Some("search" | "domain") => names.search.is_empty(),
            _ => true,
        }
    };
    let servers = names.servers.iter().map(|server| format!("nameserver {server}"));
    let search = (!names.search.is_empty()).then(|| format!("search {}", names.search.join(" ")));
    let own: Vec<String> = servers.chain(search).collect();
    lines(own.iter().map(String::as_str).chain(host.lines().filter(is_host)))
}

/// nsswitch.conf(5) that looks hosts up in /etc/hosts and DNS only: other sources do not ask the stack's
/// name server.
fn nsswitch_conf(host: &str, _: &Names) -> String {
    let others = host.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    lines(others.chain(["hosts: files dns"]))
}

fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests;
