//! TCP_AO_ADD_KEY, TCP_AO_DEL_KEY, TCP_AO_INFO and TCP_AO_GET_KEYS (Linux's include/uapi/linux/tcp.h): keys by which TCP-AO
//! (RFC 5925) authenticates a stream's segments. They lie beside those of TCP_MD5SIG ([`super::signatures`]).

mod layout;
mod told;

pub use told::{get_keys, info};

use super::{is_connected, signatures};
use crate::address::Target;
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use crate::tcp_info;
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_channel::socket::signature_keys::{MAC_MAX, algorithm};
use eft_channel::socket::{AuthenticationStatus, AuthenticationWishes, KEY_BYTES_MAX, SignatureKey};
use layout::{add, del, info as info_opt, keys};
use libc::{EBUSY, EEXIST, EINVAL, EISCONN, EKEYREJECTED, EMSGSIZE, ENOENT};

/// No option is longer: that of all keys.
pub const LONGEST: usize = keys::LEN * keys::MOST;

pub const TCP_AO_ADD_KEY: c_int = 38;
pub const TCP_AO_DEL_KEY: c_int = 39;
const TCP_AO_INFO: c_int = 40;
const TCP_AO_GET_KEYS: c_int = 41;

const ADDRESS_LEN: usize = 128;
const NAME_LEN: usize = 64;
/// Of `keyflags`.
const FLAG_INTERFACE: u8 = 1;
const FLAG_EXCLUDE_OPTIONS: u8 = 2;
/// The first bits of the word of flags in all these structures.
const CURRENT: u32 = 1;
const NEXT: u32 = 2;

/// The names of algorithms, and ours; the first of one is what is told.
const ALGORITHMS: [(&[u8], u8); 3] = [
    (b"hmac(sha1)", algorithm::HMAC_SHA1),
    (b"cmac(aes128)", algorithm::AES_CMAC),
    (b"cmac(aes)", algorithm::AES_CMAC),
];

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

/// Bytes that an option has at least; `None` if it is none of these.
fn least(name: c_int) -> Option<usize> {
    match name {
        TCP_AO_ADD_KEY => Some(add::LEN),
        TCP_AO_DEL_KEY => Some(del::LEN),
        TCP_AO_INFO => Some(info_opt::LEN),
        _ => None,
    }
}

/// Refuses a value that is too short.
pub fn check(name: c_int, value: &[u8]) -> Result<()> {
    match least(name) {
        Some(least) if value.len() < least => Err(Errno(EINVAL)),
        _ => Ok(()),
    }
}

/// Whether an option of an undecided socket makes it eft's: a key for peers that are reached through the stack, or settings.
pub fn is_for_stack(level: c_int, name: c_int, value: &[u8]) -> bool {
    level == libc::IPPROTO_TCP
        && least(name).is_some_and(|least| value.len() >= least)
        && (name == TCP_AO_INFO || matches!(signatures::target(value), Ok(Target::Eft(_))))
}

/// Whether an undecided socket has none of what this option tells: whatever it is told makes it eft's.
pub fn is_absent(level: c_int, name: c_int) -> bool {
    level == libc::IPPROTO_TCP && matches!(name, TCP_AO_INFO | TCP_AO_GET_KEYS)
}

/// Bytes into which `getsockopt` writes: TCP_AO_GET_KEYS takes the length of one structure, and in it how many there is room for.
pub fn room(level: c_int, name: c_int, first: &[u8]) -> usize {
    match (level, name) {
        (libc::IPPROTO_TCP, TCP_AO_GET_KEYS) if first.len() >= keys::LEN => {
            (word(first, keys::COUNT) as usize).clamp(1, keys::MOST) * keys::LEN
        }
        _ => first.len(),
    }
}

/// A peer, or several, as the keys have it.
struct Peer {
    target: Target,
    address: WireAddress,
    prefix_len: u8,
}

/// Reads an address and the length of its prefix; what Linux finds wrong is EINVAL.
fn peer(socket: &Socket, value: &[u8], prefix: u8) -> Result<Peer> {
    let invalid = Errno(EINVAL);
    let family = if socket.has(bit::INET6) { libc::AF_INET6 } else { libc::AF_INET };
    if signatures::family(value) != family || value[2..4] != [0, 0] {
        return Err(invalid);
    }
    let target = signatures::target(value)?;
    let address = match target {
        Target::Eft(endpoint) => endpoint.address,
        _ => IpAddr::from([127, 0, 0, 1]),
    };
    let before: u8 = if address.is_ipv4() { 96 } else { 0 };
    if prefix > 128 - before || address.is_unspecified() != (prefix == 0) {
        return Err(invalid);
    }
    let (wire, prefix_len) = (WireAddress::from(address), before + prefix);
    let beyond = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
    match u128::from_be_bytes(wire.0) & beyond {
        0 => Ok(Peer { target, address: wire, prefix_len }),
        _ => Err(invalid),
    }
}

