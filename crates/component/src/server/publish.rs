//! What leaves at the end of a turn.

use super::{Port, QUIET_MAX, Server, counter};
use crate::World;
use crate::component::{Component, Output};
use eft_channel::notify::{Wake, ring_once};

impl<C: Component> Server<C> {
    /// Wakes the peers that sleep, though there is no message for them.
    pub fn wake_peers(&self, world: &mut impl World<Effect = C::Effect>) {
        for Port { peer, doorbell, peer_state, .. } in self.ports.iter().map(|c| &c.port) {
            world.wake(*peer, ring_once(doorbell, peer_state), doorbell);
        }
    }

    /// Moves the outbox into the queues, carries out effects, and wakes sleeping peers.
    pub(super) fn publish(&mut self, world: &mut impl World<Effect = C::Effect>) {
        if self.fault.is_some() {
            self.strike(world);
        }
        let mut sent = 0;
        let mut effects = 0;
        for c in &mut self.ports {
            while let Some(line) = c.backlog.front() {
                if c.port.producer.push(line).is_err() {
                    break;
                }
                c.backlog.pop_front();
                c.unrung = true;
            }
        }
        for item in self.out.drain() {
            let Some(peer) = item.peer() else {
                if let Some(effect) = item.into_effect() {
                    effects += 1;
                    world.perform(effect);
                }
                continue;
            };
            // No port: the peer is dead; its successor gets everything again by `peer_reborn`.
            let Some(c) = self.ports.iter_mut().find(|c| c.port.peer == peer) else {
                continue;
            };
            world.sends();
            let line = item.encode();
            sent += 1;
            match item.is_urgent() {
                true => c.unrung = true,
                false => c.quiet += 1,
            }
            if !c.backlog.is_empty() || c.port.producer.push(&line).is_err() {
                c.backlog.push_back(line);
            }
        }
        let (mut wakes, mut wakes_ns) = (0, 0);
        let mut backlog = 0;
        for c in &mut self.ports {
            backlog = backlog.max(c.backlog.len());
            if core::mem::take(&mut c.unrung) || c.quiet >= QUIET_MAX {
                c.quiet = 0;
                if c.port.same_thread {
                    c.port.doorbell.ring();
                    continue;
                }
                let how = c.ringer.ring(&c.port.doorbell, &c.port.peer_state);
                if how != Wake::None {
                    wakes += 1;
                    // A wake is a system call of microseconds, so reading the clock twice does not
                    // matter.
                    let began = world.now();
                    world.wake(c.port.peer, how, &c.port.doorbell);
                    wakes_ns += world.now().saturating_since(began).as_nanos() as u64;
                }
            }
        }
        if sent + effects + wakes > 0 {
            self.status.add(counter::MESSAGES_OUT, sent);
            self.status.add(counter::EFFECTS, effects);
            self.status.add(counter::WAKES_SENT, wakes);
        }
        if wakes > 0 {
            self.status.account().sent_wakes(wakes, wakes_ns);
        }
        if backlog as u64 > self.status.get(counter::BACKLOG_MAX) {
            self.status.set(counter::BACKLOG_MAX, backlog as u64);
        }
    }
}
