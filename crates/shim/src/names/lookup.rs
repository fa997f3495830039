//! From a name to addresses: hosts, then DNS.

use super::{client, configuration, hosts, message};
use core::net::IpAddr;

/// Why there is no address; as getaddrinfo tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Looks a name up.
pub fn lookup(name: &str) -> Result<Found, Failure> {
    if let Some((addresses, canonical)) = hosts::addresses(name) {
        return Ok(Found { addresses, canonical });
    }
    let by_dns = dns(name);
    match by_dns {
        Err(_) if is_own(name) => Ok(Found { addresses: own_addresses(), canonical: name.to_string() }),
        other => other,
    }
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

fn dns(name: &str) -> Result<Found, Failure> {
    let configuration = configuration::read();
    let mut failure = Failure::NoName;
    for candidate in configuration.candidates(name) {
        let Some(query) = message::query(client::random_id(), &candidate, message::TYPE_A, message::CLASS_IN)
        else {
            continue;
        };
        let Ok(bytes) = client::exchange(&configuration, &query) else {
            // Asking for longer names would take as long again.
            return Err(Failure::TryAgain);
        };
        let Some(response) = message::parse(&bytes, &query) else {
            failure = Failure::TryAgain;
            continue;
        };
        let found = response.addresses();
        if let Some((_, owner)) = found.first() {
            return Ok(Found {
                canonical: owner.to_string(),
                addresses: found.iter().map(|&(a, _)| IpAddr::V4(a)).collect(),
            });
        }
        if response.code == message::NO_ERROR && failure == Failure::NoName {
            failure = Failure::NoData;
        }
    }
    Err(failure)
}

/// The names of an address: hosts, then DNS.
pub fn names(address: IpAddr) -> Result<Vec<String>, Failure> {
    if let Some(names) = hosts::names(address) {
        return Ok(names);
    }
    let IpAddr::V4(v4) = address else {
        return Err(Failure::NoName);
    };
    if v4.is_loopback() {
        return Err(Failure::NoName);
    }
    let [a, b, c, d] = v4.octets();
    let name = format!("{d}.{c}.{b}.{a}.in-addr.arpa");
    let query = message::query(client::random_id(), &name, message::TYPE_PTR, message::CLASS_IN)
        .ok_or(Failure::NoName)?;
    let bytes = client::exchange(&configuration::read(), &query).map_err(|_| Failure::TryAgain)?;
    let response = message::parse(&bytes, &query).ok_or(Failure::TryAgain)?;
    match response.names() {
        names if names.is_empty() => Err(Failure::NoName),
        names => Ok(names),
    }
}
