//! A hunt for faults: a scenario of whole stacks drawn from a seed, and the checks at its end.
//!
//! Every byte is compared, a standstill is a lost wake-up or a deadlock, and engines and channels assert their
//! invariants. After the last death, the same stacks must carry a stream as usual: a buffer that was lost or given
//! back twice shows there. Over a wire without loss, nothing may be retransmitted where tcp lives.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use eft_base::Random;
use eft_channel::socket::Geometry;
use eft_component::fault::Fault;
use eft_messages::ComponentId;
use thiserror::Error;

use crate::application::Application;
use crate::simulation::{Faults, Settings};
use crate::stack::Stack;
use crate::{Conditions, Simulation};

/// The faults of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Servers other than tcp die between two steps, one at a time, and the wire loses nothing.
    DeathsBetweenSteps,
    /// Servers die between and in the middle of steps, alone or with another.
    DeathsAnywhere,
    /// The same, over a wire that loses, repeats, reorders and corrupts.
    BadWire,
    /// Messages come late or twice, receipts not at all or twice, and queues are damaged. In some scenarios bits of messages of the
    /// servers below tcp are changed instead.
    Damage,
}

const KINDS: [Kind; 4] = [Kind::DeathsBetweenSteps, Kind::DeathsAnywhere, Kind::BadWire, Kind::Damage];

/// What a seed stands for.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub kind: Kind,
    pub settings: Settings,
    pub streams: usize,
    /// Bytes of each stream in both directions, and of one write at most (0: what fits).
    pub up: u64,
    pub down: u64,
    pub write_max: usize,
}

/// The faults in a scenario that ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hunted {
    /// Deaths in all, and those in the middle of a turn.
    pub deaths: u64,
    pub burnt: u64,
    /// Faults other than deaths that were injected.
    pub injected: u64,
    /// Frames that the wire lost.
    pub lost: u64,
    /// Servers that hung.
    pub hangs: u64,
    /// Requests of hostile programs that were granted.
    pub hostile: u64,
}

/// A scenario's failure. Each text says what happened, and holds the last steps.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// An assertion of an engine, of a channel or of the simulator: a wrong byte, a standstill, a lost buffer.
    #[error("{0}")]
    Broken(String),
    /// Segments were sent again although nothing was lost.
    #[error("{0}")]
    SentAgain(String),
}

impl std::ops::AddAssign for Hunted {
    fn add_assign(&mut self, other: Hunted) {
        self.deaths += other.deaths;
        self.burnt += other.burnt;
        self.injected += other.injected;
        self.lost += other.lost;
        self.hangs += other.hangs;
        self.hostile += other.hostile;
    }
}

const BESIDE_TCP: [ComponentId; 4] =
    [ComponentId::IP, ComponentId::FILTER, ComponentId::nic(0), ComponentId::UDP];
const NO_FILTER: &str = include_str!("../../../topologies/no-filter.toml");

/// The smallest ring: full queues and closed windows all the time.
const SMALL_RING: usize = 1 << 12;
/// How long a server may do nothing until it is killed.
const PATIENCE: Duration = Duration::from_millis(50);
/// Longest time that a scenario may take, of virtual time.
const LIMIT: Duration = Duration::from_secs(600);
/// Time after the last fault until all servers are back and delayed messages have arrived.
const CALM: Duration = Duration::from_secs(3);

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

impl Scenario {
    pub fn draw(seed: u64) -> Scenario {
        let mut random = Random::new(seed);
        let r = &mut random;
        let kind = one_of(r, &KINDS);
        let mut settings = Settings { conditions: conditions(r, kind), ..Settings::default() };
        settings.faults = faults(r, kind);
        settings.device.segment_max = if r.chance(0.3) { 0 } else { settings.device.segment_max };
        settings.device.checksum = settings.device.segment_max != 0 || r.chance(0.5);
        let ring = one_of(r, &[SMALL_RING, 1 << 16, 1 << 18]);
        settings.geometry = Geometry { slots: 48, send_len: ring, receive_len: ring };
        if r.chance(0.2) {
            settings.topology = NO_FILTER.into();
            settings.faults.peers.retain(|peer| *peer != ComponentId::FILTER);
        }
        let most = one_of(r, &[2_000, 30_000, 300_000]);
        // Not drawn, so that a seed keeps its meaning.
        settings.ipv6 = seed % 4 == 3;
        settings.hostile = seed % 5 == 2;
        if settings.hostile {
            settings.faults.hostility = 0.1;
        }
        if seed % 5 == 4 && kind != Kind::DeathsBetweenSteps {
            settings.faults.hang = 0.001;
            settings.faults.patience = PATIENCE;
        }
        if kind == Kind::Damage && seed % 7 == 3 {
            // Where a server of the path sends other messages than it should, checksums save the data.
            settings.faults.peers.retain(|peer| *peer != ComponentId::TCP && *peer != ComponentId::UDP);
            settings.faults.kinds = vec![Fault::FlipMessage];
            settings.faults.inject = 0.02;
            settings.device.segment_max = 0;
            settings.device.checksum = false;
        }
        Scenario {
            seed,
            kind,
            settings,
            streams: 1 + r.below(8) as usize,
            up: r.below(most),
            down: r.below(most),
            write_max: one_of(r, &[0, 0, 64, 3000]),
        }
    }

