//! How much new data goes out now (RFC 9293 §3.7.4: Nagle; §3.8.6.2.1: silly windows): a function of numbers alone.

use eft_base::Instant;

/// What the decision about new data depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Bytes that were never sent.
    pub available: u64,
    /// The FIN is to follow the last byte.
    pub fin: bool,
    /// Bytes that the peer's window still takes.
    pub window: u64,
    /// Bytes that the congestion window still takes.
    pub budget: u64,
    /// Bytes in the network.
    pub pipe: u64,
    /// The smaller of both windows, in all.
    pub whole: u64,
    pub mss: u64,
    /// Largest payload of one `Send`, a multiple of `mss`.
    pub chunk: u64,
    /// The largest window that the peer ever offered.
    pub window_max: u64,
    /// An earlier small segment is not acknowledged (RFC 896, with Minshall's refinement).
    pub small_in_flight: bool,
    pub no_delay: bool,
    pub cork: bool,
    /// How many of the bytes go in spite of the cork.
    pub flushed: u64,
    /// The override timer ran out (RFC 1122 §4.2.3.4).
    pub overridden: bool,
    /// It is worth waiting for acknowledgements that allow a larger piece: nothing seems to be lost, and this is the
    /// first wait for them.
    pub patient: bool,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The application has put in no more data.
    Application,
    /// A small segment waits for more data.
    Nagle,
    Cork,
    /// The peer's window.
    Window,
    /// The congestion window.
    Congestion,
    /// A window has room for a small part of a piece; acknowledgements under way open it further.
    Piece {
        congestion: bool,
    },
    /// What was sent before is still on its way through a wire with the connection's rate.
    Pace {
        until: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Send { len: u64, fin: bool },
    Wait(Wait),
}

impl Situation {
    pub fn decide(&self) -> Decision {
        if self.available == 0 {
            return if self.fin { self.decide_end() } else { Decision::Wait(Wait::Application) };
        }
        let limit = self.window.min(self.budget);
        if limit >= self.available { self.decide_all() } else { self.decide_limited(limit) }
    }

    /// Only the FIN is left. It takes a sequence number (RFC 9293 §3.4), for which the peer's window must have room. It burdens no
    /// path, so a full congestion window does not hold it, but for that of one segment with which a timeout is followed.
    fn decide_end(&self) -> Decision {
        let after_timeout = self.pipe > 0 && self.pipe + self.budget <= self.mss;
        match () {
            _ if self.window == 0 => Decision::Wait(Wait::Window),
            _ if after_timeout => Decision::Wait(Wait::Congestion),
            _ => Decision::Send { len: 0, fin: true },
        }
    }

    /// All available data may go.
    fn decide_all(&self) -> Decision {
        if self.available > self.chunk {
            return Decision::Send { len: self.chunk, fin: false };
        }
        let tail = self.available % self.mss;
        let small_ok =
            self.fin || self.overridden || (!self.cork && (self.no_delay || !self.small_in_flight));
        if tail == 0 || small_ok {
            return Decision::Send { len: self.available, fin: self.fin && self.window > self.available };
        }
        let full = self.available - tail;
        if self.flushed > full {
            return Decision::Send { len: self.flushed, fin: false };
        }
        match full {
            0 if self.cork => Decision::Wait(Wait::Cork),
            0 => Decision::Wait(Wait::Nagle),
            len => Decision::Send { len, fin: false },
        }
    }

    /// A window ends before the data does.
    fn decide_limited(&self, limit: u64) -> Decision {
        let by_peer = self.window <= self.budget;
        let wait = Decision::Wait(if by_peer { Wait::Window } else { Wait::Congestion });
        let full = (limit - limit % self.mss).min(self.chunk);
        if full == 0 {
            // Sender's silly window avoidance (RFC 9293 §3.8.6.2.1): at least half of the largest window, or the timer.
            let enough = limit * 2 >= self.window_max || self.overridden;
            return if by_peer && limit > 0 && enough {
                Decision::Send { len: limit, fin: false }
            } else {
                wait
            };
        }
        // With enough in the network to bring more acknowledgements, wait for a larger piece.
        if self.patient && full < self.chunk && self.pipe > 0 && full * 3 < self.whole {
            return Decision::Wait(Wait::Piece { congestion: !by_peer });
        }
        Decision::Send { len: full, fin: false }
    }
}

#[cfg(test)]
mod tests;
