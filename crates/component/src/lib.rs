//! The frame: what a component is, the one server loop, the topology, the traits of a world.
//!
//! An engine implements [`Component`]; [`Server`] runs it over channels, live and simulated alike.
//! What differs between the worlds stands behind [`World`] and [`Device`]. Nothing here performs
//! I/O or reads a clock.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod component;
pub mod events;
pub mod fault;
mod frame_counters;
pub mod outbox;
pub mod scheduling;
pub mod server;
pub mod sockets;
mod suspicion;
pub mod topology;
pub mod transport;
pub mod world;

pub use component::{Component, Context, Occasion, Output};
pub use events::{Answer, Configure, FromWorld};
pub use outbox::Outbox;
pub use server::{Port, Server, Step};
pub use topology::Topology;
pub use world::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame, World};
