//! getnameinfo.

use super::lookup::{self, Failure};
use crate::address::{self, Target};
use crate::{init, real};
use core::ffi::{c_char, c_int};
use core::net::{IpAddr, Ipv4Addr};
use libc::{sockaddr, socklen_t};

/// `getnameinfo`.
///
/// # Safety
/// As for libc's.
pub unsafe fn getnameinfo(
    from: *const sockaddr,
    from_len: socklen_t,
    host: *mut c_char,
    host_len: socklen_t,
    service: *mut c_char,
    service_len: socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's call.
    unsafe {
        let real = |host, host_len, flags| {
            real::getnameinfo.get()(from, from_len, host, host_len, service, service_len, flags)
        };
        if host.is_null() || host_len == 0 || flags & libc::NI_NUMERICHOST != 0 || !init::is_active() {
            return real(host, host_len, flags);
        }
        let found = match address::read(from, from_len) {
            Ok(Target::Eft(endpoint)) => lookup::names(endpoint.address),
            Ok(Target::Loopback) => lookup::names(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            // Other families name no hosts through DNS (Unix sockets), or are not eft's.
            _ => return real(host, host_len, flags | libc::NI_NUMERICHOST),
        };
        let name = match found {
            Ok(names) => names.into_iter().next().unwrap_or_default(),
            Err(_) if flags & libc::NI_NAMEREQD == 0 => {
                return real(host, host_len, flags | libc::NI_NUMERICHOST);
            }
            Err(Failure::TryAgain) => return libc::EAI_AGAIN,
            Err(_) => return libc::EAI_NONAME,
        };
        if name.len() >= host_len as usize {
            return libc::EAI_OVERFLOW;
        }
        core::ptr::copy_nonoverlapping(name.as_ptr(), host.cast(), name.len());
        *host.add(name.len()) = 0;
        match service.is_null() || service_len == 0 {
            true => 0,
            false => real(core::ptr::null_mut(), 0, flags & !libc::NI_NAMEREQD),
        }
    }
}
