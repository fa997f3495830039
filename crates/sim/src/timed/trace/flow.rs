//! One connection of a replay, as its client sees it.

use std::collections::VecDeque;

use eft_base::{Instant, SocketId};

use crate::trace::Exchange;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Opening,
    Connecting(SocketId),
    Asking(SocketId),
    /// It has closed, and waits for the server to.
    Closing(SocketId),
}

impl Doing {
    pub fn socket(self) -> Option<SocketId> {
        match self {
            Self::Opening => None,
            Self::Connecting(socket) | Self::Asking(socket) | Self::Closing(socket) => Some(socket),
        }
    }
}

/// A request, and when it was to be made.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub exchange: Exchange,
    pub at: Instant,
}

#[derive(Debug)]
pub struct Flow {
    pub doing: Doing,
    /// Requests that are not begun.
    pub due: VecDeque<Due>,
    /// Of begun ones, bytes that had no room in the ring.
    pub unsent: u64,
    /// What is to come of answers, and to which request.
    pub awaited: VecDeque<Due>,
    /// The client closes when it has all answers.
    pub closes: bool,
}

impl Flow {
    pub fn new() -> Self {
        let (due, awaited) = (VecDeque::new(), VecDeque::new());
        Self { doing: Doing::Opening, due, unsent: 0, awaited, closes: false }
    }

    pub fn has_all(&self) -> bool {
        self.due.is_empty() && self.unsent == 0 && self.awaited.is_empty()
    }

    /// So many bytes of answers have come: the requests that are answered now. `None`: more has come than was asked for.
    pub fn answered(&mut self, mut bytes: u64) -> Option<Vec<Due>> {
        let mut answered = Vec::new();
        while bytes > 0 {
            let first = self.awaited.front_mut()?;
            let of_this = bytes.min(first.exchange.answer_bytes);
            first.exchange.answer_bytes -= of_this;
            bytes -= of_this;
            if first.exchange.answer_bytes == 0 {
                answered.extend(self.awaited.pop_front());
            }
        }
        Some(answered)
    }
}
