//! What `packetdrill --so_filename=` loads: packetdrill's scripts against a live stack.
//!
//! packetdrill runs as a program of the stack (`eft run`), so its system calls take the way of any program's: libeft.so, the
//! servers, the wire. This object hands them on ([`calls`], [`ask`]) and
//! is the other end of the wire ([`wire`]): it sends and sees packets at the Linux side of the stack's TAP device, and answers
//! for the gateway there ([`neighbour`]). What the device would cut is cut here ([`cut`]), so that packetdrill sees packets as
//! they are on a wire. Time is the wall's.
//!
//! `eft packetdrill` makes the stack and says by `--so_flags` which device it is, and the stack's address there.
//!
//! It never happens that a call goes to the kernel's sockets in place of the stack's: without libeft.so nothing is loaded.

pub mod ask;
pub mod calls;
pub mod cut;
pub mod interface;
pub mod neighbour;
pub mod settle;
pub mod wire;

use calls::Unusable;
use core::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use interface::Interface;
use wire::Wire;

/// # Safety
/// As packetdrill calls it: `flags` is null or a string, `interface` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    let flags = match flags.is_null() {
        true => String::new(),
        // SAFETY: by the caller.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned(),
    };
    // packetdrill locks all its memory from then on: with each socket the memory that it shares with the stack, all of it, which
    // takes longer than scripts allow.
    // SAFETY: touches no memory; without the locks it is only slower.
    unsafe { libc::munlockall() };
    let opened = calls::find().and_then(|calls| {
        let wire = Wire::open(&flags).map_err(|why| Unusable::Wire { flags, why })?;
        Ok(interface::filled(calls, Box::into_raw(Box::new(wire)).cast(), Netdev { free, send, receive }))
    });
    match opened {
        // SAFETY: by the caller.
        Ok(filled) => unsafe { interface.write(filled) },
        Err(reason) => {
            eprintln!("eft: {reason}");
            std::process::exit(1)
        }
    }
}

/// What packetdrill asks of the wire.
pub struct Netdev {
    pub free: unsafe extern "C" fn(*mut c_void),
    pub send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    pub receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
}

unsafe extern "C" fn free(wire: *mut c_void) {
    // SAFETY: made by `Box::into_raw` above, and packetdrill frees it once.
    drop(unsafe { Box::from_raw(wire.cast::<Wire>()) })
}

unsafe extern "C" fn send(wire: *mut c_void, packet: *const c_void, len: usize) -> c_int {
    // SAFETY: the wire lives until `free`, the packet for this call.
    let (wire, packet) =
        unsafe { (&*wire.cast::<Wire>(), core::slice::from_raw_parts(packet.cast::<u8>(), len)) };
    match wire.send(packet) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

unsafe extern "C" fn receive(
    wire: *mut c_void,
    buffer: *mut c_void,
    len: *mut usize,
    time: *mut c_longlong,
) -> c_int {
    // SAFETY: the wire lives until `free`, the buffer has the length that is told.
    unsafe {
        let packet = (&*wire.cast::<Wire>()).receive();
        let (bytes, at) = packet.unwrap_or_default();
        let fits = bytes.len().min(*len);
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>(), fits);
        *len = fits;
        *time = at;
    }
    0
}
