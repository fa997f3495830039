//! What a server does when supervisor and keeper are gone: nobody will ever adopt it or start it again. Peers of connections would wait
//! for ever, so tcp tells them, and all serve on until it has: what it says goes through them.
//!
//! It shows in the end of the control socket, whose other end the supervisor has, and the keeper as soon as it knows the server. A
//! server that is just being started may read that end though the keeper lives: the next supervisor starts it again, so it ends
//! without a word.

use eft_base::Instant;
use std::time::Duration;

/// How long it serves on: until its neighbours have noticed, and tcp's words have gone through them.
pub const LEAVE: Duration = Duration::from_millis(200);
/// How often it tells its neighbours. The ends of their sockets may come after the first time, or they may be awake then.
const EVERY: Duration = Duration::from_millis(10);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// A word to the neighbours, and perhaps to peers.
    Word {
        farewell: bool,
    },
    End,
}

/// What a server knows of those who could start it again.
#[derive(Debug, Default)]
pub struct Solitude {
    kept: bool,
    /// When the next word is due, and when it ends.
    times: Option<(Instant, Instant)>,
}

impl Solitude {
    /// The keeper has it.
    pub fn is_kept(&mut self) {
        self.kept = true;
    }

    /// Nobody holds the other end of its control socket. False: it is to end at once.
    pub fn begin(&mut self, now: Instant) -> bool {
        if self.kept && self.times.is_none() {
            self.times = Some((now, now + LEAVE));
        }
        self.kept
    }

    pub fn has_begun(&self) -> bool {
        self.times.is_some()
    }

    /// The first word and the last one are a farewell: connections may have begun meanwhile.
    pub fn due(&mut self, now: Instant) -> Due {
        match &mut self.times {
            Some((_, end)) if now >= *end => Due::End,
            Some((next, end)) if now >= *next => {
                let is_first = *next + LEAVE == *end;
                *next = now + EVERY;
                Due::Word { farewell: is_first || *next >= *end }
            }
            _ => Due::Nothing,
        }
    }

    /// When to look again.
    pub fn deadline(&self) -> Option<Instant> {
        self.times.map(|(next, end)| next.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_just_being_started_ends_without_a_word() {
        let mut solitude = Solitude::default();
        assert!(!solitude.begin(Instant::ZERO));
        assert_eq!((solitude.due(Instant::ZERO), solitude.deadline()), (Due::Nothing, None));
    }

    #[test]
    fn who_was_kept_tells_neighbours_until_it_ends_and_peers_at_both_ends() {
        let mut solitude = Solitude::default();
        solitude.is_kept();
        let mut now = Instant::from_millis(5000);
        assert!(!solitude.has_begun());
        assert!(solitude.begin(now) && solitude.has_begun());
        let mut words = Vec::new();
        loop {
            match solitude.due(now) {
                Due::Word { farewell } => words.push(farewell),
                due => break assert_eq!(due, Due::End),
            }
            assert_eq!(solitude.due(now), Due::Nothing, "twice");
            // The end of the socket is read again and again.
            assert!(solitude.begin(now));
            now = solitude.deadline().unwrap();
        }
        assert_eq!(now, Instant::from_millis(5000) + LEAVE);
        let farewells: Vec<usize> = (0..words.len()).filter(|n| words[*n]).collect();
        assert_eq!((words.len(), farewells), (20, vec![0, 19]));
        assert_eq!(solitude.due(now + LEAVE), Due::End);
    }

    #[test]
    fn who_is_late_still_says_farewell_once() {
        let mut solitude = Solitude::default();
        solitude.is_kept();
        solitude.begin(Instant::ZERO);
        assert_eq!(solitude.due(Instant::ZERO), Due::Word { farewell: true });
        assert_eq!(solitude.due(Instant::ZERO + 2 * LEAVE), Due::End);
    }
}
