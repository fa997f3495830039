//! TCP_MD5SIG and TCP_MD5SIG_EXT (tcp(7)): keys that sign a stream's segments, by peer.

use crate::address::{self, Target};
use crate::socket::{Socket, bit};
use crate::sys::{Errno, Result};
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_channel::socket::signature_keys::algorithm;
use eft_channel::socket::{KEY_BYTES_MAX, Opt, SignatureKey, SocketPage, signature_keys};

/// `struct tcp_md5sig`: an address, padded to 128 bytes, flags, the length of a prefix, the length of the key, an interface, the key.
const ADDRESS_LEN: usize = 128;
const FLAGS_AT: usize = 128;
const PREFIX_AT: usize = 129;
const KEY_LEN_AT: usize = 130;
const KEY_AT: usize = 136;
const LEN: usize = KEY_AT + KEY_BYTES_MAX;

const TCP_MD5SIG_EXT: c_int = 32;
const FLAG_PREFIX: u8 = 1;
const FLAG_INTERFACE: u8 = 2;

/// What an option asks for: no key takes one away.
struct Asked {
    target: Target,
    prefix_len: u8,
    key: Option<SignatureKey>,
}

/// Whether an option is one of these, for peers that are reached through the stack.
pub fn is_for_stack(level: c_int, name: c_int, value: &[u8]) -> bool {
    let is_key = level == libc::IPPROTO_TCP && matches!(name, libc::TCP_MD5SIG | TCP_MD5SIG_EXT);
    is_key && value.len() >= LEN && matches!(target(value), Ok(Target::Eft(_)))
}

pub(super) fn target(value: &[u8]) -> Result<Target> {
    // SAFETY: the bytes are those of an address of this length.
    unsafe { address::read(value.as_ptr().cast(), ADDRESS_LEN as u32) }
}

pub(super) fn family(value: &[u8]) -> c_int {
    c_int::from(u16::from_ne_bytes([value[0], value[1]]))
}

fn parse(inet6: bool, name: c_int, value: &[u8]) -> Result<Asked> {
    let invalid = Errno(libc::EINVAL);
    if value.len() < LEN || family(value) != if inet6 { libc::AF_INET6 } else { libc::AF_INET } {
        return Err(invalid);
    }
    let target = target(value)?;
    let flags = if name == TCP_MD5SIG_EXT { value[FLAGS_AT] } else { 0 };
    if flags & FLAG_INTERFACE != 0 {
        return Err(invalid);
    }
    let address = match target {
        Target::Eft(endpoint) => endpoint.address,
        _ => IpAddr::from([0; 4]),
    };
    let before: u8 = if address.is_ipv4() { 96 } else { 0 };
    let prefix_len = if flags & FLAG_PREFIX != 0 { value[PREFIX_AT] } else { 128 - before };
    if prefix_len > 128 - before {
        return Err(invalid);
    }
    let len = u16::from_ne_bytes([value[KEY_LEN_AT], value[KEY_LEN_AT + 1]]) as usize;
    if len > KEY_BYTES_MAX {
        return Err(invalid);
    }
    let prefix_len = before + prefix_len;
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..len].copy_from_slice(&value[KEY_AT..KEY_AT + len]);
    let key = SignatureKey {
        address: WireAddress::from(address),
        prefix_len,
        len: len as u8,
        algorithm: algorithm::MD5,
        send_id: 0,
        receive_id: 0,
        mac_len: 0,
        excludes_options: 0,
        reserved: [0; 9],
        bytes,
    };
    Ok(Asked { target, prefix_len, key: (len > 0).then_some(key) })
}

/// The keys of a socket that does not listen.
pub fn all(page: &SocketPage) -> Vec<SignatureKey> {
    all_of(page, false)
}

/// The keys of any socket.
pub fn all_of(page: &SocketPage, listens: bool) -> Vec<SignatureKey> {
    let count = signature_keys::count(page.option(Opt::SignatureKeys)).min(page.signature_keys_max(listens));
    (0..count).map(|number| page.signature_key(number)).collect()
}

/// Gives a fresh socket the keys of another.
pub fn restore(page: &SocketPage, keys: &[SignatureKey]) {
    if keys.is_empty() {
        return;
    }
    keys.iter().enumerate().for_each(|(number, key)| page.write_signature_key(number, key));
    page.tell_signature_keys(keys.len());
}

/// `setsockopt`. Keys for peers on the loopback are those of the shadow socket, which has got them.
pub fn set(socket: &Socket, name: c_int, value: &[u8]) -> Result<()> {
    let Asked { target, prefix_len, key } = parse(socket.has(bit::INET6), name, value)?;
    let Target::Eft(endpoint) = target else { return Ok(()) };
    if let Some(key) = &key
        && all_of(&socket.page, socket.has(bit::LISTENING))
            .iter()
            .any(|other| other.is_ao() && (other.is_for(key.address) || key.is_for(other.address)))
    {
        return Err(Errno(libc::EKEYREJECTED));
    }
    let address = WireAddress::from(endpoint.address);
    let is_it = |key: &SignatureKey| !key.is_ao() && (key.address, key.prefix_len) == (address, prefix_len);
    change(socket, is_it, key)
}

/// Puts a key in the place of one, or beside the others, or takes one away; and tells the transport.
pub(super) fn change(
    socket: &Socket,
    is_it: impl Fn(&SignatureKey) -> bool,
    key: Option<SignatureKey>,
) -> Result<()> {
    let _guard = socket.lock_send()?;
    let page = &socket.page;
    let room = page.signature_keys_max(socket.has(bit::LISTENING));
    let count = signature_keys::count(page.option(Opt::SignatureKeys)).min(room);
    let same = (0..count).find(|number| is_it(&page.signature_key(*number)));
    let count = match (same, key) {
        (Some(number), Some(key)) => {
            page.write_signature_key(number, &key);
            count
        }
        (None, Some(_)) if count == room => return Err(Errno(libc::ENOMEM)),
        (None, Some(key)) => {
            page.write_signature_key(count, &key);
            count + 1
        }
        (Some(number), None) => {
            page.write_signature_key(number, &page.signature_key(count - 1));
            count - 1
        }
        (None, None) => return Err(Errno(libc::ENOENT)),
    };
    page.tell_signature_keys(count);
    crate::domain::notify(socket);
    Ok(())
}
