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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_done_when_every_block_was_passed_since_it_was_closed() {
        let mut walk = Walk::default();
        walk.add((7, 1));
        let passed: Vec<u32> = (0..3).map(|_| walk.advance(5)).collect();
        assert_eq!((passed, walk.pop_ended()), (vec![0, 1, 2], None));
        walk.add((8, 1));
        // There are more blocks by now.
        let passed: Vec<u32> = (0..5).map(|_| walk.advance(8)).collect();
        assert_eq!(passed, [3, 4, 5, 6, 7]);
        assert_eq!((walk.pop_ended(), walk.pop_ended()), (Some((7, 1)), None));
        let passed: Vec<u32> = (0..3).map(|_| walk.advance(8)).collect();
        assert_eq!((passed, walk.pop_ended(), walk.is_over()), (vec![0, 1, 2], Some((8, 1)), true));
    }
}
