//! The live world: what a process of a stack needs from the kernel, and the processes themselves.
//!
//! [`serve`] runs a server's loop, [`supervisor`] is the process that starts and watches all servers, and [`devices`]
//! are the network devices. The engines and `control` make the decisions; this crate carries them out.

mod bell;
pub mod capture;
pub mod custodian;
pub mod descriptors;
pub mod devices;
mod error;
pub mod fatal;
pub mod futex;
mod heap;
pub mod host;
pub mod inject;
pub mod io_uring;
pub mod keeper;
mod life;
pub mod memory;
pub mod monitor;
mod namespaces;
pub mod operator;
pub mod protocol;
pub mod rootless;
pub mod sandbox;
pub mod scm;
mod scrub;
pub mod security;
pub mod serve;
pub mod stack_sensor;
pub mod supervisor;
pub mod ticks;
mod warm;

pub use error::{Doing, Error, Result};
