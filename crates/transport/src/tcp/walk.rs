//! The walk through all blocks for closed listeners ([`orphans`](super::orphans)).

use alloc::collections::VecDeque;

/// Where the walk is: its round, and the next block.
type Position = (u64, u32);

/// A block and its generation.
type Listener = (u32, u32);

/// Also: where it reaches the end of its round for each listener.
#[derive(Default)]
pub struct Walk {
    at: Position,
    parents: VecDeque<(Listener, Position)>,
}

impl Walk {
    pub fn add(&mut self, listener: Listener) {
        let (round, block) = self.at;
        self.parents.push_back((listener, (round + 1, block)));
    }

    /// A listener whose round is over.
    pub fn pop_ended(&mut self) -> Option<Listener> {
        self.parents.pop_front_if(|(_, end)| *end <= self.at).map(|(listener, _)| listener)
    }

    pub fn is_over(&self) -> bool {
        self.parents.is_empty()
    }

    /// The next of `count` blocks.
    pub fn advance(&mut self, count: u32) -> u32 {
        let (round, block) = self.at;
        self.at = if block + 1 < count { (round, block + 1) } else { (round + 1, 0) };
        block
    }
}