    pub fn run(&self) -> Result<Hunted, Failure> {
        catch_unwind(AssertUnwindSafe(|| self.play())).unwrap_or_else(|why| Err(Failure::Broken(text(why))))
    }

    fn play(&self) -> Result<Hunted, Failure> {
        let calm = Settings { faults: Faults::default(), ..self.settings.clone() };
        let mut s = Simulation::new(self.seed, calm);
        s.serve(self.up, self.down, self.write_max);
        let changes = self.settings.faults.kinds.contains(&Fault::FlipMessage);
        if !changes {
            s.faults = self.settings.faults.clone();
        }
        (0..self.streams).for_each(|_| s.stream(self.up, self.down, self.write_max));
        if changes {
            // A changed answer may refuse a new connection; one that is there must live on.
            let connected = |a: &Application| {
                a.streams.len() == self.streams && a.streams.iter().all(|stream| stream.connected)
            };
            s.run(LIMIT, |s| s.applications.iter().all(connected));
            s.faults = self.settings.faults.clone();
        }
        let all_done = |s: &Simulation, count: usize| {
            s.applications.iter().all(|a| a.streams.len() == count && a.is_done())
        };
        s.run(LIMIT, |s| all_done(s, self.streams));
        s.faults = Faults::default();
        if changes {
            s.stacks.iter_mut().for_each(Stack::disarm);
        }
        s.run_for(CALM);
        self.ask(&s, "with deaths")?;
        (0..self.streams).for_each(|_| s.stream(self.up, self.down, self.write_max));
        s.run(LIMIT, |s| all_done(s, 2 * self.streams));
        self.ask(&s, "after them")?;
        let injected = |peer: &ComponentId| s.total(*peer, "faults_injected");
        Ok(Hunted {
            deaths: s.stacks.iter().map(|stack| stack.crashes).sum(),
            burnt: s.stacks.iter().map(|stack| stack.burnt).sum(),
            injected: self.settings.faults.peers.iter().map(injected).sum(),
            lost: s.link.lost,
            hangs: s.hangs,
            hostile: s.granted_to_hostile(),
        })
    }

    /// Where nothing is lost and tcp lives, nothing needs retransmission. A death may outlast the timeout of a tail
    /// loss probe (RFC 8985 section 7); the probe then finds that nothing was lost.
    fn ask(&self, s: &Simulation, when: &str) -> Result<(), Failure> {
        let total = |name| s.total(ComponentId::TCP, name);
        let lost = total("retransmitted_segments") - total("loss_probes") + total("loss_probes_repaired");
        // A hostile program's segments are counted, too.
        if self.kind == Kind::DeathsBetweenSteps && !self.settings.hostile && lost > 0 {
            return Err(Failure::SentAgain(s.report(&format!("{lost} segments were lost, {when}"))));
        }
        Ok(())
    }
}

fn conditions(r: &mut Random, kind: Kind) -> Conditions {
    let clean = Conditions {
        rate: one_of(r, &[0, 50_000_000, 500_000_000, 2_000_000_000]),
        delay: Duration::from_micros(10 + r.below(1000)),
        ..Conditions::default()
    };
    if kind != Kind::BadWire {
        return clean;
    }
    Conditions {
        jitter: Duration::from_micros(r.below(300)),
        loss: 0.02,
        duplicate: 0.02,
        corrupt: 0.01,
        cut: r.chance(0.5),
        ..clean
    }
}

fn faults(r: &mut Random, kind: Kind) -> Faults {
    let mut peers = BESIDE_TCP.to_vec();
    if kind != Kind::DeathsBetweenSteps {
        peers.push(ComponentId::TCP);
    }
    let crash = one_of(r, &[0.0002, 0.001, 0.005]);
    let some = Faults { peers, downtime: Duration::from_millis(3), ..Faults::default() };
    match kind {
        Kind::DeathsBetweenSteps => Faults { crash, one_at_a_time: true, ..some },
        Kind::DeathsAnywhere | Kind::BadWire => {
            Faults { crash: crash / 4.0, fuse: one_of(r, &[0.001, 0.01]), together: 0.3, ..some }
        }
        Kind::Damage => Faults {
            kinds: vec![Fault::Delay, Fault::Repeat, Fault::Leak, Fault::DoubleFree],
            inject: 0.002,
            flip: one_of(r, &[0.0, 0.01]),
            downtime: Duration::from_millis(1),
            ..some
        },
    }
}

fn text(why: Box<dyn Any + Send>) -> String {
    match why.downcast::<String>() {
        Ok(text) => *text,
        Err(why) => why.downcast_ref::<&str>().map_or("a panic without a word".into(), |text| (*text).into()),
    }
}
