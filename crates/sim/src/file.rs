//! Recordings as files: what a live server was told, for the simulator.

use crate::makes::Life;
use crate::replay::Recording;
use eft_base::PoolId;
use eft_messages::Peer;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;

/// First bytes of a file; the number is the version of everything in it.
const MAGIC: &[u8] = b"eft recording 1\n";

#[derive(Serialize, Deserialize)]
struct Stored {
    peer: Peer,
    seed: u64,
    with_filter: bool,
    pools: Vec<(PoolId, usize, usize)>,
    arena: Vec<u8>,
    recording: Recording,
}

/// A life as bytes.
pub fn to_bytes(life: &Life) -> Vec<u8> {
    let stored = Stored {
        peer: life.peer,
        seed: life.seed,
        with_filter: life.with_filter,
        pools: life.pools.clone(),
        arena: life.arena.clone(),
        recording: life.recording.borrow().clone(),
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(postcard::to_allocvec(&stored).unwrap_or_default());
    bytes
}

/// Bytes as a life; the error is one line.
pub fn from_bytes(bytes: &[u8]) -> Result<Life, String> {
    let body = bytes.strip_prefix(MAGIC).ok_or("this is no recording of this version of eft")?;
    let stored: Stored = postcard::from_bytes(body).map_err(|e| format!("the recording is damaged: {e}"))?;
    Ok(Life {
        peer: stored.peer,
        seed: stored.seed,
        with_filter: stored.with_filter,
        pools: stored.pools,
        arena: stored.arena,
        recording: Rc::new(RefCell::new(stored.recording)),
    })
}

/// Events in a file: only configurations reach the engines that are recorded.
pub mod event {
    use eft_component::Event;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(event: &Event, s: S) -> Result<S::Ok, S::Error> {
        match event {
            Event::Configure { key, value } => (key, value).serialize(s),
            _ => Err(serde::ser::Error::custom("only configurations can be written down")),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Event, D::Error> {
        let (key, value) = Deserialize::deserialize(d)?;
        Ok(Event::Configure { key, value })
    }
}
