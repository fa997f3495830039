//! What can be wrong with a configuration. Each error is printed as one line.

use alloc::string::String;
use core::net::IpAddr;
use eft_base::{Cidr, MacAddress};
use thiserror::Error;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    #[error("not UTF-8")]
    NotUtf8,
    /// It is not TOML, or has an unknown key or value.
    #[error("{0}")]
    Syntax(String),
    #[error("transports: the names are tcp and udp; a second one is tcp1 or udp1")]
    UnknownTransport,
    #[error("interface {interface}: index must be below 255")]
    Index { interface: String },
    #[error("interface {interface}: index {index} is taken")]
    IndexTaken { interface: String, index: u8 },
    #[error("interface {0} is named twice")]
    InterfaceTwice(String),
    #[error("interface {interface}: {cidr} {why}")]
    Address { interface: String, cidr: Cidr, why: AddressError },
    #[error("address {0} is given twice")]
    AddressTwice(IpAddr),
    #[error("route to {to}: destination and gateway are of different families")]
    TwoFamilies { to: Cidr },
    #[error("route to {to}: gateway {gateway} lies in no interface's network")]
    GatewayInNoNetwork { to: Cidr, gateway: IpAddr },
    #[error("route to {to}: there is no interface {interface}")]
    RouteByNoInterface { to: Cidr, interface: String },
    #[error("route to {to}: the MTU is at least {least} bytes, not {mtu}")]
    RouteMtu { to: Cidr, mtu: u16, least: u16 },
    #[error("route to {to}: its MSS is from 88 to 65495 bytes, not {mss}")]
    RouteMss { to: Cidr, mss: u16 },
    #[error("route to {to}: its initial window has at least one segment")]
    RouteWindow { to: Cidr },
    #[error("route to {to}: it needs a gateway or an interface")]
    RouteToNowhere { to: Cidr },
    #[error("route to {to}: gateway {gateway} is not another host's address")]
    GatewayIsNobody { to: Cidr, gateway: IpAddr },
    #[error("neighbour {address}: there is no interface {interface}")]
    NeighbourByNoInterface { address: IpAddr, interface: String },
    #[error("neighbour {address}: {mac} is not one host's link address")]
    NoHostsMac { address: IpAddr, mac: MacAddress },
    #[error("neighbour {address}: that is not another host's address")]
    NeighbourIsNobody { address: IpAddr },
}

/// Why an interface may not have an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    #[error("is not the address of one host")]
    NoHost,
    #[error("must have a prefix length of at least 1")]
    NoPrefix,
    #[error("is the network's own or its broadcast address")]
    OfNetwork,
    #[error("is link-local and must have zeroes in its third and fourth byte")]
    Zone,
    #[error("is link-local and must have a prefix length of at least 64")]
    LinkLocalPrefix,
}
