//! The derived states of all blocks, made when one is changed for the first time.
//!
//! A successor of a dead tcp finds up to 100,000 connections, and needs the state of few of them at once. To make 1 KB for each
//! takes longer than everything else that it does before its first event: most of that is memory that is touched for the first
//! time. So a state that nobody has changed yet is not there, and what is already known of it is kept beside.

use super::live::{Live, due};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// States that are made together: some pages.
const GROUP: usize = 16;

/// What is known of a state that is not there: it is [`Live::open`].
const OPEN: u8 = 1;
/// It is [`due::REVIVE`].
const REVIVE: u8 = 2;

pub(super) struct Lives {
    len: usize,
    groups: Vec<Option<Box<[Live; GROUP]>>>,
    /// Of each block, what its state has when it is made.
    known: Vec<u8>,
    /// What is read of states that are not there, by what is known of them.
    unmade: [Live; 4],
}

fn make(known: u8) -> Live {
    let mut live = Live::new();
    live.open = known & OPEN != 0;
    live.due = if known & REVIVE != 0 { due::REVIVE } else { 0 };
    live
}

impl Lives {
    pub fn new(len: usize) -> Lives {
        let mut lives = Lives {
            len: 0,
            groups: Vec::new(),
            known: Vec::new(),
            unmade: [0, OPEN, REVIVE, OPEN | REVIVE].map(make),
        };
        lives.grow(len);
        lives
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn grow(&mut self, len: usize) {
        self.len = len;
        self.groups.resize_with(len.div_ceil(GROUP), || None);
        self.known.resize(self.groups.len() * GROUP, 0);
    }

    /// It counts as an open connection.
    pub fn set_open(&mut self, i: u32) {
        match self.made(i) {
            Some(live) => live.open = true,
            None => self.known[i as usize] |= OPEN,
        }
    }

    /// It is to be revived.
    pub fn set_revive(&mut self, i: u32) {
        match self.made(i) {
            Some(live) => live.due |= due::REVIVE,
            None => self.known[i as usize] |= REVIVE,
        }
    }

    fn made(&mut self, i: u32) -> Option<&mut Live> {
        let i = i as usize;
        self.groups[i / GROUP].as_mut().map(|group| &mut group[i % GROUP])
    }
}

impl Index<usize> for Lives {
    type Output = Live;

    #[inline]
    fn index(&self, i: usize) -> &Live {
        match &self.groups[i / GROUP] {
            Some(group) => &group[i % GROUP],
            None => &self.unmade[self.known[i] as usize],
        }
    }
}

impl IndexMut<usize> for Lives {
    #[inline]
    fn index_mut(&mut self, i: usize) -> &mut Live {
        let Lives { groups, known, .. } = self;
        let group = groups[i / GROUP].get_or_insert_with(|| group_of(&known[i - i % GROUP..][..GROUP]));
        &mut group[i % GROUP]
    }
}

#[cold]
#[inline(never)]
fn group_of(known: &[u8]) -> Box<[Live; GROUP]> {
    let group: Vec<Live> = known.iter().map(|known| make(*known)).collect();
    group.try_into().unwrap_or_else(|_| unreachable!("as many states as a group has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_the_same_before_and_after_it_is_made() {
        let mut lives = Lives::new(40);
        for (i, known) in [(3, OPEN), (4, REVIVE), (5, OPEN | REVIVE), (39, OPEN)] {
            if known & OPEN != 0 {
                lives.set_open(i);
            }
            if known & REVIVE != 0 {
                lives.set_revive(i);
            }
        }
        let seen = |lives: &Lives| -> Vec<(bool, u32)> {
            (0..lives.len()).map(|i| (lives[i].open, lives[i].due)).collect()
        };
        let before = seen(&lives);
        assert_eq!(before[3..6], [(true, 0), (false, due::REVIVE), (true, due::REVIVE)]);
        assert_eq!((before[2], before[39]), ((false, 0), (true, 0)));
        lives[2].due |= due::ACK;
        lives[2].due &= !due::ACK;
        assert!(lives.groups[0].is_some() && lives.groups[1].is_none());
        assert_eq!(seen(&lives), before);
    }

    #[test]
    fn what_becomes_known_of_a_state_that_is_there_is_set_in_it() {
        let mut lives = Lives::new(GROUP);
        lives[0].due = due::ACK;
        lives.set_revive(0);
        lives.set_open(1);
        assert_eq!((lives[0].due, lives[0].open), (due::ACK | due::REVIVE, false));
        assert!(lives[1].open);
    }

    #[test]
    fn more_blocks_change_no_state() {
        let mut lives = Lives::new(10);
        lives.set_open(9);
        lives[0].due = due::ACK;
        lives.grow(100);
        assert_eq!((lives.len(), lives[0].due, lives[9].open), (100, due::ACK, true));
        assert_eq!((lives[10].due, lives[99].due), (0, 0));
    }
}
