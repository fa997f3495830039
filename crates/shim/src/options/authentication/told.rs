//! What `getsockopt` tells of TCP-AO's keys and counts.

use super::layout::{info, keys};
use super::{
    ADDRESS_LEN, ALGORITHMS, CURRENT, FLAG_EXCLUDE_OPTIONS, FLAG_INTERFACE, NEXT, all, in_use, overlap, peer,
    word,
};
use crate::address;
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use core::net::IpAddr;
use eft_channel::socket::{AuthenticationStatus, SignatureKey};
use libc::{EINVAL, ENOENT};

/// `getsockopt` of TCP_AO_INFO.
pub fn info(socket: &Socket) -> Result<[u8; info::LEN]> {
    let wishes = socket.page.authentication_wishes();
    if wishes.word() == 0 && !all(socket).iter().any(SignatureKey::is_ao) {
        return Err(Errno(ENOENT));
    }
    let (current, next, status) = in_use(socket, &wishes);
    let flag = |set: bool, flag| if set { flag } else { 0 };
    let flags = flag(current.is_some(), CURRENT)
        | flag(next.is_some(), NEXT)
        | flag(wishes.required, info::REQUIRED)
        | flag(wishes.accepts_icmp, info::ACCEPT_ICMP);
    let mut bytes = [0; info::LEN];
    bytes[..4].copy_from_slice(&flags.to_ne_bytes());
    bytes[info::CURRENT_KEY] = current.unwrap_or(0);
    bytes[info::NEXT_KEY] = next.unwrap_or(0);
    let counts = [status.good, status.bad, status.unknown, status.unsigned, status.icmp];
    for (to, count) in bytes[info::COUNTS..].chunks_exact_mut(8).zip(counts) {
        to.copy_from_slice(&count.to_ne_bytes());
    }
    Ok(bytes)
}

/// `getsockopt` of TCP_AO_GET_KEYS: `to` has what is asked for, in its first structure, and gets the keys, the last one first.
/// Returns the length of one.
pub fn get_keys(socket: &Socket, to: &mut [u8]) -> Result<usize> {
    let (Some(asked), true) = (to.get(..keys::LEN), to.len() >= keys::LEN) else {
        return Err(Errno(EINVAL));
    };
    let asked = asked.to_vec();
    let flags = u32::from(u16::from_ne_bytes([asked[keys::FLAGS], asked[keys::FLAGS + 1]]));
    let by_name = flags & (CURRENT | NEXT | keys::ALL) == 0;
    let of_interface = asked[keys::KEY_FLAGS] & FLAG_INTERFACE != 0 || word(&asked, keys::INTERFACE) != 0;
    let both = flags & keys::ALL != 0 && flags & (CURRENT | NEXT) != 0;
    if of_interface || both || flags & !(CURRENT | NEXT | keys::ALL) != 0 {
        return Err(Errno(EINVAL));
    }
    let mut all = all(socket);
    all.retain(SignatureKey::is_ao);
    let wishes = socket.page.authentication_wishes();
    if all.is_empty() && wishes.word() == 0 {
        return Err(Errno(ENOENT));
    }
    let wanted = if by_name { Some(peer(socket, &asked, asked[keys::PREFIX])?) } else { None };
    let (current, next, status) = in_use(socket, &wishes);
    let uses = |key: &SignatureKey| (current == Some(key.send_id), next == Some(key.receive_id));
    let is_wanted = |key: &SignatureKey| match &wanted {
        Some(peer) => {
            let asked_for = SignatureKey { address: peer.address, prefix_len: peer.prefix_len, ..*key };
            overlap(key, &asked_for)
                && (key.send_id, key.receive_id) == (asked[keys::SEND_ID], asked[keys::RECEIVE_ID])
        }
        None => {
            let (is_current, is_next) = uses(key);
            flags & keys::ALL != 0 || is_current && flags & CURRENT != 0 || is_next && flags & NEXT != 0
        }
    };
    let found: Vec<&SignatureKey> = all.iter().rev().filter(|key| is_wanted(key)).collect();
    for (to, key) in to.chunks_exact_mut(keys::LEN).zip(&found) {
        to.copy_from_slice(&told(socket, key, uses(key), &status));
    }
    to[keys::COUNT..keys::COUNT + 4].copy_from_slice(&(found.len() as u32).to_ne_bytes());
    Ok(keys::LEN)
}

fn told(
    socket: &Socket,
    key: &SignatureKey,
    (is_current, is_next): (bool, bool),
    status: &AuthenticationStatus,
) -> [u8; keys::LEN] {
    let mut bytes = [0; keys::LEN];
    let address = IpAddr::from(key.address);
    let endpoint = eft_base::Endpoint::new(address, 0);
    let (storage, len) = address::to_storage(endpoint, socket.has(bit::INET6));
    // SAFETY: the first bytes of an address are initialized, and no longer than its storage.
    let storage =
        unsafe { core::slice::from_raw_parts((&raw const storage).cast::<u8>(), len.min(ADDRESS_LEN)) };
    bytes[..storage.len()].copy_from_slice(storage);
    let name =
        ALGORITHMS.iter().find(|(_, known)| *known == key.algorithm).map_or(&b""[..], |(name, _)| name);
    bytes[keys::NAME..keys::NAME + name.len()].copy_from_slice(name);
    bytes[keys::KEY..keys::KEY + key.bytes().len()].copy_from_slice(key.bytes());
    let flags = is_current as u16 | ((is_next as u16) << 1);
    bytes[keys::FLAGS..keys::FLAGS + 2].copy_from_slice(&flags.to_ne_bytes());
    let before = if address.is_ipv4() { 96 } else { 0 };
    bytes[keys::SEND_ID] = key.send_id;
    bytes[keys::RECEIVE_ID] = key.receive_id;
    bytes[keys::PREFIX] = key.prefix_len.saturating_sub(before);
    bytes[keys::MAC_LEN] = key.mac_len;
    bytes[keys::KEY_FLAGS] = key.excludes_options * FLAG_EXCLUDE_OPTIONS;
    bytes[keys::KEY_LEN] = key.bytes().len() as u8;
    let ids = (key.send_id, key.receive_id);
    let counts = status.keys.iter().take(status.count.into()).find(|k| (k.send_id, k.receive_id) == ids);
    let (good, bad) = counts.map_or((0, 0), |counts| (counts.good, counts.bad));
    bytes[keys::COUNTS..keys::COUNTS + 8].copy_from_slice(&good.to_ne_bytes());
    bytes[keys::COUNTS + 8..].copy_from_slice(&bad.to_ne_bytes());
    bytes
}
