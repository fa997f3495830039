//! Which servers the supervisor is telling something that no successor would tell them again: see [`adoption`](super::adoption).
//! A word in shared memory says it, which the keeper has.

use super::inheritance::Inheritance;
use crate::protocol::ToServer;
use crate::{Error, Result, memory};
use eft_channel::Shared;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// The keeper's name of it.
pub const CHANGES: &str = "changes";

/// A bit for each member. What has a higher number shares one, and is started again once too often.
pub struct Changes {
    segment: OwnedFd,
    word: Shared<AtomicU64>,
}

impl Changes {
    pub fn new() -> Result<Changes> {
        Changes::at(memory::create("eft-changes", 4096)?)
    }

    pub fn at(segment: OwnedFd) -> Result<Changes> {
        // SAFETY: the word is one atomic.
        let word = unsafe { memory::map(&segment, true)?.shared::<AtomicU64>(0) };
        Ok(Changes { word: word.map_err(|_| Error::Protocol("changes".into()))?, segment })
    }

    pub fn segment(&self) -> &OwnedFd {
        &self.segment
    }

    /// This member is about to be told something that it alone will know.
    pub fn begin(&self, member: usize) {
        self.word.fetch_or(bit(member), AcqRel);
    }

    /// What it was told lies with the keeper, or nobody needs to know.
    pub fn end(&self, member: usize) {
        self.word.fetch_and(!bit(member), AcqRel);
    }

    pub fn concern(&self, member: usize) -> bool {
        self.word.load(Acquire) & bit(member) != 0
    }
}

fn bit(member: usize) -> u64 {
    1 << (member % 64)
}

/// The predecessor's word if its servers are adopted, or a new one.
pub fn of_predecessor(inherited: Option<&mut Inheritance>) -> Result<Rc<Changes>> {
    let left = inherited.filter(|all| all.adopts).and_then(|all| all.take::<()>(CHANGES));
    let changes = match left.and_then(|(_, fds)| fds.into_iter().next()) {
        Some(segment) => Changes::at(segment)?,
        None => Changes::new()?,
    };
    Ok(Rc::new(changes))
}

/// Whether it does no harm that this process dies after it has told a server this and before it has done anything else: a
/// successor tells it again, or undoes what it belongs to.
pub fn is_told_again(message: &ToServer) -> bool {
    match message {
        // A newborn is adopted once it has said that it is ready. One that was not adopted is started again.
        ToServer::Identity(_) | ToServer::OwnPool { .. } | ToServer::Arena | ToServer::Construct => true,
        ToServer::Run | ToServer::Listener | ToServer::Loopback { .. } => true,
        // They are about a server that is started again, with new queues and pools.
        ToServer::Pool { .. } | ToServer::Connect { .. } | ToServer::Disconnect { .. } => true,
        // The keeper has the numbers of the pools that are to be dropped.
        ToServer::DropPool { .. } => true,
        // What sockets said stays in its control socket until the keeper has what follows from it, and that a newborn is ready
        // stays there until it has what it still lacks.
        ToServer::Domain { .. } | ToServer::DomainClosed { .. } | ToServer::Connection { .. } => true,
        ToServer::Far { .. } | ToServer::DropFar { .. } | ToServer::Owner { .. } => true,
        // Every supervisor tells it to all whom the keeper has.
        ToServer::Kept => true,
        // Its transport asks again.
        ToServer::Repeat { .. } => true,
        // Told to the whole of cores by every supervisor that adopts it.
        ToServer::Member(_) => true,
        // Those who are told this end, or may break.
        ToServer::Examine(_) | ToServer::Revert(_) | ToServer::Stop | ToServer::Inject { .. } => true,
        // It copies frames into memory that nobody reads any more.
        ToServer::Capture => true,
        ToServer::Configure { .. } | ToServer::Place { .. } => false,
    }
}
