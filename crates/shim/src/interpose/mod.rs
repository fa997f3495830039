//! The symbols that programs call. Thin: each finds out whose descriptor it is and hands on.

mod constructor;
mod descriptors;
mod files;
mod interfaces;
mod io;
mod names;
mod polling;
mod programs;
pub mod raw;
mod raw_polling;
#[cfg(target_arch = "x86_64")]
mod signals;
mod sockets;
mod streams;
#[cfg(target_arch = "x86_64")]
mod threads;
mod variadic;

use constructor::ensure;
