//! getaddrinfo.
//!
//! libc turns numbers into the program's list of results; a name is looked up here, and each of its
//! addresses handed to libc as a number. The lists are joined: libc frees them node by node.

use super::lookup::{self, Failure, Wanted};
use crate::{init, real};
use core::ffi::{CStr, c_char, c_int};
use core::net::IpAddr;
use libc::addrinfo;

fn code(failure: Failure) -> c_int {
    match failure {
        Failure::NoName => libc::EAI_NONAME,
        Failure::NoData => libc::EAI_NODATA,
        Failure::TryAgain => libc::EAI_AGAIN,
    }
}

/// `getaddrinfo`.
///
/// # Safety
/// As for libc's.
pub unsafe fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the program's call; `asked` is a copy with the same contract.
    unsafe {
        if node.is_null() || !init::is_active() {
            return real::getaddrinfo.get()(node, service, hints, result);
        }
        let mut asked: addrinfo = match hints.is_null() {
            // As glibc does without hints.
            true => addrinfo { ai_flags: libc::AI_V4MAPPED | libc::AI_ADDRCONFIG, ..core::mem::zeroed() },
            false => *hints,
        };
        let wanted = asked.ai_flags;
        // The stack, not the kernel, decides which addresses are configured.
        asked.ai_flags = (wanted | libc::AI_NUMERICHOST) & !libc::AI_ADDRCONFIG;
        let done = real::getaddrinfo.get()(node, service, &asked, result);
        if done != libc::EAI_NONAME || wanted & libc::AI_NUMERICHOST != 0 {
            return done;
        }
        let Ok(name) = CStr::from_ptr(node).to_str() else {
            return libc::EAI_NONAME;
        };
        let kinds = Wanted::by(asked.ai_family, wanted & libc::AI_V4MAPPED != 0);
        let found = match lookup::lookup(name, kinds) {
            Ok(found) => found,
            Err(failure) => return code(failure),
        };
        let numbers = numbers(&found.addresses, asked.ai_family, wanted);
        if numbers.is_empty() {
            return libc::EAI_NODATA;
        }
        asked.ai_flags &= !libc::AI_CANONNAME;
        let done = join(&numbers, service, &asked, result);
        if done == 0 && wanted & libc::AI_CANONNAME != 0 {
            let mut canonical = found.canonical.into_bytes();
            canonical.push(0);
            (**result).ai_canonname = libc::strdup(canonical.as_ptr().cast());
        }
        done
    }
}

/// The addresses of a family, as text for libc.
fn numbers(addresses: &[IpAddr], family: c_int, flags: c_int) -> Vec<Vec<u8>> {
    let mapped = family == libc::AF_INET6
        && flags & libc::AI_V4MAPPED != 0
        && (flags & libc::AI_ALL != 0 || addresses.iter().all(IpAddr::is_ipv4));
    addresses
        .iter()
        .filter_map(|address| match (address, family) {
            (IpAddr::V4(v4), libc::AF_INET6) if mapped => Some(format!("::ffff:{v4}")),
            (IpAddr::V4(_), libc::AF_INET6) | (IpAddr::V6(_), libc::AF_INET) => None,
            (address, _) => Some(address.to_string()),
        })
        .map(|text| {
            let mut bytes = text.into_bytes();
            bytes.push(0);
            bytes
        })
        .collect()
}

unsafe fn join(
    numbers: &[Vec<u8>],
    service: *const c_char,
    hints: &addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    let mut first: *mut addrinfo = core::ptr::null_mut();
    let mut end: *mut *mut addrinfo = &mut first;
    let mut done = libc::EAI_NONAME;
    for number in numbers {
        // SAFETY: libc's lists; `end` points at the null that ends the list so far.
        unsafe {
            done = real::getaddrinfo.get()(number.as_ptr().cast(), service, hints, end);
            if done != 0 {
                break;
            }
            while !(*end).is_null() {
                end = &raw mut (**end).ai_next;
            }
        }
    }
    if first.is_null() {
        return done;
    }
    // SAFETY: the program's pointer.
    unsafe { *result = first };
    0
}
