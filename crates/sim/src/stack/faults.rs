//! Breaking servers on purpose, and judging those that neighbours accuse.

use super::poison::Poison;
use super::{Burning, MappedPool, OLD_POOLS, Stack};
use crate::wiring::Numbers;
use eft_base::{Instant, PoolId, Random};
use eft_channel::access::AccessObserver;
use eft_channel::queue::Inspection;
use eft_component::fault::Fault;
use eft_control::accusation::{Credit, Evidence, Verdict};
use eft_messages::ComponentId;
use eft_messages::nic::{FRAME_SLOT_LEN, FrameDescriptor};
use eft_transport::Fuse;
use std::sync::Arc;

impl Stack {
    /// A server dies in the middle of what it does, after so many accesses of its arena and of pages, effects and wakes.
    pub fn light(&mut self, peer: ComponentId, steps: u64) {
        if let Some(i) = self.index(peer) {
            self.members[i].fuse.light(steps);
        }
    }

    /// A server does nothing from now on, until it is killed. Returns which life of it this is, or `None` if it is dead or hangs.
    pub fn hang(&mut self, peer: ComponentId) -> Option<u32> {
        let i = self.index(peer)?;
        let member = Some(&mut self.members[i]).filter(|member| member.is_at_work())?;
        member.hung = true;
        Some(member.generation)
    }

    /// Servers that died since the last call.
    pub fn take_died(&mut self) -> Vec<ComponentId> {
        core::mem::take(&mut self.died)
    }

    /// Accusations since the last call (accuser, accused), with the supervisor's verdicts.
    pub fn judge_accused(&mut self, now: Instant) -> Vec<(ComponentId, ComponentId, Verdict)> {
        let accusations = core::mem::take(&mut self.accusations);
        accusations.into_iter().filter_map(|(by, of)| Some((by, of, self.judge(now, by, of)?))).collect()
    }

    fn judge(&mut self, now: Instant, accuser: ComponentId, accused: ComponentId) -> Option<Verdict> {
        let queue = |writer, reader| {
            let mut of = self.numbers.iter().filter(|n| (n.writer, n.reader) == (writer, reader));
            of.find_map(|n| n.queue.clone())
        };
        let (written, read) = (queue(accused, accuser)?, queue(accuser, accused)?);
        let i = self.index(accuser)?;
        Some(self.members[i].credit.judge(now, &Evidence { accuser, accused, written, read }))
    }

    /// Arms a fault in a server that lives.
    pub fn inject(&mut self, peer: ComponentId, fault: Fault, skip: u32) {
        if let Some(i) = self.index(peer)
            && let Some(node) = &mut self.members[i].node
        {
            node.inject(fault, skip);
        }
    }

    /// Forgets faults that have not struck.
    pub fn disarm(&mut self) {
        self.members.iter_mut().filter_map(|member| member.node.as_mut()).for_each(|node| node.disarm());
    }

    /// Flips a bit of a sequence number or position of one of this server's queues.
    pub fn flip_number(&mut self, peer: ComponentId, random: &mut Random) {
        let own: Vec<&Numbers> = self.numbers.iter().filter(|n| n.writer == peer).collect();
        let mut below = |n: usize| random.below(n as u64) as usize;
        if !own.is_empty() {
            let numbers = own[below(own.len())];
            numbers.flip(below(numbers.count()), below(64) as u32);
        }
    }

    /// Changes a bit of a descriptor in ip's pool, in one of the slots that it uses most: as a bit of its memory that changes before
    /// the frame goes out.
    pub fn flip_descriptor(&mut self, random: &mut Random) {
        let is_frames = |p: &&MappedPool| {
            p.owner == ComponentId::IP && p.dropped_at.is_none() && p.view.slot_size == FRAME_SLOT_LEN
        };
        let Some(frames) = self.pools.iter().find(is_frames) else { return };
        let mut below = |n: usize| random.below(n as u64) as usize;
        let (slot, bit) = (below(4.min(frames.view.slots)), below(size_of::<FrameDescriptor>() * 8));
        let at = frames.view.base + slot * FRAME_SLOT_LEN + bit / 8;
        let mut byte = [0];
        let segment = &frames.segment;
        segment.read(at, &mut byte).expect("within the pool");
        segment.write(at, &[byte[0] ^ 1 << (bit % 8)]).expect("within the pool");
    }