/// Whether two keys are for a common peer.
fn overlap(a: &SignatureKey, b: &SignatureKey) -> bool {
    a.is_for(b.address) || b.is_for(a.address)
}

fn all(socket: &Socket) -> Vec<SignatureKey> {
    signatures::all_of(&socket.page, socket.has(bit::LISTENING))
}

/// What is in use: of a connection what its transport says, else what is wished.
fn in_use(socket: &Socket, wishes: &AuthenticationWishes) -> (Option<u8>, Option<u8>, AuthenticationStatus) {
    if is_connected(socket) {
        tcp_info::refresh(socket);
        if let Some(status) = socket.page.authentication_status() {
            return (Some(status.current), Some(status.next), status);
        }
    }
    (wishes.current, wishes.next, AuthenticationStatus::default())
}

/// `setsockopt`.
pub fn set(socket: &Socket, name: c_int, value: &[u8]) -> Result<()> {
    check(name, value)?;
    match name {
        TCP_AO_ADD_KEY => add_key(socket, value),
        TCP_AO_DEL_KEY => delete_key(socket, value),
        _ => set_info(socket, value),
    }
}

fn refuse_for_listener(socket: &Socket, flags: u32) -> Result<()> {
    match socket.has(bit::LISTENING) && flags & (CURRENT | NEXT) != 0 {
        true => Err(Errno(EINVAL)),
        false => Ok(()),
    }
}

/// Before the first key of a connection: it is too late.
fn refuse_late(socket: &Socket) -> Result<()> {
    match is_connected(socket) && !all(socket).iter().any(SignatureKey::is_ao) {
        true => Err(Errno(EISCONN)),
        false => Ok(()),
    }
}

fn read_key(socket: &Socket, value: &[u8]) -> Result<(Target, SignatureKey)> {
    let invalid = Errno(EINVAL);
    let peer = peer(socket, value, value[add::PREFIX])?;
    let len = value[add::KEY_LEN] as usize;
    let flags = value[add::KEY_FLAGS];
    let of_interface = flags & FLAG_INTERFACE != 0 || word(value, add::INTERFACE) != 0;
    let reserved = word(value, add::FLAGS) & !(CURRENT | NEXT) != 0
        || value[add::RESERVED..add::RESERVED + 2] != [0, 0]
        || flags & !FLAG_EXCLUDE_OPTIONS != 0;
    if len == 0 || len > KEY_BYTES_MAX || of_interface || reserved {
        return Err(invalid);
    }
    let name = value[add::NAME..add::NAME + NAME_LEN].split(|&b| b == 0).next().unwrap_or(&[]);
    let known = ALGORITHMS.iter().find(|(known, _)| *known == name);
    let (_, algorithm) = known.ok_or(Errno(ENOENT))?;
    let mac_len = match value[add::MAC_LEN] {
        0 => MAC_MAX as u8,
        len if len as usize > MAC_MAX => return Err(Errno(EMSGSIZE)),
        len => len,
    };
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..len].copy_from_slice(&value[add::KEY..add::KEY + len]);
    let key = SignatureKey {
        address: peer.address,
        prefix_len: peer.prefix_len,
        len: len as u8,
        algorithm: *algorithm,
        send_id: value[add::SEND_ID],
        receive_id: value[add::RECEIVE_ID],
        mac_len,
        excludes_options: (flags & FLAG_EXCLUDE_OPTIONS != 0) as u8,
        reserved: [0; 9],
        bytes,
    };
    Ok((peer.target, key))
}

fn add_key(socket: &Socket, value: &[u8]) -> Result<()> {
    let (target, key) = read_key(socket, value)?;
    let flags = word(value, add::FLAGS);
    refuse_for_listener(socket, flags)?;
    refuse_late(socket)?;
    let is_foreign = is_connected(socket) && !key.is_for(socket.page.remote().address.into());
    let Target::Eft(_) = target else {
        // The shadow's, if the kernel has TCP-AO.
        return Ok(());
    };
    if is_foreign {
        return Err(Errno(EINVAL));
    }
    for other in all(socket).iter().filter(|other| overlap(other, &key)) {
        if !other.is_ao() {
            return Err(Errno(EKEYREJECTED));
        }
        if other.send_id == key.send_id || other.receive_id == key.receive_id {
            return Err(Errno(EEXIST));
        }
    }
    signatures::change(socket, |_| false, Some(key))?;
    let chosen = |flag, id| (flags & flag != 0).then_some(id);
    choose(socket, chosen(CURRENT, key.send_id), chosen(NEXT, key.receive_id));
    Ok(())
}

