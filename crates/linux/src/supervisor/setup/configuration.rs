//! Checks a configuration, and fills the store from which servers get it.

use super::{DEVICES_MAX, StackConfig};
use crate::supervisor::kept::{AUTOCONF, COOKIE_SECRET, IDENTITY};
use crate::{Doing, Error, Result, host, operator};
use eft_base::{Cidr, PortShare, Protection};
use eft_control::store::Store;
use eft_messages::{ComponentId, Role};
use std::net::IpAddr;

/// RFC 8200 §5.
const MTU6_MIN: u16 = 1280;

pub(super) fn check(config: &StackConfig) -> Result<()> {
    let name_ok = !config.name.is_empty()
        && config.name.len() <= 32
        && config.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !name_ok {
        return Err(Error::Invalid(format!(
            "`{}` is no stack name: use 1 to 32 letters, digits, `-` or `_`",
            config.name
        )));
    }
    if config.devices.is_empty() || config.devices.len() > DEVICES_MAX {
        return Err(Error::Invalid(format!("a stack needs 1 to {DEVICES_MAX} devices")));
    }
    if !config.take_over && operator::is_running(&config.name) {
        return Err(Error::Busy(format!(
            "a stack named `{}` runs already: choose another --name, or take it over (--take-over)",
            config.name
        )));
    }
    for device in &config.devices {
        for a in &device.addresses {
            check_address(a, config.mtu)?;
        }
        let learns_ipv6 = device.auto.iter().any(|method| method.needs_ipv6());
        if let Some(mtu) = config.mtu.filter(|mtu| learns_ipv6 && *mtu < MTU6_MIN) {
            return Err(Error::Invalid(format!("--mtu {mtu} is less than the {MTU6_MIN} that IPv6 needs")));
        }
    }
    check_other_ends(config)?;
    config
        .devices
        .iter()
        .flat_map(|d| &d.addresses)
        .try_for_each(|a| operator::check_free(&config.name, a.address))
}

/// Whether a stack may have this address on a device with this MTU.
pub(in crate::supervisor) fn check_address(a: &Cidr, mtu: Option<u16>) -> Result<()> {
    let mapped = matches!(a.address, IpAddr::V6(a) if a.to_ipv4_mapped().is_some());
    if a.address.is_loopback() || a.address.is_multicast() || a.address.is_unspecified() || mapped {
        return Err(Error::Invalid(format!("{a} cannot be a stack's address")));
    }
    if !a.is_host() {
        return Err(Error::Invalid(format!(
            "{a} is the first or last address of its network, which no host may have"
        )));
    }
    if let Some(mtu) = mtu.filter(|mtu| a.address.is_ipv6() && *mtu < MTU6_MIN) {
        return Err(Error::Invalid(format!("{a}: --mtu {mtu} is less than the {MTU6_MIN} that IPv6 needs")));
    }
    if host::owns(a.address) {
        return Err(Error::Busy(format!("{a} is in use: it is an address of this host")));
    }
    Ok(())
}

/// Checks that the stack's gateways and its host side are not itself, and that it can reach them.
fn check_other_ends(config: &StackConfig) -> Result<()> {
    let own = || config.devices.iter().flat_map(|d| &d.addresses);
    let hosts = &config.host_addresses;
    if let Some(host) = hosts.iter().find(|host| own().any(|a| a.address == host.address)) {
        return Err(Error::Invalid(format!("--host-address {host} is the stack's own address")));
    }
    // The host address goes to the first TAP device, so it must be in one of that device's networks.
    let tap = config.devices.iter().find(|d| d.spec.tap().is_some());
    let shared = tap.map_or(&[][..], |d| &d.addresses);
    // A device that learns its networks may turn out to be in this one.
    let learns = tap.is_some_and(|d| !d.auto.is_empty());
    if let Some(host) = hosts.iter().find(|host| !learns && !shared.iter().any(|a| a.contains(host.address)))
    {
        return Err(Error::Invalid(match tap {
            None => format!("--host-address {host}: there is no TAP device to have it"),
            Some(d) => format!("--host-address {host} is in none of the networks of {}", d.text),
        }));
    }
    for (i, &gateway) in config.gateways.iter().enumerate() {
        if own().any(|a| a.address == gateway) {
            return Err(Error::Invalid(format!("--gateway {gateway} is the stack's own address")));
        }
        if !own().any(|a| a.contains(gateway)) {
            return Err(Error::Invalid(format!("--gateway {gateway} is in none of the stack's networks")));
        }
        if config.gateways[..i].iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            return Err(Error::Invalid(format!("--gateway {gateway} is the second one of its IP version")));
        }
    }
    Ok(())
}

