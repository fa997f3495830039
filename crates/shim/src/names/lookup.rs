//! From a name to addresses: hosts, then DNS.

use super::configuration::Configuration;
use super::{client, configuration, hosts, message, order};
use crate::interfaces;
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::address::needs_zone;

/// Why there is no address, as getaddrinfo distinguishes it. Of several reasons the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    NoName,
    NoData,
    TryAgain,
}

/// What was found.
pub struct Found {
    pub addresses: Vec<IpAddr>,
    pub canonical: String,
}

/// Which addresses are wanted. Where the stack has no IPv6, servers are not asked for IPv6 addresses.
#[derive(Clone, Copy)]
pub struct Wanted {
    ipv4: bool,
    ipv6: bool,
}

impl Wanted {
    /// For a program that asks for one family, or for all (AF_UNSPEC). `mapped`: a request for IPv6 accepts IPv4
    /// addresses, too.
    pub fn by(family: c_int, mapped: bool) -> Wanted {
        let ipv6 = family != libc::AF_INET && interfaces::speak_ipv6();
        // A server must say whether the name exists.
        Wanted { ipv4: family != libc::AF_INET6 || mapped || !ipv6, ipv6 }
    }

    fn kinds(self) -> impl Iterator<Item = u16> {
        let kinds = [(self.ipv4, message::TYPE_A), (self.ipv6, message::TYPE_AAAA)];
        kinds.into_iter().filter(|(wanted, _)| *wanted).map(|(_, kind)| kind)
    }
}

/// Looks a name up. The best address comes first.
pub fn lookup(name: &str, wanted: Wanted) -> Result<Found, Failure> {
    let found = match hosts::addresses(name) {
        Some((addresses, canonical)) => Ok(Found { addresses, canonical }),
        None => dns(name, wanted),
    };
    let mut found = match found {
        Err(_) if is_own(name) => Found { addresses: own_addresses(), canonical: name.to_string() },
        other => other?,
    };
    match wanted.ipv6 {
        true => order::sort(&mut found.addresses),
        // Without IPv6, IPv6 addresses from /etc/hosts come last.
        false => found.addresses.sort_by_key(IpAddr::is_ipv6),
    }
    Ok(found)
}

/// The machine's own name is known without a server.
fn is_own(name: &str) -> bool {
    let mut own = [0u8; 256];
    // SAFETY: our buffer.
    let done = unsafe { libc::gethostname(own.as_mut_ptr().cast(), own.len() - 1) };
    let own = own.split(|&b| b == 0).next().unwrap_or(&[]);
    done == 0 && !own.is_empty() && own.eq_ignore_ascii_case(name.as_bytes()) && !own_addresses().is_empty()
}

fn own_addresses() -> Vec<IpAddr> {
    crate::interfaces::records().iter().map(|record| record.address.into()).collect()
}

fn dns(name: &str, wanted: Wanted) -> Result<Found, Failure> {
    let configuration = configuration::read();
    let mut failure = Failure::NoName;
    for candidate in configuration.candidates(name) {
        let mut found: Option<Found> = None;
        let mut silent = false;
        for kind in wanted.kinds() {
            match ask(&configuration, &candidate, kind) {
                Ok(more) => match &mut found {
                    Some(found) => found.addresses.extend(more.addresses),
                    None => found = Some(more),
                },
                Err(Asked::Silent) => silent = true,
                Err(Asked::Failed(why)) => failure = failure.max(why),
            }
        }
        match found {
            Some(found) => return Ok(found),
            // Asking for longer names would take as long again.
            None if silent => return Err(Failure::TryAgain),
            None => {}
        }
    }
    Err(failure)
}

/// Why one question gave no address.
enum Asked {
    /// No server answered.
    Silent,
    Failed(Failure),
}

/// One question: addresses of one kind.
fn ask(configuration: &Configuration, name: &str, kind: u16) -> Result<Found, Asked> {
    let query = message::query(client::random_id(), name, kind, message::CLASS_IN)
        .ok_or(Asked::Failed(Failure::NoName))?;
    let bytes = client::exchange(configuration, &query).map_err(|_| Asked::Silent)?;
    let response = message::parse(&bytes, &query).ok_or(Asked::Failed(Failure::TryAgain))?;
    let found = response.addresses();
    match found.first() {
        Some((_, owner)) => {
            Ok(Found { canonical: owner.to_string(), addresses: found.iter().map(|&(a, _)| a).collect() })
        }
        None if response.code == message::NO_ERROR => Err(Asked::Failed(Failure::NoData)),
        None => Err(Asked::Failed(Failure::NoName)),
    }
}

/// The name under which the names of an address are found (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(a) => {
            let [a, b, c, d] = a.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(a) => {
            let nibbles = a.octets().into_iter().rev().map(|b| format!("{:x}.{:x}.", b & 15, b >> 4));
            nibbles.collect::<String>() + "ip6.arpa"
        }
    }
}

/// The names of an address: hosts, then DNS.
pub fn names(address: IpAddr) -> Result<Vec<String>, Failure> {
    if let Some(names) = hosts::names(address) {
        return Ok(names);
    }
    let scoped = matches!(address, IpAddr::V6(a) if needs_zone(a));
    if address.is_loopback() || scoped {
        return Err(Failure::NoName);
    }
    let name = reverse(address);
    let query = message::query(client::random_id(), &name, message::TYPE_PTR, message::CLASS_IN)
        .ok_or(Failure::NoName)?;
    let bytes = client::exchange(&configuration::read(), &query).map_err(|_| Failure::TryAgain)?;
    let response = message::parse(&bytes, &query).ok_or(Failure::TryAgain)?;
    match response.names() {
        names if names.is_empty() => Err(Failure::NoName),
        names => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_backwards() {
        assert_eq!(reverse("10.1.2.3".parse().unwrap()), "3.2.1.10.in-addr.arpa");
        // RFC 3596 §2.5.
        assert_eq!(
            reverse("4321:0:1:2:3:4:567:89ab".parse().unwrap()),
            "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa"
        );
    }
}
