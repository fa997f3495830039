//! How much new data goes out now (RFC 9293 §3.8.6: Nagle, silly windows): a function of numbers alone.

/// What decides about new data.
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
    /// So many of the bytes go in spite of the cork.
    pub flushed: u64,
    /// The override timer ran out (RFC 1122 §4.2.3.4).
    pub overridden: bool,
    /// It is worth waiting for acknowledgements that allow a larger piece: nothing seems to be lost, and they were not
    /// waited for already.
    pub patient: bool,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing is there.
    Application,
    /// More should come before a small segment is worth it.
    Nagle,
    Cork,
    /// The peer's window.
    Window,
    /// The congestion window.
    Congestion,
    /// A window has room for a small part of a piece; acknowledgements on their way bring more.
    Piece {
        congestion: bool,
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
            return if self.fin {
                Decision::Send { len: 0, fin: true }
            } else {
                Decision::Wait(Wait::Application)
            };
        }
        let limit = self.window.min(self.budget);
        if limit >= self.available { self.decide_all() } else { self.decide_limited(limit) }
    }

    /// Everything that is there may go.
    fn decide_all(&self) -> Decision {
        if self.available > self.chunk {
            return Decision::Send { len: self.chunk, fin: false };
        }
        let tail = self.available % self.mss;
        let small_ok =
            self.fin || self.overridden || (!self.cork && (self.no_delay || !self.small_in_flight));
        if tail == 0 || small_ok {
            return Decision::Send { len: self.available, fin: self.fin };
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
            // Sender's silly window avoidance: at least half of the largest window, or the timer.
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
mod tests {
    use super::*;

    const BASE: Situation = Situation {
        available: 0,
        fin: false,
        window: 1 << 20,
        budget: 1 << 20,
        pipe: 0,
        whole: 1 << 20,
        mss: 1000,
        chunk: 64_000,
        window_max: 1 << 20,
        small_in_flight: false,
        no_delay: false,
        cork: false,
        flushed: 0,
        overridden: false,
        patient: true,
    };

    fn send(len: u64) -> Decision {
        Decision::Send { len, fin: false }
    }

    #[test]
    fn large_writes_go_in_the_largest_pieces() {
        let s = Situation { available: 200_000, ..BASE };
        assert_eq!(s.decide(), send(64_000));
    }

    #[test]
    fn nagle_holds_a_second_small_segment() {
        let first = Situation { available: 10, ..BASE };
        assert_eq!(first.decide(), send(10));
        let second = Situation { small_in_flight: true, pipe: 10, ..first };
        assert_eq!(second.decide(), Decision::Wait(Wait::Nagle));
        let mixed = Situation { available: 2_500, ..second };
        assert_eq!(mixed.decide(), send(2_000));
        let no_delay = Situation { no_delay: true, ..second };
        assert_eq!(no_delay.decide(), send(10));
        let last = Situation { fin: true, ..second };
        assert_eq!(last.decide(), Decision::Send { len: 10, fin: true });
    }

    #[test]
    fn cork_holds_even_the_first_and_its_timer_lets_go() {
        let s = Situation { available: 1_010, cork: true, no_delay: true, ..BASE };
        assert_eq!(s.decide(), send(1_000));
        let rest = Situation { available: 10, ..s };
        assert_eq!(rest.decide(), Decision::Wait(Wait::Cork));
        let over = Situation { overridden: true, ..rest };
        assert_eq!(over.decide(), send(10));
    }

    #[test]
    fn silly_windows_are_not_filled() {
        let s = Situation { available: 5_000, window: 300, ..BASE };
        assert_eq!(s.decide(), Decision::Wait(Wait::Window));
        let half = Situation { window_max: 600, ..s };
        assert_eq!(half.decide(), send(300));
        let over = Situation { overridden: true, ..s };
        assert_eq!(over.decide(), send(300));
        let closed = Situation { window: 0, ..over };
        assert_eq!(closed.decide(), Decision::Wait(Wait::Window));
    }

    #[test]
    fn a_small_piece_of_the_window_waits_for_a_larger_one() {
        let s = Situation { available: 100_000, budget: 2_000, pipe: 18_000, whole: 20_000, ..BASE };
        assert_eq!(s.decide(), Decision::Wait(Wait::Piece { congestion: true }));
        // Not when something seems lost, or when it was waited for already.
        let hurried = Situation { patient: false, ..s };
        assert_eq!(hurried.decide(), send(2_000));
        let more = Situation { budget: 7_500, pipe: 12_500, ..s };
        assert_eq!(more.decide(), send(7_000));
        let alone = Situation { pipe: 0, budget: 2_000, ..s };
        assert_eq!(alone.decide(), send(2_000));
    }

    #[test]
    fn a_fin_alone_needs_no_window() {
        let s = Situation { fin: true, window: 0, budget: 0, ..BASE };
        assert_eq!(s.decide(), Decision::Send { len: 0, fin: true });
    }
}