/// Fills the store from the command line, but for addresses and routes ([`super::network`]).
pub(super) fn configuration(config: &StackConfig) -> Store {
    let mut store = Store::default();
    for key in ["ip", AUTOCONF, IDENTITY] {
        store.subscribe(key, ComponentId::IP);
    }
    store.subscribe("filter", ComponentId::FILTER);
    store.subscribe("info", ComponentId::SOCKETS);
    store.subscribe("routes", ComponentId::SOCKETS);
    store.subscribe("fastopen", ComponentId::SOCKETS);
    store.subscribe("congestion", ComponentId::SOCKETS);
    for n in 0..config.devices.len() {
        store.subscribe("interfaces", ComponentId::nic(n as u8));
    }
    for peer in [ComponentId::FILTER, ComponentId::IP] {
        store.subscribe("interfaces", peer);
    }
    store.subscribe(PortShare::KEY, ComponentId::SOCKETS);
    let transports = config.topology.transports();
    let names: String = transports.iter().map(|id| format!("{id}\n")).collect();
    store.publish(PortShare::KEY, names.into_bytes());
    for peer in transports {
        store.subscribe(PortShare::KEY, peer);
        store.subscribe("addresses", peer);
        store.subscribe("ecn", peer);
        store.subscribe("fastopen", peer);
        store.subscribe("fastopen-key", peer);
        store.subscribe(COOKIE_SECRET, peer);
        store.subscribe("timestamps", peer);
        store.subscribe("min-tso-segs", peer);
        store.subscribe("congestion", peer);
        store.subscribe("slow-start", peer);
        store.subscribe("slow-start-after-idle", peer);
        store.subscribe("pacing", peer);
        store.subscribe("mtu-probing", peer);
        store.subscribe("tail-probes", peer);
    }
    store.publish("ecn", config.ecn.into());
    store.publish("fastopen", config.fastopen.clone().into());
    store.publish("fastopen-key", config.fastopen_key.clone().into());
    store.publish("timestamps", config.timestamps.into());
    store.publish("congestion", config.congestion.into());
    store.publish("slow-start", config.slow_start.into());
    store.publish("slow-start-after-idle", config.slow_start_after_idle.into());
    store.publish("pacing", config.pacing.into());
    store.publish("mtu-probing", config.mtu_probing.into());
    store.publish("tail-probes", config.tail_probes.into());
    store.publish("min-tso-segs", config.min_tso_segs.to_string().into());
    let components = config.topology.peers(config.devices.len());
    for peer in components.into_iter().chain([ComponentId::CORES]) {
        store.subscribe(Protection::KEY, peer);
    }
    if config.protection == Protection::Off {
        store.publish(Protection::KEY, config.protection.name().into());
    }
    let names = config.devices.iter().enumerate().map(|(i, d)| format!("{i} {}\n", d.interface));
    store.publish("interfaces", names.collect::<String>().into_bytes());
    // The filter must be told that there are no rules yet: until then it lets nothing through.
    store.publish("filter", Vec::new());
    store
}

/// The secret for the Fast Open cookies of several instances of tcp: a client's next connection may be another instance's. One alone
/// makes its cookies of a secret of its own. With a keeper it stays the same as long as that one lives.
pub(super) fn cookie_secret(store: &Store, config: &StackConfig) -> Result<Option<Vec<u8>>> {
    let transports = config.topology.transports();
    if transports.iter().filter(|transport| transport.role == Role::Tcp).count() < 2 {
        return Ok(None);
    }
    if let Some((_, remembered)) = store.get(COOKIE_SECRET) {
        return Ok(Some(remembered.to_vec()));
    }
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).doing("getrandom")?;
    Ok(Some(format!("{:032x}", u128::from_ne_bytes(bytes)).into_bytes()))
}

#[cfg(test)]
mod tests;
