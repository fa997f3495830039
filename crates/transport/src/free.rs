//! Which blocks of an arena are free.
//!
//! Derived when the arena is opened and never stored in it, so that damage to the arena does not
//! reach it. Invariant: a block is given out once and taken back once, whatever its user does; no
//! block has two users.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

pub(crate) struct FreeBlocks {
    stack: Vec<u32>,
    is_free: Vec<bool>,
}

impl FreeBlocks {
    /// For `count` blocks, none of them free yet.
    pub fn new(count: usize) -> FreeBlocks {
        FreeBlocks { stack: Vec::new(), is_free: vec![false; count] }
    }

    /// Adds `more` free blocks behind the present ones.
    pub fn grow(&mut self, more: Range<u32>) {
        self.is_free.resize(more.end as usize, true);
        self.stack.extend(more.rev());
    }

    /// Gives out the block that came back last, whose lines are likely still cached.
    pub fn take(&mut self) -> Option<u32> {
        let block = self.stack.pop()?;
        self.is_free[block as usize] = false;
        Some(block)
    }

    /// Takes a block back. False, and nothing happens, if it is free already.
    pub fn put(&mut self, block: u32) -> bool {
        let fresh = !core::mem::replace(&mut self.is_free[block as usize], true);
        if fresh {
            self.stack.push(block);
        }
        fresh
    }

    pub fn contains(&self, block: u32) -> bool {
        self.is_free[block as usize]
    }

    /// How many are in use.
    pub fn used(&self) -> usize {
        self.is_free.len() - self.stack.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}

#[cfg(test)]
mod tests;
