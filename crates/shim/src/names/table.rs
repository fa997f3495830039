//! The old interface: gethostbyname and gethostbyaddr, with their `hostent`.

use super::lookup::{self, Failure, Wanted};
use core::ffi::{c_char, c_int};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use libc::hostent;

pub const HOST_NOT_FOUND: c_int = 1;
pub const TRY_AGAIN: c_int = 2;
pub const NO_DATA: c_int = 4;
const NETDB_INTERNAL: c_int = -1;

/// What goes into a `hostent`.
pub struct Entry {
    name: String,
    aliases: Vec<String>,
    family: c_int,
    addresses: Vec<Vec<u8>>,
}

fn h_errno(failure: Failure) -> c_int {
    match failure {
        Failure::NoName => HOST_NOT_FOUND,
        Failure::NoData => NO_DATA,
        Failure::TryAgain => TRY_AGAIN,
    }
}

/// Looks a name (or number) up for one family.
pub fn by_name(name: &str, family: c_int) -> Result<Entry, c_int> {
    let literal = match family {
        libc::AF_INET => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        libc::AF_INET6 => name.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => return Err(HOST_NOT_FOUND),
    };
    let (addresses, canonical) = match literal {
        Some(address) => (vec![address], name.to_string()),
        None => {
            let found = lookup::lookup(name, Wanted::by(family, false)).map_err(h_errno)?;
            (found.addresses, found.canonical)
        }
    };
    let addresses: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address| match (address, family) {
            (IpAddr::V4(v4), libc::AF_INET) => Some(v4.octets().to_vec()),
            (IpAddr::V6(v6), libc::AF_INET6) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    if addresses.is_empty() {
        return Err(NO_DATA);
    }
    let aliases = match canonical.eq_ignore_ascii_case(name) {
        true => Vec::new(),
        false => vec![name.to_string()],
    };
    Ok(Entry { name: canonical, aliases, family, addresses })
}

/// Looks an address up.
pub fn by_address(bytes: &[u8], family: c_int) -> Result<Entry, c_int> {
    let address = match (family, bytes.len()) {
        (libc::AF_INET, 4) => <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok(),
        (libc::AF_INET6, 16) => <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok(),
        _ => None,
    };
    let names = lookup::names(address.ok_or(NETDB_INTERNAL)?).map_err(h_errno)?;
    let mut names = names.into_iter();
    Ok(Entry {
        name: names.next().ok_or(HOST_NOT_FOUND)?,
        aliases: names.collect(),
        family,
        addresses: vec![bytes.to_vec()],
    })
}

/// Cuts pieces from the program's buffer.
struct Room {
    at: *mut u8,
    left: usize,
}

impl Room {
    /// `None` if the buffer is too small.
    fn cut(&mut self, len: usize, align: usize) -> Option<*mut u8> {
        let skip = self.at.align_offset(align);
        if self.left < skip.checked_add(len)? {
            return None;
        }
        // SAFETY: within the buffer.
        unsafe {
            let piece = self.at.add(skip);
            self.at = piece.add(len);
            self.left -= skip + len;
            Some(piece)
        }
    }

    fn bytes(&mut self, bytes: &[u8], terminated: bool) -> Option<*mut c_char> {
        let piece = self.cut(bytes.len() + terminated as usize, 1)?;
        // SAFETY: just cut.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), piece, bytes.len());
            if terminated {
                *piece.add(bytes.len()) = 0;
            }
        }
        Some(piece.cast())
    }

    /// A null-terminated list of pointers, to be filled in.
    fn list(&mut self, len: usize) -> Option<*mut *mut c_char> {
        let size = size_of::<*mut c_char>();
        let list: *mut *mut c_char = self.cut((len + 1) * size, size)?.cast();
        // SAFETY: just cut.
        unsafe { *list.add(len) = core::ptr::null_mut() };
        Some(list)
    }
}

/// Lays an entry out in the program's buffer; `ERANGE` if that is too small.
///
/// # Safety
/// `buffer` must be valid for `len` bytes, `to` for a `hostent`.
pub unsafe fn fill(entry: &Entry, to: *mut hostent, buffer: *mut c_char, len: usize) -> Result<(), c_int> {
    let mut room = Room { at: buffer.cast(), left: len };
    let filled = (|| {
        let addresses = room.list(entry.addresses.len())?;
        let aliases = room.list(entry.aliases.len())?;
        for (i, address) in entry.addresses.iter().enumerate() {
            // SAFETY: within the list. Addresses are aligned for those who cast them.
            unsafe {
                let piece = room.cut(address.len(), 4)?;
                core::ptr::copy_nonoverlapping(address.as_ptr(), piece, address.len());
                *addresses.add(i) = piece.cast();
            }
        }
        for (i, alias) in entry.aliases.iter().enumerate() {
            // SAFETY: as above.
            unsafe { *aliases.add(i) = room.bytes(alias.as_bytes(), true)? };
        }
        Some(hostent {
            h_name: room.bytes(entry.name.as_bytes(), true)?,
            h_aliases: aliases,
            h_addrtype: entry.family,
            h_length: entry.addresses.first().map_or(0, Vec::len) as c_int,
            h_addr_list: addresses,
        })
    })();
    // SAFETY: by the caller.
    unsafe { *to = filled.ok_or(libc::ERANGE)? };
    Ok(())
}
