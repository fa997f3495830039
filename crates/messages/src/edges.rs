//! All edges at once, for code that belongs to none of them.

use crate::codec::Encoded;
use crate::filter::{FilterToIp, IpToFilter};
use crate::nic::{IpToNic, NicToIp};
use crate::sockets::{SocketsToTransport, TransportToSockets};
use crate::transport::{IpToTransport, TransportToIp};
use crate::{ComponentId, Role};

/// Whether `line` is a message that `from` may send `to`.
pub fn is_message(from: ComponentId, to: ComponentId, line: &Encoded) -> bool {
    match (from.role, to.role) {
        (Role::Ip, Role::Filter) => IpToFilter::decode(line).is_some(),
        (Role::Filter, Role::Ip) => FilterToIp::decode(line).is_some(),
        (Role::Ip, Role::Nic) => IpToNic::decode(line).is_some(),
        (Role::Nic, Role::Ip) => NicToIp::decode(line).is_some(),
        (Role::Ip, to) if to.is_transport() => IpToTransport::decode(line).is_some(),
        (from, Role::Ip) if from.is_transport() => TransportToIp::decode(line).is_some(),
        (Role::Sockets, to) if to.is_transport() => SocketsToTransport::decode(line).is_some(),
        (from, Role::Sockets) if from.is_transport() => TransportToSockets::decode(line).is_some(),
        _ => false,
    }
}
