//! What is known of guests and cores, for display.

use std::time::Duration;

use eft_base::time::nanos;
use eft_machine::{CpuSet, Ppm, Share};
use serde::{Deserialize, Serialize};

use super::{Session, Watched};
use crate::sensors::tasks::{self, TaskId};

/// What `eft vm run` publishes and `eft vm top` shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// The process that schedules.
    #[serde(default)]
    pub by: Option<TaskId>,
    pub policy: String,
    /// Part of the fast time dealt out evenly.
    pub even: Share,
    pub deals: u64,
    pub classes: Vec<ClassView>,
    /// Why there are no counters; absent where there are.
    pub counters: Option<String>,
    pub vcpus: Vec<VcpuView>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassView {
    pub name: String,
    /// Relative to the fastest class.
    pub speed: Share,
    pub cpus: CpuSet,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VcpuView {
    pub guest: String,
    pub role: String,
    pub tid: i32,
    pub group: Option<CpuSet>,
    pub class: Option<String>,
    pub is_active: bool,
    /// The guest's state, as its monitor reported it last.
    #[serde(default)]
    pub is_paused: bool,
    pub ipc: Option<f64>,
    pub utilisation: Share,
    pub waiting: Share,
    /// IPC times utilisation: more than 1 where more than one instruction is executed in a cycle.
    pub score: f64,
    /// Of each class, in cores.
    pub dealt: Vec<f64>,
    /// Of its run time so far, on the fastest class.
    pub fast_share: Share,
    pub ran_s: Vec<f64>,
    pub moves: u64,
    pub cache_moves: u64,
    /// Predicted loss of work compared with amp-fair.
    pub slowdown: Share,
    pub is_left_alone: bool,
}

impl Session {
    /// What is known now, for display.
    pub fn view(&self) -> View {
        let host = self.scheduler.host();
        let vcpu = |(index, watched): (usize, &Watched)| {
            let (entry, known) = (&self.scheduler.entries()[index], self.scheduler.known(index));
            let number = |ratio: Ppm| ratio.share().0;
            let ran: Duration = known.run_time.iter().sum();
            VcpuView {
                guest: watched.guest.clone(),
                role: watched.thread.name.clone(),
                tid: watched.thread.id.tid,
                group: entry.group.map(|group| self.sets[group].clone()),
                class: entry.group.map(|group| host.classes[host.class_of(group)].name.clone()),
                is_active: entry.active,
                is_paused: self.guests.iter().any(|guest| guest.is_paused && guest.name == watched.guest),
                ipc: known.ipc.map(number),
                utilisation: known.ran.share(),
                waiting: known.waited.share(),
                score: number(Ppm(known.score)),
                dealt: entry.shares.iter().map(|part| number(*part)).collect(),
                fast_share: Share::of(known.run_time[0], ran),
                ran_s: known.run_time.iter().map(|time| nanos(*time) as f64 / 1e9).collect(),
                moves: known.moves,
                cache_moves: known.cache_moves,
                slowdown: known.slowdown.share(),
                is_left_alone: self.placer.as_ref().is_some_and(|p| p.is_left_alone(watched.thread.id)),
            }
        };
        View {
            by: Some(tasks::myself(&self.tree)),
            policy: self.scheduler.options().policy.to_string(),
            even: self.scheduler.even().share(),
            deals: self.scheduler.deals(),
            classes: (0..host.classes.len())
                .map(|class| ClassView {
                    name: host.classes[class].name.clone(),
                    speed: host.classes[class].speed.share(),
                    cpus: host.of_class(class).fold(CpuSet::new(), |all, group| all.union(&self.sets[group])),
                })
                .collect(),
            counters: self.blind.clone(),
            vcpus: self.watched.iter().enumerate().map(vcpu).collect(),
        }
    }
}
