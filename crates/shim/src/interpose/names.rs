//! getaddrinfo and the older name functions.

use crate::errno;
use crate::names::{addresses, client, configuration, message, reverse, table};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use libc::{addrinfo, hostent, size_t, sockaddr, socklen_t};

const STATIC_LEN: usize = 8192;

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    super::ensure();
    // SAFETY: the program's call, as are all below.
    unsafe { addresses::getaddrinfo(node, service, hints, result) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getnameinfo(
    from: *const sockaddr,
    from_len: socklen_t,
    host: *mut c_char,
    host_len: socklen_t,
    service: *mut c_char,
    service_len: socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { reverse::getnameinfo(from, from_len, host, host_len, service, service_len, flags) }
}

/// Answers one of the `_r` functions.
unsafe fn answer(
    found: Result<table::Entry, c_int>,
    to: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    result: *mut *mut hostent,
    h_errno: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        *result = core::ptr::null_mut();
        let entry = match found {
            Ok(entry) => entry,
            Err(code) => {
                *h_errno = code;
                // "Not found" is not a failure of the call.
                return if code == table::TRY_AGAIN { libc::EAGAIN } else { 0 };
            }
        };
        if let Err(code) = table::fill(&entry, to, buffer, len) {
            *h_errno = -1;
            errno::set(crate::sys::Errno(code));
            return code;
        }
        *result = to;
        *h_errno = 0;
        0
    }
}

unsafe fn text<'a>(name: *const c_char) -> &'a str {
    // SAFETY: as above.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname2_r(
    name: *const c_char,
    family: c_int,
    to: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    result: *mut *mut hostent,
    h_errno: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let found = table::by_name(text(name), family);
        answer(found, to, buffer, len, result, h_errno)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname_r(
    name: *const c_char,
    to: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    result: *mut *mut hostent,
    h_errno: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { gethostbyname2_r(name, libc::AF_INET, to, buffer, len, result, h_errno) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyaddr_r(
    address: *const c_void,
    address_len: socklen_t,
    family: c_int,
    to: *mut hostent,
    buffer: *mut c_char,
    len: size_t,
    result: *mut *mut hostent,
    h_errno: *mut c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let bytes = core::slice::from_raw_parts(address.cast::<u8>(), address_len as usize);
        let found = table::by_address(bytes, family);
        answer(found, to, buffer, len, result, h_errno)
    }
}

/// What the functions without `_r` return a pointer to.
struct Static {
    entry: UnsafeCell<hostent>,
    buffer: UnsafeCell<[u8; STATIC_LEN]>,
}

thread_local! {
    static RESULT: Static = const {
        Static {
            entry: UnsafeCell::new(hostent {
                h_name: core::ptr::null_mut(),
                h_aliases: core::ptr::null_mut(),
                h_addrtype: 0,
                h_length: 0,
                h_addr_list: core::ptr::null_mut(),
            }),
            buffer: UnsafeCell::new([0; STATIC_LEN]),
        }
    };
}

fn in_static(found: Result<table::Entry, c_int>) -> *mut hostent {
    RESULT.with(|place| {
        let mut result = core::ptr::null_mut();
        // SAFETY: this thread's own; the last call's result ends here, as documented.
        unsafe {
            let buffer = place.buffer.get().cast();
            let h_errno = __h_errno_location();
            answer(found, place.entry.get(), buffer, STATIC_LEN, &mut result, h_errno);
        }
        result
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent {
    // SAFETY: as above.
    in_static(table::by_name(unsafe { text(name) }, family))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname(name: *const c_char) -> *mut hostent {
    // SAFETY: as above.
    unsafe { gethostbyname2(name, libc::AF_INET) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyaddr(
    address: *const c_void,
    len: socklen_t,
    family: c_int,
) -> *mut hostent {
    // SAFETY: as above.
    let bytes = unsafe { core::slice::from_raw_parts(address.cast::<u8>(), len as usize) };
    in_static(table::by_address(bytes, family))
}

/// Sends a query as it is and copies the answer, as `res_send` does.
unsafe fn exchange(query: &[u8], to: *mut c_uchar, len: c_int) -> c_int {
    match client::exchange(&configuration::read(), query) {
        Ok(answer) => {
            let n = answer.len().min(len.max(0) as usize);
            // SAFETY: as above.
            unsafe { core::ptr::copy_nonoverlapping(answer.as_ptr(), to, n) };
            answer.len() as c_int
        }
        Err(errno) => {
            errno::set(errno);
            -1
        }
    }
}

unsafe fn query(name: &str, class: c_int, kind: c_int, to: *mut c_uchar, len: c_int) -> c_int {
    let id = client::random_id();
    let built = message::query(id, name, kind as u16, class as u16);
    // SAFETY: as above.
    unsafe {
        let n = match &built {
            Some(query) => exchange(query, to, len),
            None => -1,
        };
        let verdict = match n {
            n if n < 12 || len < 12 => Some(table::TRY_AGAIN),
            _ => match (*to.add(3) & 15, (*to.add(6), *to.add(7))) {
                (message::NAME_ERROR, _) => Some(table::HOST_NOT_FOUND),
                (_, (0, 0)) => Some(table::NO_DATA),
                _ => None,
            },
        };
        if let Some(code) = verdict {
            *__h_errno_location() = code;
            return -1;
        }
        n
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_query(
    name: *const c_char,
    class: c_int,
    kind: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { query(text(name), class, kind, to, len) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_search(
    name: *const c_char,
    class: c_int,
    kind: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    let mut n = -1;
    // SAFETY: as above.
    unsafe {
        for candidate in configuration::read().candidates(text(name)) {
            n = query(&candidate, class, kind, to, len);
            if n >= 0 {
                break;
            }
        }
    }
    n
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_nquery(
    _state: *mut c_void,
    name: *const c_char,
    class: c_int,
    kind: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { res_query(name, class, kind, to, len) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_nsearch(
    _state: *mut c_void,
    name: *const c_char,
    class: c_int,
    kind: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { res_search(name, class, kind, to, len) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_send(
    message: *const c_uchar,
    message_len: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    if message_len < 12 {
        return errno::int(Err(crate::sys::Errno(libc::EINVAL)));
    }
    // SAFETY: as above.
    unsafe {
        let query = core::slice::from_raw_parts(message, message_len as usize);
        exchange(query, to, len)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn res_nsend(
    _state: *mut c_void,
    message: *const c_uchar,
    message_len: c_int,
    to: *mut c_uchar,
    len: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { res_send(message, message_len, to, len) }
}
