//! Pools to which neighbours refer, and which are not here.
//!
//! The supervisor gives a server its neighbours' pools, and takes them away some time after their owners have died. Who errs in
//! that, such as a supervisor whose code has changed in memory, leaves two servers that cannot read each other's packets. So a
//! server that misses a pool says so, and a supervisor that knows it gives it once more.

use eft_base::{Instant, PoolId};
use eft_channel::Memory;
use std::time::Duration;

/// How long a server waits before it asks again. What a neighbour referred to last may be a dead server's pool, which nobody has.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct MissingPools {
    asked: Option<Instant>,
}

impl MissingPools {
    /// The pool to ask for now.
    pub fn look(&mut self, memory: &Memory, now: Instant) -> Option<PoolId> {
        if self.asked.is_some_and(|asked| now.saturating_since(asked) < PATIENCE) {
            return None;
        }
        let missed = memory.take_missed()?;
        self.asked = Some(now);
        Some(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_base::PacketRef;

    #[test]
    fn a_missing_pool_is_asked_for_and_not_all_the_time() {
        let (memory, mut missing) = (Memory::new(), MissingPools::default());
        let refer = |pool| {
            memory
                .resolve(PacketRef { pool: PoolId(pool), slot: 0, generation: 0, offset: 0, len: 1 })
                .is_none()
        };
        assert_eq!(missing.look(&memory, Instant::from_millis(5)), None);
        assert!(refer(7));
        assert_eq!(missing.look(&memory, Instant::from_millis(5)), Some(PoolId(7)));
        assert!(refer(7) && refer(8));
        assert_eq!(missing.look(&memory, Instant::from_millis(104)), None);
        assert_eq!(missing.look(&memory, Instant::from_millis(105)), Some(PoolId(8)));
        assert_eq!(
            missing.look(&memory, Instant::from_millis(500)),
            None,
            "nobody has referred to one since"
        );
    }
}