    /// Kills who puts the poison into a ring, as the stack's own servers die of it.
    pub fn poisoner(&self) -> Arc<dyn AccessObserver> {
        Arc::new(Burning(Fuse::default(), self.poison.clone()))
    }

    /// From now on a server that puts these bytes into a program's ring dies of it.
    pub fn poison(&mut self, bytes: Vec<u8>) {
        self.poison.set(bytes);
    }

    /// The messages that kill a server from now on are those with these bytes in them or in the memory that they name.
    pub fn poison_messages(&mut self, peer: ComponentId, bytes: Vec<u8>) {
        self.deadly(peer).set(bytes);
    }

    /// The timers of this name kill a server from now on.
    pub fn poison_timers(&mut self, peer: ComponentId, name: &str) {
        self.deadly(peer).set(name.into());
    }

    /// What kills this server when it handles a message with it, or a timer of that name.
    pub(super) fn deadly(&mut self, peer: ComponentId) -> Poison {
        self.deadly.entry(peer).or_default().clone()
    }

    /// Kills a server; or it is dead already, of its fuse.
    pub fn kill(&mut self, now: Instant, peer: ComponentId) {
        self.surroundings.now = now;
        let Some(i) = self.index(peer) else {
            return;
        };
        if self.members[i].node.take().is_none() {
            return;
        }
        self.note_death(i);
        for other in self.neighbours(peer) {
            let Some(j) = self.index(other) else {
                continue;
            };
            self.call(j, |node, around| {
                // Neighbours still take the dead server's last messages.
                node.take_rest(around);
                node.disconnect(peer);
            });
            self.wake(other);
        }
        self.settle();
        self.members[i].credit = Credit::default();
        // Accusations by or against it are dropped.
        self.accusations.retain(|(by, of)| *by != peer && *of != peer);
        let queue = self.queue(peer, ComponentId::IP).cloned();
        self.numbers.retain(|n| n.writer != peer && n.reader != peer);
        self.drop_pools_of(peer, queue);
    }

    /// A server has died of its fuse before it was there for anybody. What its predecessor left is still to be taken over.
    pub(super) fn died_at_start(&mut self, i: usize) {
        self.burnt += 1;
        self.note_death(i);
        let peer = self.members[i].peer;
        let queue = self.queue(peer, ComponentId::IP).cloned();
        self.drop_pools_of(peer, queue);
    }

    fn note_death(&mut self, i: usize) {
        self.crashes += 1;
        self.died.push(self.members[i].peer);
        self.members[i].deadline = None;
        self.members[i].fuse.light(0);
    }

    fn drop_pools_of(&mut self, peer: ComponentId, queue: Option<Inspection>) {
        let at = self.surroundings.now + OLD_POOLS;
        for pool in self.pools.iter_mut().filter(|p| p.owner == peer && p.dropped_at.is_none()) {
            pool.dropped_at = Some(at);
            pool.queue = queue.clone();
        }
        if peer == ComponentId::IP {
            self.pools.iter_mut().for_each(|pool| pool.queue = None);
        }
    }

    pub(super) fn drop_old_pools(&mut self, now: Instant) {
        let is_old = |p: &MappedPool| p.dropped_at.is_some_and(|at| at <= now);
        let old: Vec<PoolId> = self.pools.iter().filter(|p| is_old(p)).map(|p| p.id).collect();
        self.pools.retain(|p| !old.contains(&p.id));
        for node in self.members.iter_mut().filter_map(|m| m.node.as_mut()) {
            for id in &old {
                node.memory().remove(*id);
            }
        }
    }
}
