//! Virtual machines of this host: finding them, measuring and placing their vCPUs.
//!
//! No stack is needed. [`discover`] finds guests, [`sense`] reads what their threads did, [`place`] sets affinities,
//! and [`session`] runs `eft-vcpu`'s scheduler over them.

pub mod discover;
pub mod kernel;
pub mod perf;
pub mod place;
pub mod qmp;
pub mod sense;
pub mod session;
pub mod siblings;
