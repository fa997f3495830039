//! Who is replaced when a server accuses a neighbour.
//!
//! An accusation can be checked: the queues between the two lie in shared memory ([`eft_channel::queue::Inspection`]),
//! and the line that the accuser cannot read stays there. The damage may have been repaired before the check, so one
//! accusation without evidence has no consequence. After a second one soon after, the accuser counts as damaged and is
//! replaced.

use core::time::Duration;
use eft_base::Instant;
use eft_channel::queue::Inspection;
use eft_messages::ComponentId;
use eft_messages::edges::is_message;

/// How long an accusation without evidence counts against the accuser.
const DOUBT: Duration = Duration::from_secs(1);

/// Who is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accused,
    Accuser,
    /// Neither, so far.
    Neither,
}

/// The queue that the accused writes, and the one that it reads.
pub struct Evidence {
    pub accuser: ComponentId,
    pub accused: ComponentId,
    pub written: Inspection,
    pub read: Inspection,
}

impl Evidence {
    /// Whether the evidence shows that the accused damaged something.
    fn is_seen(&self) -> bool {
        let nonsense = || self.written.next().is_some_and(|m| !is_message(self.accused, self.accuser, &m));
        self.written.writer_is_guilty()
            // If the writer (here the accuser) damaged the queue, the reader's position proves nothing.
            || !self.read.writer_is_guilty() && self.read.reader_is_guilty()
            // If the accuser's own position is invalid, the accused is not to blame for what lies there.
            || !self.written.reader_is_guilty() && nonsense()
    }
}

/// A server's record of accusations without evidence.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    doubted: Option<Instant>,
}

impl Credit {
    pub fn judge(&mut self, now: Instant, evidence: &Evidence) -> Verdict {
        if evidence.is_seen() {
            return Verdict::Accused;
        }
        let before = self.doubted.replace(now);
        match before.is_some_and(|at| now.saturating_since(at) < DOUBT) {
            true => Verdict::Accuser,
            false => Verdict::Neither,
        }
    }
}

#[cfg(test)]
mod tests;
