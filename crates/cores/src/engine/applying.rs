//! Carries out a plan, in the order of [`crate::wanted`], and rolls back what fails.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use eft_base::{ComponentId, Instant};
use eft_component::Outbox;

use super::{Cores, Effect};
use crate::error::EngineError;
use crate::history::Outcome;
use crate::member::{MemberView, Place};
use crate::wanted::{CpuChange, Wanted};

/// How long moves may take before the next stage begins regardless.
pub const ARRIVAL: Duration = Duration::from_millis(200);

/// A plan that is being applied.
#[derive(Clone, Debug)]
pub struct Applying {
    old: Wanted,
    new: Wanted,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The change with this ticket makes room.
    MakingRoom(u64),
    /// The components have been told where to move.
    Moving { since: Instant },
    /// The change with this ticket takes room away.
    TakingAway { ticket: u64, late: bool },
}

impl Applying {
    /// When the moves will have taken too long.
    pub fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Moving { since } => Some(since + ARRIVAL),
            Stage::MakingRoom(_) | Stage::TakingAway { .. } => None,
        }
    }

    /// What is in force if applying stops at this stage.
    fn reached(self) -> Wanted {
        match self.stage {
            Stage::TakingAway { .. } => self.new,
            Stage::MakingRoom(_) | Stage::Moving { .. } => self.old.with_room_for(self.new),
        }
    }

    fn is_there(&self, member: &MemberView) -> bool {
        let wanted = self.new.places.get(&member.peer.to_string());
        let at = (member.cpu, member.dedicated);
        !member.running || wanted.is_none_or(|place| !member.moving && at == (place.cpu, place.dedicated))
    }
}

impl Cores {
    /// Starts to apply the last decision.
    pub(super) fn begin(&mut self, wanted: Wanted, now: Instant, out: &mut Outbox<Effect>) {
        if let Some(applying) = self.applying.take() {
            self.applied = applying.reached();
            let newest = self.history.taken();
            self.history.conclude_where(|number| number < newest, &Outcome::Overtaken);
        }
        if wanted.touches_cpus() && self.managed().is_empty() {
            return self.failed("the plan sets speeds or parks, but no CPU is managed", out);
        }
        self.trouble = None;
        let room = CpuChange::making_room(&self.applied, &wanted);
        let mut applying =
            Applying { old: self.applied.clone(), new: wanted, stage: Stage::Moving { since: now } };
        if room.is_empty() {
            self.applying = Some(applying);
            self.arrange(now, out);
        } else {
            applying.stage = Stage::MakingRoom(self.change(room, out));
            self.applying = Some(applying);
        }
    }

    fn change(&mut self, change: CpuChange, out: &mut Outbox<Effect>) -> u64 {
        self.ticket += 1;
        out.push(Effect::Change { ticket: self.ticket, change });
        self.ticket
    }

    /// There is room: the components may move.
    fn arrange(&mut self, now: Instant, out: &mut Outbox<Effect>) {
        let Some(applying) = &mut self.applying else { return };
        applying.stage = Stage::Moving { since: now };
        let places: Vec<(ComponentId, Place)> = self
            .members
            .iter()
            .filter_map(|m| Some((m.peer, *applying.new.places.get(&m.peer.to_string())?)))
            .collect();
        if !places.is_empty() {
            out.push(Effect::Arrange(places));
        }
        self.go_on(now, out);
    }

    /// Carries out the rest of the plan once every component is in its place.
    pub(super) fn go_on(&mut self, now: Instant, out: &mut Outbox<Effect>) {
        let Some(applying) = &self.applying else { return };
        let Stage::Moving { since } = applying.stage else { return };
        let late = now.saturating_since(since) >= ARRIVAL;
        if !late && !self.members.iter().all(|m| applying.is_there(m)) {
            return;
        }
        let change = CpuChange::taking_away(&applying.old, &applying.new);
        // Remembered before the change is made: if cores dies during it, its successor undoes it at the end.
        out.push(Effect::Remember(applying.new.clone()));
        if change.is_empty() {
            return self.done(late);
        }
        let ticket = self.change(change, out);
        if let Some(applying) = &mut self.applying {
            applying.stage = Stage::TakingAway { ticket, late };
        }
    }

    fn done(&mut self, late: bool) {
        let Some(applying) = self.applying.take() else { return };
        self.applied = applying.new;
        self.history.conclude(if late { Outcome::AppliedLate } else { Outcome::Applied });
    }

    /// A change of CPUs succeeded or failed.
    pub(super) fn changed(
        &mut self,
        ticket: u64,
        result: Result<(), EngineError>,
        now: Instant,
        out: &mut Outbox<Effect>,
    ) {
        if self.undoing.take_if(|undoing| *undoing == ticket).is_some() {
            return match result {
                Ok(()) => out.push(Effect::Remember(self.applied.clone())),
                Err(why) => out.push(Effect::Complain(alloc::format!(
                    "not everything could be undone: {why}; try `eft cpu restore`"
                ))),
            };
        }
        let Some(applying) = &self.applying else { return };
        let next = match applying.stage {
            Stage::MakingRoom(awaited) if awaited == ticket => None,
            Stage::TakingAway { ticket: awaited, late } if awaited == ticket => Some(late),
            // It belongs to a plan that has been given up since.
            _ => return,
        };
        match (result, next) {
            (Err(why), _) => self.failed(&why.to_string(), out),
            (Ok(()), None) => self.arrange(now, out),
            (Ok(()), Some(late)) => self.done(late),
        }
    }

    /// A plan failed: reports it in one line; the last good plan stays.
    pub(super) fn failed(&mut self, why: &str, out: &mut Outbox<Effect>) {
        self.history.conclude(Outcome::Failed(why.to_string()));
        self.trouble = Some(why.to_string());
        out.push(Effect::Complain(alloc::format!("the plan was not carried out: {why}")));
        let Some(Applying { old, new, stage }) = self.applying.take() else { return };
        // What was done of it is undone as far as possible; nothing waits for the answer.
        let back = CpuChange::between(&new, &old);
        if !back.is_empty() && !self.managed().is_empty() {
            self.change(back, out);
        }
        if matches!(stage, Stage::TakingAway { .. }) {
            out.push(Effect::Remember(old));
        }
    }

    /// Undoes all changes of CPUs. Components stay in their places.
    pub(super) fn undo(&mut self, out: &mut Outbox<Effect>) {
        if let Some(applying) = self.applying.take() {
            self.applied = applying.reached();
        }
        let applied = core::mem::take(&mut self.applied);
        if applied.touches_cpus() {
            let back = CpuChange::between(&applied, &applied.without_changes());
            self.undoing = Some(self.change(back, out));
        }
    }
}
