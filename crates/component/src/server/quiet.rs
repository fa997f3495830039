//! Hints about full queues and lateness, accusations of neighbours, receipts that wait, and injected faults.

use super::{LATE, QUIET_TIME, Server};
use crate::World;
use crate::component::Component;
use crate::frame_counters::counter;
use core::time::Duration;
use eft_base::Instant;
use eft_channel::account::Hints;
use eft_messages::ComponentId;

impl<C: Component> Server<C> {
    /// Accuses a neighbour that damages its queue or sends a line that is not a message. The neighbour is to be replaced: the
    /// content of that line is lost, and only a successor sends it again. The supervisor, which can see the queue, too, judges
    /// the accusation.
    #[cold]
    pub(super) fn accuse(
        &mut self,
        world: &mut impl World<Effect = C::Effect>,
        peer: ComponentId,
        now: Instant,
    ) {
        let Some(c) = self.ports.iter_mut().find(|c| c.port.peer == peer) else { return };
        if c.suspicion.accuses(now) {
            self.status.add(counter::UNDECODABLE, c.suspicion.nonsense as u64);
            world.accuse(peer);
        }
    }

    /// Publishes whether this turn came late: to a deadline, or to a queue that filled since the last turn.
    pub(super) fn tell_hints(&mut self, now: Instant, crowded: bool) {
        let late = self.due.map_or(Duration::ZERO, |due| now.saturating_since(due));
        if late.as_micros() as u64 > self.status.get(counter::LATE_US_MAX) {
            self.status.set(counter::LATE_US_MAX, late.as_micros() as u64);
        }
        let gap = now.saturating_since(self.last_turn);
        self.last_turn = now;
        let starved = late >= LATE || (crowded && gap >= LATE);
        self.status.account().hint(Hints { receiver_behind: self.receiver_behind, starved });
    }

    /// Receipts that waited long enough become urgent, unless they were taken meanwhile.
    pub(super) fn end_quiet(&mut self, now: Instant) {
        if self.quiet_until.is_none_or(|until| now < until) {
            return;
        }
        self.quiet_until = None;
        for c in &mut self.ports {
            if c.quiet > 0 && c.port.producer.in_flight() > 0 {
                c.unrung = true;
            }
            c.quiet = 0;
        }
    }

    pub(super) fn quiet_deadline(&mut self, now: Instant) -> Option<Instant> {
        // A thread takes all receipts of its own before it sleeps.
        if self.ports.iter().all(|c| c.quiet == 0 || c.port.same_thread) {
            self.quiet_until = None;
        } else if self.quiet_until.is_none() {
            self.quiet_until = Some(now + QUIET_TIME);
        }
        self.quiet_until
    }

    /// Does what the armed fault does to this turn's messages.
    #[cold]
    pub(super) fn strike(&mut self, world: &mut impl World<Effect = C::Effect>) {
        let now = world.now();
        let Some(fault) = &mut self.fault else { return };
        let done = fault.strike(now, &mut self.out);
        self.status.add(counter::FAULTS_INJECTED, done.struck as u64);
        if done.over {
            self.fault = None;
        }
        if let Some(peer) = done.accuse {
            world.accuse(peer);
        }
        for (peer, line) in done.send {
            // No port: the peer died meanwhile, and the message with it.
            if let Some(c) = self.ports.iter_mut().find(|c| c.port.peer == peer) {
                c.backlog.push_back(line);
            }
        }
    }
}