/// Wishes for other keys; `None` leaves one as it is.
fn choose(socket: &Socket, current: Option<u8>, next: Option<u8>) {
    let page = &socket.page;
    let mut wishes = page.authentication_wishes();
    if is_connected(socket) {
        wishes.choose(current, next);
    } else {
        // Of a socket without connection both are kept until it has one.
        wishes.choose(current.or(wishes.current), next.or(wishes.next));
    }
    page.set_authentication_wishes(&wishes);
    crate::domain::notify(socket);
}

/// The keys that a structure names, each of which must exist.
fn named(keys: &[SignatureKey], flags: u32, current: u8, next: u8) -> Result<(Option<u8>, Option<u8>)> {
    let current = (flags & CURRENT != 0).then_some(current);
    let next = (flags & NEXT != 0).then_some(next);
    let exists = |wanted: Option<u8>, id: fn(&SignatureKey) -> u8| {
        wanted.is_none_or(|wanted| keys.iter().any(|key| key.is_ao() && id(key) == wanted))
    };
    match exists(current, |key| key.send_id) && exists(next, |key| key.receive_id) {
        true => Ok((current, next)),
        false => Err(Errno(ENOENT)),
    }
}

fn delete_key(socket: &Socket, value: &[u8]) -> Result<()> {
    let flags = word(value, del::FLAGS);
    let peer = peer(socket, value, value[del::PREFIX])?;
    let listens = socket.has(bit::LISTENING);
    let of_interface = value[del::KEY_FLAGS] & FLAG_INTERFACE != 0 || word(value, del::INTERFACE) != 0;
    let reserved = flags & !(CURRENT | NEXT | del::LATER) != 0
        || value[del::RESERVED..del::RESERVED + 2] != [0, 0]
        || value[del::KEY_FLAGS] & !FLAG_EXCLUDE_OPTIONS != 0;
    if of_interface || reserved || (flags & del::LATER != 0 && !listens) {
        return Err(Errno(EINVAL));
    }
    refuse_for_listener(socket, flags)?;
    let (send_id, receive_id) = (value[del::SEND_ID], value[del::RECEIVE_ID]);
    let is_it = |key: &SignatureKey| {
        key.is_ao()
            && (key.address, key.prefix_len) == (peer.address, peer.prefix_len)
            && (key.send_id, key.receive_id) == (send_id, receive_id)
    };
    let keys = all(socket);
    if !keys.iter().any(is_it) {
        return Err(Errno(ENOENT));
    }
    let rest: Vec<SignatureKey> = keys.into_iter().filter(|key| !is_it(key)).collect();
    let (current, next) = named(&rest, flags, value[del::CURRENT_KEY], value[del::NEXT_KEY])?;
    let (used, asked, _) = in_use(socket, &socket.page.authentication_wishes());
    if current.or(used) == Some(send_id) || next.or(asked) == Some(receive_id) {
        return Err(Errno(EBUSY));
    }
    choose(socket, current, next);
    signatures::change(socket, is_it, None)
}

fn set_info(socket: &Socket, value: &[u8]) -> Result<()> {
    let flags = word(value, 0);
    let allowed = CURRENT | NEXT | info_opt::REQUIRED | info_opt::ACCEPT_ICMP;
    // The counts cannot be set.
    if flags & !allowed != 0 || value[info_opt::RESERVED..info_opt::RESERVED + 2] != [0, 0] {
        return Err(Errno(EINVAL));
    }
    refuse_for_listener(socket, flags)?;
    refuse_late(socket)?;
    let keys = all(socket);
    if flags & info_opt::REQUIRED != 0 && keys.iter().any(|key| !key.is_ao()) {
        return Err(Errno(EKEYREJECTED));
    }
    let (current, next) = named(&keys, flags, value[info_opt::CURRENT_KEY], value[info_opt::NEXT_KEY])?;
    let page = &socket.page;
    let (required, accepts_icmp) = (flags & info_opt::REQUIRED != 0, flags & info_opt::ACCEPT_ICMP != 0);
    page.set_authentication_wishes(&AuthenticationWishes {
        required,
        accepts_icmp,
        ..page.authentication_wishes()
    });
    choose(socket, current, next);
    Ok(())
}
