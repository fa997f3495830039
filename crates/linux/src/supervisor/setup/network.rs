//! Addresses and routes: what a stack begins with, and what servers, programs and the kernel are told of them.

use super::{DeviceConfig, InForce, StackConfig};
use crate::Result;
use crate::devices::DeviceSpec;
use crate::devices::packet::Silencer;
use crate::supervisor::kept::{IDENTITY, NETWORK};
use eft_autoconf::identity::Identity;
use eft_base::address::zone_of_nic;
use eft_base::{Cidr, WireAddress};
use eft_control::network::{Interface, Network, Route};
use eft_control::store::Store;
use eft_messages::control::{InterfaceInfo, RouteInfo};
use std::net::IpAddr;
use zerocopy::IntoBytes;

/// What the command line says of addresses and routes.
pub(super) fn network_of(config: &StackConfig) -> Network {
    let interfaces = config.devices.iter().map(|d| Interface {
        name: d.interface.clone(),
        addresses: d.addresses.clone(),
        auto: d.auto.clone(),
    });
    Network::with_gateways(interfaces.collect(), &config.gateways)
}

/// What a predecessor's operator had changed, if the devices are the same.
pub fn remembered(store: &Store, config: &StackConfig) -> Option<Network> {
    let mut network: Network = serde_json::from_slice(store.get(NETWORK)?.1).ok()?;
    let same = network.interfaces.iter().map(|i| &i.name).eq(config.devices.iter().map(|d| &d.interface));
    // An older eft did not write it.
    network.interfaces.iter_mut().zip(&config.devices).for_each(|(i, d)| i.auto.clone_from(&d.auto));
    same.then_some(network)
}

/// The secret from which the stack's identifiers are made (RFC 7217 §5): of the machine and the stack's name, so that its
/// addresses stay the same; on a machine without an identity as long as there is a keeper.
pub fn identity(store: &Store, stack: &str) -> Option<Vec<u8>> {
    if let Some((_, remembered)) = store.get(IDENTITY) {
        return Some(remembered.to_vec());
    }
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let machine = Identity::parse(machine.trim()).or_else(|| {
        let mut bytes = [0u8; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
        let bits = u128::from_ne_bytes(bytes);
        Some(Identity([(bits >> 64) as u64, bits as u64]))
    })?;
    Some(machine.of(stack).to_string().into_bytes())
}

/// Keeps the kernel from answering for the addresses.
pub fn silence(config: &StackConfig, network: &Network) -> Result<Vec<Silencer>> {
    let all = config.devices.iter().zip(&network.interfaces).filter(|_| !config.private);
    let silent = all.filter_map(|(d, i)| match &d.spec {
        DeviceSpec::Packet(interface) => {
            Some(Silencer::install(&config.name, interface, &i.all_addresses(d.mac)))
        }
        _ => None,
    });
    silent.collect()
}

/// What servers are told of addresses and routes: keys and values of the store.
pub(in crate::supervisor) fn of_network(
    config: &StackConfig,
    in_force: &InForce,
) -> Vec<(&'static str, Vec<u8>)> {
    let network = &in_force.network;
    let transports: Vec<String> = config.topology.transports().iter().map(ToString::to_string).collect();
    let mut addresses = String::new();
    let name_server = in_force.name_servers(config).first().copied();
    let mut info = WireAddress::from(name_server.unwrap_or(IpAddr::from([0, 0, 0, 0]))).0.to_vec();
    for (n, (i, d)) in network.interfaces.iter().zip(&config.devices).enumerate() {
        for a in i.all_addresses(d.mac) {
            addresses += &format!("{a}\n");
            info.extend_from_slice(record(network, n, d, a).as_bytes());
        }
    }
    let routes = network.routes.iter().filter_map(|r| {
        let index = zone_of_nic(network.device_of(r)? as u8);
        let (to, gateway) = (r.destination.address, r.gateway.unwrap_or(IpAddr::from([0; 4])));
        Some(RouteInfo {
            destination: to.into(),
            gateway: gateway.into(),
            metric: r.metric,
            index,
            prefix_len: r.destination.prefix_len,
            reserved: 0,
        })
    });
    let routes: Vec<u8> = routes.flat_map(|r| r.as_bytes().to_vec()).collect();
    vec![
        ("ip", network.ip_configuration(&transports).into_bytes()),
        ("addresses", addresses.into_bytes()),
        ("info", info),
        ("routes", routes),
    ]
}

/// What programs are told of one address.
fn record(network: &Network, n: usize, d: &DeviceConfig, a: Cidr) -> InterfaceInfo {
    let mut name = [0; 16];
    let len = d.interface.len().min(15);
    name[..len].copy_from_slice(&d.interface.as_bytes()[..len]);
    let default = |r: &&Route| r.destination.prefix_len == 0 && network.device_of(r) == Some(n);
    let gateways = network.routes.iter().filter(default).filter_map(|r| r.gateway);
    InterfaceInfo {
        name,
        address: a.address.into(),
        mac: d.mac.0,
        mtu: d.mtu,
        prefix_len: a.prefix_len,
        up: 1,
        index: zone_of_nic(n as u8),
        gateway: gateways.filter(|g| a.contains(*g)).map(octets).next().unwrap_or([0; 4]),
    }
}

fn octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}
