//! Whether the supervisor's own code has changed in memory: nobody else would notice that it misreads messages.

use super::process::is_traced;
use crate::scrub::Scrub;
use crate::{Error, Result};
use eft_base::protection;
use eft_host::clock;

/// Pieces of 4 KB that are compared at each look after work: some 0.3 ms, so that all is looked at within half a second. A supervisor
/// has little to do, and what it does wrongly meanwhile it may do to all servers.
const COMPARED: usize = 512;

pub struct OwnCode(Scrub);

impl OwnCode {
    /// Takes all sums at once, some milliseconds long: what changes before it has them is never seen.
    pub fn new() -> OwnCode {
        let mut scrub = Scrub::of_program(clock::now());
        scrub.take_sums(usize::MAX);
        OwnCode(scrub)
    }

    /// Wrong code may have handled so many events: if there were any, all of it is looked at.
    pub fn worked(&mut self, events: usize) {
        self.0.worked(events.saturating_mul(usize::MAX));
    }

    /// Looks at a part, if something has happened since the last round. An error if it has changed, unless a debugger may have done
    /// that: the supervisor ends, and the next one adopts its servers.
    pub fn look(&mut self) -> Result<()> {
        let changed = protection::is_on() && self.0.look_at(COMPARED);
        if changed && !is_traced(std::process::id()) {
            return Err(Error::System("the supervisor's code has changed in memory".into()));
        }
        Ok(())
    }
}
