//! One way of placing two guests, for one round.

use std::time::Duration;

use anyhow::{Result, anyhow};
use eft_host::clock;
use eft_host::guests::discover::{GroupSpec, Members, Wanted};
use eft_host::guests::session::view::View;
use eft_host::guests::session::{Session, Settings};
use eft_host::sensors::Tree;
use eft_machine::{CpuId, CpuSet};
use eft_vcpu::options::{Options, Policy};

use super::guest::{Guest, Seen, judge, parts};
use super::machine::Slowed;
use super::{VmArguments, qemu, worker};
use crate::ground::End;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    Processes,
    Qemu,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Qemu => "QEMU",
        }
    }
}

/// How the guests are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The CPU-bound guest on the fast CPU.
    PinnedWell,
    PinnedBadly,
    Linux,
    Fair,
    Vm,
}

pub const WAYS: [(Way, &str); 5] = [
    (Way::PinnedWell, "pinned, CPU-bound on fast"),
    (Way::PinnedBadly, "pinned, CPU-bound on slow"),
    (Way::Linux, "Linux's own placement"),
    (Way::Fair, "amp-fair"),
    (Way::Vm, "amp-vm"),
];

const NAMES: [&str; 2] = ["bench-busy", "bench-paced"];
const PACED_SHARE: f64 = 0.3;

/// What was seen, and what was dealt to each guest of the fast CPU, if anything was.
pub struct Round {
    pub seen: Seen,
    pub dealt: Option<[f64; 2]>,
}

impl Round {
    /// How far a guest's part of the fast time is from its part of what was dealt.
    pub fn off_points(&self) -> Option<f64> {
        let (got, dealt) = (self.seen.fast_parts(), parts(self.dealt?));
        Some((got[0] - dealt[0]).abs().max((got[1] - dealt[1]).abs()) * 100.0)
    }
}

/// What all rounds have in common.
pub struct Setting<'a> {
    arguments: &'a VmArguments,
    cpus: CpuSet,
    slowed: &'a Slowed,
    end: &'a End,
    /// Of the paced QEMU guest.
    rounds: u32,
}

impl<'a> Setting<'a> {
    pub fn prepare(
        arguments: &'a VmArguments,
        cpus: CpuSet,
        slowed: &'a Slowed,
        kinds: &[Kind],
        end: &'a End,
    ) -> Result<Self> {
        let fast = CpuSet::one(cpus.first().unwrap_or(CpuId(0)));
        let rounds =
            if kinds.contains(&Kind::Qemu) { qemu::pace(PACED_SHARE, &slowed.dir, &fast, end)? } else { 0 };
        Ok(Self { arguments, cpus, slowed, end, rounds })
    }

    fn start(&self, kind: Kind) -> Result<[Guest; 2]> {
        let dir = &self.slowed.dir;
        Ok(match kind {
            Kind::Processes => [worker::start(1.0)?, worker::start(PACED_SHARE)?],
            Kind::Qemu => [qemu::start(NAMES[0], dir, None)?, qemu::start(NAMES[1], dir, Some(self.rounds))?],
        })
    }

    fn settings(&self, kind: Kind, guests: &[Guest; 2], policy: Policy) -> Settings {
        let group = |i: usize| GroupSpec {
            name: NAMES[i].into(),
            members: Members::Processes(vec![guests[i].pid()]),
        };
        let wanted = match kind {
            Kind::Processes => {
                Wanted { groups: vec![group(0), group(1)], groups_only: true, ..Wanted::default() }
            }
            Kind::Qemu => Wanted { only: NAMES.map(String::from).to_vec(), ..Wanted::default() },
        };
        Settings {
            wanted,
            options: Options { policy, ..Options::default() },
            cpus: Some(self.cpus.clone()),
            state_dir: self.slowed.dir.join("vm"),
            cpu_state_dir: self.slowed.dir.join("cpu"),
            ..Settings::default()
        }
    }

    pub fn round(&self, kind: Kind, way: Way) -> Result<Round> {
        let (fast, slow) = (self.cpus.first().unwrap_or(CpuId(0)), self.cpus.last().unwrap_or(CpuId(0)));
        let guests = self.start(kind)?;
        self.end.sleep(Duration::from_millis(300))?;
        let length = Duration::from_secs_f64(self.arguments.seconds);
        let pins = match way {
            Way::PinnedWell => Some([CpuSet::one(fast), CpuSet::one(slow)]),
            Way::PinnedBadly => Some([CpuSet::one(slow), CpuSet::one(fast)]),
            _ => None,
        };
        for (i, guest) in guests.iter().enumerate() {
            guest.put(pins.as_ref().map_or(&self.cpus, |pins| &pins[i]))?;
        }
        let policy = match way {
            Way::Fair => Policy::AmpFair(100),
            Way::Vm => Policy::AmpVm,
            _ => {
                self.end.sleep(Duration::from_secs(1))?;
                return Ok(Round { seen: judge(&guests, fast, length, self.end)?, dealt: None });
            }
        };
        let mut session = Session::open(&Tree::live(), self.settings(kind, &guests, policy))?;
        session
            .run(clock::now() + Duration::from_secs_f64(self.arguments.settle), || self.end.check().is_err());
        let seen = std::thread::scope(|scope| {
            let judge = scope.spawn(|| judge(&guests, fast, length, self.end));
            session.run(clock::now() + length * 2, || judge.is_finished());
            judge.join().map_err(|_| anyhow!("the judge failed"))
        });
        let view = session.view();
        session.restore().iter().for_each(|note| eprintln!("eft: {note}"));
        Ok(Round { seen: seen??, dealt: Some(NAMES.map(|name| dealt(name, &view))) })
    }
}

fn dealt(guest: &str, view: &View) -> f64 {
    view.vcpus.iter().filter(|v| v.guest == guest).filter_map(|v| v.dealt.first()).sum()
}
