//! getifaddrs and the if_name functions.

use crate::interfaces::{self, Interface};
use crate::{errno, init, interface_list, real};
use core::ffi::{CStr, c_char, c_int, c_uint};
use libc::{if_nameindex, ifaddrs};

const NAME_LEN: usize = 16;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getifaddrs(to: *mut *mut ifaddrs) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe {
        if !init::is_active() {
            return real::getifaddrs.get()(to);
        }
        *to = interface_list::make();
        match (*to).is_null() {
            true => errno::int(Err(crate::sys::Errno(libc::ENOMEM))),
            false => 0,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn if_nametoindex(name: *const c_char) -> c_uint {
    // SAFETY: as above.
    unsafe {
        if !init::is_active() {
            return real::if_nametoindex.get()(name);
        }
        let name = CStr::from_ptr(name).to_bytes();
        let found = find(|i| i.name.as_bytes() == name);
        if found.is_none() {
            errno::set(crate::sys::Errno(libc::ENODEV));
        }
        found.map_or(0, |i| i.index)
    }
}

fn find(wanted: impl Fn(&Interface) -> bool) -> Option<Interface> {
    interfaces::all().into_iter().find(wanted)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn if_indextoname(index: c_uint, to: *mut c_char) -> *mut c_char {
    // SAFETY: as above.
    unsafe {
        if !init::is_active() {
            return real::if_indextoname.get()(index, to);
        }
        let Some(found) = find(|i| i.index == index) else {
            errno::set(crate::sys::Errno(libc::ENXIO));
            return core::ptr::null_mut();
        };
        put(&found.name, to);
        to
    }
}

unsafe fn put(name: &str, to: *mut c_char) {
    let mut padded = [0u8; NAME_LEN];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(padded.as_ptr(), to.cast(), NAME_LEN) };
}

/// The list and the names after it lie in one piece of memory.
#[unsafe(export_name = "if_nameindex")]
pub unsafe extern "C" fn nameindex() -> *mut if_nameindex {
    let all = interfaces::by_name();
    let list_len = (all.len() + 1) * size_of::<if_nameindex>();
    // SAFETY: sized for the list with its end, and the names.
    unsafe {
        let memory = libc::calloc(1, list_len + all.len() * NAME_LEN);
        if memory.is_null() {
            return core::ptr::null_mut();
        }
        let list: *mut if_nameindex = memory.cast();
        for (i, interface) in all.iter().enumerate() {
            let name = memory.cast::<c_char>().add(list_len + i * NAME_LEN);
            put(&interface.name, name);
            (*list.add(i)).if_index = interface.index;
            (*list.add(i)).if_name = name;
        }
        list
    }
}

#[unsafe(export_name = "if_freenameindex")]
pub unsafe extern "C" fn freenameindex(list: *mut if_nameindex) {
    // SAFETY: made above.
    unsafe { libc::free(list.cast()) };
}
