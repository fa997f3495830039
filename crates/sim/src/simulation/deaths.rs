//! Which servers die, err or are damaged, and when dead ones come back.

use super::Simulation;
use eft_messages::ComponentId;
use std::time::Duration;

impl Simulation {
    pub(super) fn maybe_kill(&mut self) {
        if self.faults.peers.is_empty() || !self.random.chance(self.faults.crash) {
            return;
        }
        let side = self.random.below(2) as usize;
        let peer = self.faults.peers[self.random.below(self.faults.peers.len() as u64) as usize];
        if self.faults.one_at_a_time && self.dead.iter().any(|d| d.0 == side) {
            return;
        }
        self.kill(side, peer);
    }

    pub(super) fn maybe_inject(&mut self) {
        if self.faults.kinds.is_empty() || !self.random.chance(self.faults.inject) {
            return;
        }
        let mut below = |n: usize| self.random.below(n as u64) as usize;
        let (side, skip) = (below(2), below(16) as u32);
        let peer = self.faults.peers[below(self.faults.peers.len())];
        let fault = self.faults.kinds[below(self.faults.kinds.len())];
        self.note(format!("{} us: {peer} of side {side} suffers {fault:?}", self.now.as_micros()));
        self.stacks[side].inject(peer, fault, skip);
    }

    pub(super) fn maybe_flip(&mut self) {
        if self.faults.flip == 0.0 || !self.random.chance(self.faults.flip) {
            return;
        }
        let side = self.random.below(2) as usize;
        let peer = self.faults.peers[self.random.below(self.faults.peers.len() as u64) as usize];
        self.note(format!("{} us: {peer} of side {side} damages a queue", self.now.as_micros()));
        self.stacks[side].flip_number(peer, &mut self.random);
    }

    pub(super) fn maybe_flip_descriptor(&mut self) {
        if self.faults.flip_descriptor == 0.0 || !self.random.chance(self.faults.flip_descriptor) {
            return;
        }
        let side = self.random.below(2) as usize;
        self.stacks[side].flip_descriptor(&mut self.random);
    }

    pub(super) fn maybe_light(&mut self) {
        if self.faults.fuse == 0.0 || !self.random.chance(self.faults.fuse) {
            return;
        }
        let mut below = |n: usize| self.random.below(n as u64) as usize;
        let (side, peer) = (below(2), self.faults.peers[below(self.faults.peers.len())]);
        // Few for what is made of few accesses, and for the end of a turn.
        let most = [4, 30, 300][below(3)];
        let steps = 1 + below(most) as u64;
        self.stacks[side].light(peer, steps);
    }

    pub(super) fn maybe_hang(&mut self) {
        if self.faults.hang == 0.0 || !self.random.chance(self.faults.hang) {
            return;
        }
        let mut below = |n: usize| self.random.below(n as u64) as usize;
        let (side, peer) = (below(2), self.faults.peers[below(self.faults.peers.len())]);
        if let Some(life) = self.stacks[side].hang(peer) {
            self.hangs += 1;
            self.note(format!("{} us: {peer} of side {side} hangs", self.now.as_micros()));
            self.hung.push((side, peer, life, self.now + self.faults.patience));
        }
    }

    /// The watchdog: kills servers that hang, unless they died meanwhile.
    pub(super) fn kill_hung(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.hung.iter().filter(|hung| hung.3 <= now).copied().collect();
        self.hung.retain(|hung| hung.3 > now);
        for (side, peer, life, _) in due {
            if self.stacks[side].generation(peer) == life {
                self.kill(side, peer);
            }
        }
    }

    pub(super) fn maybe_be_hostile(&mut self) {
        if self.faults.hostility == 0.0 || !self.random.chance(self.faults.hostility) {
            return;
        }
        let side = self.random.below(2) as usize;
        if self.stacks[side].hostile.is_some() {
            self.hostiles[side].step(self.now, &mut self.stacks[side]);
            self.bury(side);
        }
    }

    /// Kills a server; it comes back after a random part of the downtime.
    pub fn kill(&mut self, side: usize, peer: ComponentId) {
        self.stacks[side].kill(self.now, peer);
        self.bury(side);
    }

    /// Schedules the return of dead servers, each after a random part of the downtime.
    pub(super) fn bury(&mut self, side: usize) {
        self.hand_over_effects(side);
        let burnt = self.stacks[side].burnt;
        loop {
            let died = self.stacks[side].take_died();
            if died.is_empty() {
                return;
            }
            for peer in died {
                self.note(format!("{} us: {peer} of side {side} dies", self.now.as_micros()));
                let downtime = self.faults.downtime.as_nanos() as u64;
                let back = self.now + Duration::from_nanos(self.random.below(downtime));
                self.dead.push((side, peer, back));
            }
            if burnt > self.buried[side] && self.random.chance(self.faults.together) {
                let other = self.faults.peers[self.random.below(self.faults.peers.len() as u64) as usize];
                self.stacks[side].kill(self.now, other);
            }
            self.buried[side] = burnt;
        }
    }

    pub(super) fn revive(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.dead.iter().filter(|d| d.2 <= now).copied().collect();
        self.dead.retain(|d| d.2 > now);
        for (side, peer, _) in due {
            self.note(format!("{} us: {peer} of side {side} is back", now.as_micros()));
            self.stacks[side].restart(now, peer);
            self.bury(side);
        }
    }
}
