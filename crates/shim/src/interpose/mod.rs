//! The symbols that programs call. Each finds out whether the descriptor is eft's and passes the
//! call on.

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
mod select;
#[cfg(target_arch = "x86_64")]
mod signals;
mod sockets;
mod streams;
#[cfg(target_arch = "x86_64")]
mod threads;
mod variadic;

use constructor::ensure;
