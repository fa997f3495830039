//! Faults of a server toward its neighbours, set off on purpose (`eft inject`, the simulator): a message that comes late,
//! twice, damaged or not at all; a false accusation.
//!
//! The neighbours see what a server with such a defect would send. While no fault is armed a turn pays one branch.

use crate::Outbox;
use crate::component::Output;
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::{Instant, Random};
use eft_messages::{ComponentId, Encoded};
use serde::{Deserialize, Serialize};

/// How long a delayed message is held back: longer than any turn, shorter than a time-out of TCP.
const DELAY: Duration = Duration::from_millis(50);

/// What happens to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// It comes 50 ms later, after what was sent meanwhile.
    Delay,
    /// It comes twice.
    Repeat,
    /// One bit of it is flipped.
    FlipMessage,
    /// A receipt that gives a buffer back is lost.
    Leak,
    /// A receipt that gives a buffer back comes twice.
    DoubleFree,
    /// The receiver of the message is accused of sending nonsense, from now on.
    Accuse,
}

impl Fault {
    /// Whether it affects receipts, the messages that wake no peer.
    pub fn is_about_receipts(self) -> bool {
        matches!(self, Fault::Leak | Fault::DoubleFree)
    }
}

/// A fault that waits for its message, or for the end of a delay.
pub(crate) struct Armed {
    fault: Fault,
    /// Messages that pass unharmed first.
    skip: u32,
    random: Random,
    late: Option<(Instant, ComponentId, Encoded)>,
}

/// What a fault did in a turn.
#[derive(Default)]
pub(crate) struct Done {
    /// The message was found.
    pub struck: bool,
    /// The peer to accuse.
    pub accuse: Option<ComponentId>,
    /// Messages to send before all others.
    pub send: Vec<(ComponentId, Encoded)>,
    /// The fault has nothing left to do.
    pub over: bool,
}

impl Armed {
    pub fn new(fault: Fault, skip: u32, seed: u64) -> Armed {
        Armed { fault, skip, random: Random::new(seed), late: None }
    }

    /// When a message that is held back is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.late.map(|(at, ..)| at)
    }

    /// Injects the fault into the messages that a turn is about to send.
    pub fn strike<O: Output>(&mut self, now: Instant, out: &mut Outbox<O>) -> Done {
        let mut done = Done::default();
        if let Some((at, peer, line)) = self.late {
            done.over = at <= now;
            done.send.extend(done.over.then_some((peer, line)));
            return done;
        }
        let concerned =
            |item: &O| item.peer().is_some() && self.fault.is_about_receipts() != item.is_urgent();
        let all = out.items().iter().enumerate().filter(|(_, item)| concerned(item)).map(|(i, _)| i);
        let all: Vec<usize> = all.collect();
        let Some(&index) = all.get(self.skip as usize) else {
            self.skip -= all.len() as u32;
            return done;
        };
        let Some((peer, mut line)) =
            out.items()[index].peer().map(|peer| (peer, out.items()[index].encode()))
        else {
            return done;
        };
        done.struck = true;
        done.over = !matches!(self.fault, Fault::Delay | Fault::Accuse);
        match self.fault {
            Fault::Repeat | Fault::DoubleFree => done.send.push((peer, line)),
            Fault::Leak => out.remove(index),
            Fault::Accuse => done.accuse = Some(peer),
            Fault::FlipMessage => {
                out.remove(index);
                line[self.random.below(7) as usize] ^= 1 << self.random.below(64);
                done.send.push((peer, line));
            }
            Fault::Delay => {
                out.remove(index);
                self.late = Some((now + DELAY, peer, line));
            }
        }
        done
    }
}
