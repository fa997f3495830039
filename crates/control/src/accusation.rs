//! Who is replaced when a server accuses a neighbour.
//!
//! What it says can be looked at: the queues between the two lie in shared memory ([`eft_channel::queue::Inspection`]), and
//! the line that it cannot read stays there. Damage that nobody else sees may have been put right meanwhile, so who accuses
//! without evidence is passed over once. The second time in a row it is what is damaged itself.

use core::time::Duration;
use eft_base::Instant;
use eft_channel::queue::Inspection;
use eft_messages::ComponentId;
use eft_messages::edges::is_message;

/// For how long a word without evidence counts against who said it.
const DOUBT: Duration = Duration::from_secs(1);

/// Who is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accused,
    Accuser,
    /// Nobody yet.
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
    /// Whether the accused is seen to have damaged something.
    fn is_seen(&self) -> bool {
        let nonsense = || self.written.next().is_some_and(|m| !is_message(self.accused, self.accuser, &m));
        self.written.writer_is_guilty()
            // A reader's position says nothing in a queue that its writer damaged, who is the accuser here.
            || !self.read.writer_is_guilty() && self.read.reader_is_guilty()
            // Nor is it the accused's fault what lies where the accuser cannot be.
            || !self.written.reader_is_guilty() && nonsense()
    }
}

/// What a server said against others.
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
