//! The words of `eft addr`, `eft route` and `eft neigh`: a subset of those of iproute2.
//!
//! Promise: any words give a request or one line that says what is expected.

use anyhow::{Result, anyhow, bail};
use eft_base::address::MacText;
use eft_base::{Cidr, MacAddress};
use eft_control::network::{Change, Metrics, Route, RouteKey};
use std::net::IpAddr;
use std::str::FromStr;

/// What the words ask for.
#[derive(Debug, PartialEq)]
pub enum Asked {
    Show { device: Option<String> },
    Change(Change),
}

/// `[show [dev IF]] | add CIDR [dev IF] | del CIDR [dev IF] | flush [dev IF]`
pub fn address(words: &[String]) -> Result<Asked> {
    let (verb, mut rest) = verb(words)?;
    let address = match verb {
        Verb::Add | Verb::Delete => {
            Some(rest.value::<Cidr>("an address with its prefix length, as 10.0.5.2/24")?)
        }
        Verb::Show | Verb::Flush => None,
    };
    let mut interface = None;
    while let Some(word) = rest.next() {
        match word {
            "dev" => interface = Some(rest.value("a device")?),
            other if interface.is_none() && address.is_none() => interface = Some(other.into()),
            other => bail!("`{other}`: expected `dev` and a device"),
        }
    }
    Ok(match (verb, address) {
        (Verb::Add, Some(address)) => Asked::Change(Change::AddAddress { address, interface }),
        (Verb::Delete, Some(address)) => Asked::Change(Change::RemoveAddress { address, interface }),
        (Verb::Flush, _) => Asked::Change(Change::FlushAddresses { interface }),
        _ => Asked::Show { device: interface },
    })
}

/// `[show [dev IF]] | add|del (CIDR|default) [via ADDRESS] [dev IF] [metric N] [mtu N] [advmss N]
/// [initcwnd N] | flush`
pub fn route(words: &[String], ipv6: Option<bool>) -> Result<Asked> {
    let (verb, mut rest) = verb(words)?;
    let to = match verb {
        Verb::Add | Verb::Delete => {
            Some(rest.value::<String>("a destination: a network as 10.9.0.0/16, an address, or `default`")?)
        }
        Verb::Show | Verb::Flush => None,
    };
    let (mut gateway, mut interface, mut metric, mut metrics) = (None, None, None, Metrics::default());
    while let Some(word) = rest.next() {
        match word {
            "via" if to.is_some() => gateway = Some(rest.value::<IpAddr>("a gateway's address")?),
            "dev" => interface = Some(rest.value::<String>("a device")?),
            "metric" if to.is_some() => metric = Some(rest.value::<u32>("a number from 0 to 4294967295")?),
            "mtu" if verb == Verb::Add => metrics.mtu = Some(rest.value("bytes, at most 65535")?),
            "advmss" if verb == Verb::Add => metrics.advmss = Some(rest.value("bytes, from 88 to 65495")?),
            "initcwnd" if verb == Verb::Add => {
                metrics.initcwnd = Some(rest.value("segments, from 1 to 65535")?);
            }
            other if to.is_some() => {
                bail!(
                    "`{other}`: expected `via`, `dev`, `metric`, or `mtu`, `advmss`, `initcwnd` of a new route"
                )
            }
            other => bail!("`{other}`: expected `dev`"),
        }
    }
    let Some(to) = to else {
        return Ok(match verb {
            Verb::Flush if interface.is_some() => {
                bail!("`flush` takes no device: it removes all configured routes")
            }
            Verb::Flush => Asked::Change(Change::FlushRoutes { ipv6 }),
            _ => Asked::Show { device: interface },
        });
    };
    let destination = destination(&to, gateway, ipv6)?;
    Ok(Asked::Change(match verb {
        Verb::Add => {
            // As Linux: routes of IPv6 have 1024 unless they say otherwise.
            let usual = if destination.address.is_ipv6() { 1024 } else { 0 };
            let metric = metric.unwrap_or(usual);
            Change::AddRoute(Route { destination, gateway, interface, metric, metrics })
        }
        _ => Change::RemoveRoute(RouteKey { destination, gateway, interface, metric }),
    }))
}

/// `[show [dev IF]] | add ADDRESS lladdr MAC [dev IF] | del ADDRESS [dev IF] | flush [dev IF]`
pub fn neighbour(words: &[String]) -> Result<Asked> {
    let (verb, mut rest) = verb(words)?;
    let address = match verb {
        Verb::Add | Verb::Delete => Some(rest.value::<IpAddr>("a neighbour's address")?),
        Verb::Show | Verb::Flush => None,
    };
    let (mut mac, mut interface) = (None, None);
    while let Some(word) = rest.next() {
        match word {
            "lladdr" if address.is_some() => {
                mac = Some(rest.value::<MacAddress>("a MAC, as 02:00:00:00:00:01")?);
            }
            "dev" => interface = Some(rest.value("a device")?),
            other if address.is_some() => bail!("`{other}`: expected `lladdr` or `dev`"),
            other => bail!("`{other}`: expected `dev`"),
        }
    }
    Ok(match (verb, address, mac) {
        (Verb::Add, Some(address), Some(mac)) => {
            Asked::Change(Change::AddNeighbour { address, mac: MacText(mac), interface })
        }
        (Verb::Add, ..) => bail!("expected `lladdr` and a MAC"),
        (Verb::Delete, Some(address), _) => Asked::Change(Change::RemoveNeighbour { address, interface }),
        (Verb::Flush, ..) => Asked::Change(Change::FlushNeighbours { interface }),
        _ => Asked::Show { device: interface },
    })
}

fn destination(text: &str, gateway: Option<IpAddr>, ipv6: Option<bool>) -> Result<Cidr> {
    if text == "default" {
        let six = gateway.map_or(ipv6.unwrap_or(false), |gateway| gateway.is_ipv6());
        let address = if six { IpAddr::from([0; 16]) } else { IpAddr::from([0; 4]) };
        return Ok(Cidr { address, prefix_len: 0 });
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Cidr { address, prefix_len: if address.is_ipv4() { 32 } else { 128 } });
    }
    text.parse().map_err(|_| anyhow!("`{text}` is no network, no address, and not `default`"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verb {
    Show,
    Add,
    Delete,
    Flush,
}

struct Words<'a>(std::slice::Iter<'a, String>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }

    fn value<T: FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.next().ok_or_else(|| anyhow!("expected {what}"))?;
        word.parse().map_err(|_| anyhow!("`{word}`: expected {what}"))
    }
}

fn verb(words: &[String]) -> Result<(Verb, Words<'_>)> {
    let mut rest = Words(words.iter());
    let verb = match rest.next() {
        None | Some("show" | "list" | "ls") => Verb::Show,
        Some("add") => Verb::Add,
        Some("del" | "delete") => Verb::Delete,
        Some("flush") => Verb::Flush,
        Some(other) => bail!("`{other}`: expected show, add, del or flush"),
    };
    Ok((verb, rest))
}

#[cfg(test)]
mod tests;
