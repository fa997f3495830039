//! A word in shared memory that says whether the supervisor is about to change something, for its successor: see
//! [`adoption`](super::adoption).

use super::inheritance::Inheritance;
use crate::{Error, Result, memory};
use eft_channel::Shared;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The keeper's name of it.
pub const TURN: &str = "turn";

/// Whether the supervisor is about to change something, for its successor.
pub struct Turn {
    segment: OwnedFd,
    word: Shared<AtomicU32>,
}

impl Turn {
    fn new() -> Result<Turn> {
        Turn::at(memory::create("eft-turn", 4096)?)
    }

    pub fn at(segment: OwnedFd) -> Result<Turn> {
        // SAFETY: the word is one atomic.
        let word = unsafe { memory::map(&segment, true)?.shared::<AtomicU32>(0) };
        Ok(Turn { word: word.map_err(|_| Error::Protocol("turn".into()))?, segment })
    }

    pub fn segment(&self) -> &OwnedFd {
        &self.segment
    }

    /// Something is about to be changed that others know of.
    pub fn begin(&self) {
        self.word.store(1, Release);
    }

    pub fn end(&self) {
        self.word.store(0, Release);
    }

    pub fn is_over(&self) -> bool {
        self.word.load(Acquire) == 0
    }
}

/// The predecessor's word if its servers are adopted, or a new one.
pub fn of_predecessor(inherited: Option<&mut Inheritance>) -> Result<Rc<Turn>> {
    let left = inherited.filter(|all| all.adopts).and_then(|all| all.take::<()>(TURN));
    let turn = match left.and_then(|(_, fds)| fds.into_iter().next()) {
        Some(segment) => Turn::at(segment)?,
        None => Turn::new()?,
    };
    turn.begin();
    Ok(Rc::new(turn))
}
