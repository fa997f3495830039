//! Supervisor and store: decisions only, no system calls.
//!
//! [`accusation`] decides which server is replaced when one accuses another, [`plan`] which segments exist and who may
//! map them, [`restart`] what to do about a death, [`hang`] whether a server makes progress; [`network`] which addresses and
//! routes a stack has after an operator's change; [`readiness`] when one is ready whose addresses come from the network; [`store`] keeps opaque bytes by key. The live supervisor (in the linux crate) carries the decisions out. Nothing here parses anything that
//! an application or the network sent.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod accusation;
pub mod hang;
pub mod network;
pub mod plan;
pub mod readiness;
pub mod restart;
pub mod store;
