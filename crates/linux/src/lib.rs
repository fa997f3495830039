//! The live world: what a process of a stack needs of the kernel, and the processes themselves.
//!
//! [`serve`] runs one server's loop, [`supervisor`] the process that starts and watches them all,
//! [`devices`] are the network devices. What is decided comes from the engines and from `control`;
//! this crate carries it out.

mod bell;
pub mod capture;
pub mod custodian;
pub mod descriptors;
pub mod devices;
mod error;
pub mod futex;
pub mod host;
pub mod inject;
pub mod io_uring;
pub mod keeper;
pub mod memory;
pub mod monitor;
pub mod operator;
pub mod protocol;
pub mod sandbox;
pub mod scm;
pub mod serve;
pub mod stack_sensor;
pub mod supervisor;
pub mod ticks;

pub use error::{Doing, Error, Result};
