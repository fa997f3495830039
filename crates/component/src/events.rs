//! Events that are common to all components, and their conversion to each engine's own.
//!
//! An engine's own events and effects stand beside: [`crate::transport`], [`crate::sockets`]. They lie in this
//! crate, since the live world makes the events and carries out the effects without knowing the engines.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use eft_base::{DomainId, PoolId};
use eft_channel::socket::Arena;

/// The present value of a key in the store (TOML text unless the key's documentation says otherwise).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    pub key: String,
    pub value: Vec<u8>,
}

/// filter: the answer to an operator's request (`key` as in [`Configure`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub key: String,
    pub value: Vec<u8>,
}

/// Events of an engine. The conversions are for what every world tells every component; `None`: this engine has no
/// such event.
pub trait FromWorld: Sized {
    fn configure(_key: String, _value: Vec<u8>) -> Option<Self> {
        None
    }

    /// A domain's arena is mapped; packet references name it `pool`.
    fn domain_opened(_domain: DomainId, _pool: PoolId, _arena: Arena) -> Option<Self> {
        None
    }

    /// The component ends in good order: the effects that it asks for now are still carried out.
    fn end() -> Option<Self> {
        None
    }
}

/// An engine that hears from its peers only.
impl FromWorld for Infallible {}

impl FromWorld for Configure {
    fn configure(key: String, value: Vec<u8>) -> Option<Configure> {
        Some(Configure { key, value })
    }
}
