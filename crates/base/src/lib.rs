//! Nouns: time, ids, addresses, packet formats.
//!
//! Everything here is a plain value. This crate knows nothing of channels, components or worlds,
//! performs no I/O and reads no clock, so that every other crate may import it.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod address;
pub mod checksum;
pub mod component;
pub mod errno;
pub mod hash;
pub mod ids;
pub mod ports;
pub mod processor;
pub mod protection;
pub mod random;
pub mod resolver;
pub mod slots;
pub mod text;
pub mod time;
pub mod wire;

pub use address::{Cidr, Endpoint, MacAddress, WireAddress};
pub use component::{ComponentId, Role};
pub use ids::{DomainId, PacketRef, PoolId, RequestId, SocketId};
pub use ports::{Instances, PortShare};
pub use protection::Protection;
pub use random::Random;
pub use slots::SlotShare;
pub use time::Instant;
