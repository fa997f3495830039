//! Speeds of a session.

use super::{COST, Session};
use crate::actuators::held::HeldSpeed;
use crate::actuators::{burner, clock_modulation, cpufreq};
use crate::error::{Error, error};
use crate::journal::Change;
use crate::sensors::{frequency, topology};
use eft_cores::duty::{DutyOptions, Phase, phases};
use eft_cores::speed::{BackEnd, Capabilities, Setting, Speed, choose};
use eft_machine::{CpuId, CpuSet, Share};
use std::collections::BTreeMap;
use std::time::Duration;

impl Session {
    /// What each CPU can do about its speed.
    pub fn capabilities(&self, cpu: CpuId) -> Capabilities {
        Capabilities {
            cpufreq: cpufreq::range(&self.host.tree, cpu),
            clock_modulation: clock_modulation::is_available(&self.host.tree, cpu),
            full: frequency::read(&self.host.tree, cpu).and_then(|frequency| frequency.max.or(frequency.now)),
        }
    }

    /// Sets speeds, all or none. Cores that are slowed by emulation get the phases that `phase` gives them.
    pub fn set_speeds(
        &mut self,
        wishes: &[(CpuId, Speed)],
        back_end: Option<BackEnd>,
        phase: Phase,
        machine: Option<String>,
    ) -> Result<Vec<(CpuId, Setting)>, Error> {
        let situation = self.situation()?;
        let cpus: CpuSet = wishes.iter().map(|(cpu, _)| *cpu).collect();
        situation.check_managed(&cpus)?;
        if let Some(cpu) = cpus.minus(&situation.online).first() {
            return Err(error!(Refused, "CPU {cpu} is offline; an offline core has no speed"));
        }
        let mut settings = Vec::new();
        for (cpu, speed) in wishes {
            let setting = choose(*speed, &self.capabilities(*cpu), back_end)
                .map_err(|reason| error!(Refused, "CPU {cpu}: {reason}"))?;
            settings.push((*cpu, setting));
        }
        let is_emulated = |(_, setting): &&(CpuId, Setting)| {
            setting.back_end == BackEnd::Emulated && setting.share < Share::ALL
        };
        if self.host.tree.is_live() && settings.iter().any(|setting| is_emulated(&setting)) {
            burner::check_allowed()?;
        }
        let before = self.held.clone();
        self.ensure_holder()?;
        // The earlier setting of a core is released first: the effects of back ends must not add up.
        self.release_speeds(&cpus);
        let slowed = settings.iter().filter(is_emulated).count();
        let mut phases = phases(phase, slowed as u32, burner::PERIOD);
        for (cpu, setting) in &settings {
            let begins = is_emulated(&&(*cpu, setting.clone())).then(|| phases.next()).flatten();
            if let Err(reason) = self.set_one(*cpu, setting, phase, begins.unwrap_or_default()) {
                return Err(self.abandon(before, reason));
            }
        }
        self.held.machine = machine;
        self.publish()?;
        if let Err(reason) = self.await_holder() {
            return Err(self.abandon(before, reason));
        }
        Ok(settings)
    }

    fn set_one(
        &mut self,
        cpu: CpuId,
        setting: &Setting,
        phase: Phase,
        begins: Duration,
    ) -> Result<(), Error> {
        let mut held = HeldSpeed {
            back_end: setting.back_end,
            share: setting.share,
            duty: None,
            phase: None,
            full_rate: self.full_rates.get(&cpu).copied(),
        };
        match (setting.back_end, setting.clock, setting.eighths) {
            (BackEnd::Cpufreq, Some(clock), _) if setting.share < Share::ALL => {
                cpufreq::set(&mut self.journal, cpu, clock)?
            }
            (BackEnd::Msr, _, Some(eighths)) if eighths < clock_modulation::FULL => {
                clock_modulation::set(&mut self.journal, cpu, eighths)?;
            }
            (BackEnd::Emulated, _, _) if setting.share < Share::ALL => {
                held.duty = Some(DutyOptions {
                    share: setting.share,
                    period: burner::PERIOD,
                    phase: begins,
                    cost: COST,
                });
                held.phase = Some(phase.name().into());
            }
            // Full speed: the earlier setting is already released.
            _ => return Ok(()),
        }
        self.held.speeds.insert(cpu, held);
        Ok(())
    }

    fn release_speeds(&mut self, cpus: &CpuSet) {
        let dirs: Vec<String> = cpus.iter().map(|cpu| format!("{}/cpufreq/", topology::dir(cpu))).collect();
        let is_ours = |change: &Change| match change {
            Change::Write { path, .. } => dirs.iter().any(|dir| path.starts_with(dir)),
            Change::Msr { cpu, .. } => cpus.contains(*cpu),
            _ => false,
        };
        let notes = self.journal.undo(|entry| is_ours(&entry.change));
        self.notes.extend(notes);
        self.held.speeds.retain(|cpu, _| !cpus.contains(*cpu));
    }

    /// Corrects an emulated speed after it was measured.
    pub fn recalibrate(&mut self, measured: &BTreeMap<CpuId, Share>) -> Result<(), Error> {
        for (cpu, share) in measured {
            if let Some(duty) = self.held.speeds.get_mut(cpu).and_then(|speed| speed.duty.as_mut()) {
                duty.cost = eft_cores::duty::recalibrate(*duty, *share);
            }
        }
        self.publish()?;
        self.await_holder()
    }
}
