//! Checks a configuration, and fills the store from which servers get it.

use super::{DEVICES_MAX, DeviceConfig, StackConfig};
use crate::devices::DeviceSpec;
use crate::{Error, Result, host, operator};
use eft_base::address::{link_local, needs_zone, zone_of_nic};
use eft_base::{Cidr, WireAddress};
use eft_component::Commit;
use eft_control::store::Store;
use eft_messages::ComponentId;
use eft_messages::control::InterfaceInfo;
use std::net::IpAddr;
use zerocopy::IntoBytes;

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
    // Such a topology can be planned, but connections cannot be spread over several transports yet.
    if let Some(second) = config.topology.transports().into_iter().find(|id| id.instance > 0) {
        return Err(Error::Invalid(format!(
            "component `{second}`: a stack runs at most one tcp and one udp so far"
        )));
    }
    if config.devices.is_empty() || config.devices.len() > DEVICES_MAX {
        return Err(Error::Invalid(format!("a stack needs 1 to {DEVICES_MAX} devices")));
    }
    if !config.take_over && operator::connect(&config.name, &operator::control_path(&config.name)).is_ok() {
        return Err(Error::Busy(format!(
            "a stack named `{}` runs already: choose another --name, or take it over (--take-over)",
            config.name
        )));
    }
    for device in &config.devices {
        for a in &device.addresses {
            let mapped = matches!(a.address, IpAddr::V6(a) if a.to_ipv4_mapped().is_some());
            if a.address.is_loopback() || a.address.is_multicast() || a.address.is_unspecified() || mapped {
                return Err(Error::Invalid(format!("{a} cannot be a stack's address")));
            }
            if !a.is_host() {
                return Err(Error::Invalid(format!(
                    "{a} is the first or last address of its network, which no host may have"
                )));
            }
            if let Some(mtu) = config.mtu.filter(|mtu| a.address.is_ipv6() && *mtu < MTU6_MIN) {
                return Err(Error::Invalid(format!(
                    "{a}: --mtu {mtu} is less than the {MTU6_MIN} that IPv6 needs"
                )));
            }
            if host::owns(a.address) {
                return Err(Error::Busy(format!("{a} is in use: it is an address of this host")));
            }
        }
    }
    check_other_ends(config)?;
    let wanted: Vec<IpAddr> = config.devices.iter().flat_map(|d| &d.addresses).map(|a| a.address).collect();
    for other in operator::running_stacks().into_iter().filter(|other| *other != config.name) {
        let Ok((info, _)) = operator::ask(&other, &serde_json::json!({ "op": "info" })) else { continue };
        let text = info["devices"].to_string();
        for a in &wanted {
            if text.contains(&format!("\"{a}/")) {
                return Err(Error::Busy(format!("{a} is in use: stack `{other}` has it")));
            }
        }
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
    let tap = config.devices.iter().find(|d| matches!(d.spec, DeviceSpec::Tap(_)));
    let shared = tap.map_or(&[][..], |d| &d.addresses);
    if let Some(host) = hosts.iter().find(|host| !shared.iter().any(|a| a.contains(host.address))) {
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

/// All addresses of a device: an interface that speaks IPv6 has a link-local one, too.
pub(super) fn addresses_of(d: &DeviceConfig) -> Vec<Cidr> {
    let mut all = d.addresses.clone();
    let is_link_local = |a: IpAddr| matches!(a, IpAddr::V6(a) if needs_zone(a));
    if all.iter().any(|a| a.address.is_ipv6()) && !all.iter().any(|a| is_link_local(a.address)) {
        all.push(Cidr { address: link_local(d.mac).into(), prefix_len: 64 });
    }
    all
}

fn octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

/// Fills the store from the command line.
pub(super) fn configuration(config: &StackConfig) -> Store {
    let mut store = Store::default();
    store.subscribe("ip", ComponentId::IP);
    store.subscribe("filter", ComponentId::FILTER);
    store.subscribe(Commit::KEY, ComponentId::FILTER);
    store.subscribe("info", ComponentId::SOCKETS);
    for n in 0..config.devices.len() {
        store.subscribe("interfaces", ComponentId::nic(n as u8));
    }
    for peer in [ComponentId::FILTER, ComponentId::IP] {
        store.subscribe("interfaces", peer);
    }
    for peer in config.topology.transports() {
        store.subscribe("addresses", peer);
        store.subscribe("ecn", peer);
        store.subscribe("fastopen", peer);
        store.subscribe("fastopen-key", peer);
        store.subscribe("timestamps", peer);
        store.subscribe("min-tso-segs", peer);
        store.subscribe(Commit::KEY, peer);
    }
    let transports: Vec<String> = config.topology.transports().iter().map(|t| format!("\"{t}\"")).collect();
    let mut ip = format!("transports = [{}]\n", transports.join(", "));
    let (mut addresses, mut interfaces) = (String::new(), String::new());
    let mut info = WireAddress::from(config.nameserver.unwrap_or(IpAddr::from([0, 0, 0, 0]))).0.to_vec();
    for (i, d) in config.devices.iter().enumerate() {
        let list: Vec<String> = d.addresses.iter().map(|a| format!("\"{a}\"")).collect();
        ip += &format!(
            "[[interface]]\nindex = {i}\nname = \"{}\"\naddresses = [{}]\n",
            d.interface,
            list.join(", ")
        );
        interfaces += &format!("{i} {}\n", d.interface);
        for a in addresses_of(d) {
            addresses += &format!("{a}\n");
            let mut name = [0; 16];
            let n = d.interface.len().min(15);
            name[..n].copy_from_slice(&d.interface.as_bytes()[..n]);
            let record = InterfaceInfo {
                name,
                address: a.address.into(),
                mac: d.mac.0,
                mtu: d.mtu,
                prefix_len: a.prefix_len,
                up: 1,
                index: zone_of_nic(i as u8),
                gateway: config.gateways.iter().find(|g| a.contains(**g)).map_or([0; 4], |g| octets(*g)),
            };
            info.extend_from_slice(record.as_bytes());
        }
    }
    for gateway in &config.gateways {
        let all = if gateway.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        ip += &format!("[[route]]\ndestination = \"{all}\"\ngateway = \"{gateway}\"\n");
    }
    store.publish("ip", ip.into_bytes());
    store.publish("addresses", addresses.into_bytes());
    store.publish("ecn", config.ecn.into());
    store.publish("fastopen", config.fastopen.clone().into());
    store.publish("fastopen-key", config.fastopen_key.clone().into());
    store.publish("timestamps", config.timestamps.into());
    store.publish("min-tso-segs", config.min_tso_segs.to_string().into());
    if config.commit == Commit::Off {
        store.publish(Commit::KEY, config.commit.name().into());
    }
    store.publish("interfaces", interfaces.into_bytes());
    store.publish("info", info);
    // The filter must be told that there are no rules yet: until then it lets nothing through.
    store.publish("filter", Vec::new());
    store
}
