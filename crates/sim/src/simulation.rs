//! The schedule: which server runs next, when time passes, which server dies. All of it follows from the seed.

mod deaths;
mod settings;

pub use settings::Settings;

use crate::application::Application;
use crate::device::{End, Spare};
use crate::hostile::{self, Hostile};
use crate::link::Link;
use crate::stack::{HOSTILE, Shape, Stack};
use eft_base::{Cidr, Endpoint, Instant, MacAddress, Random};
use eft_component::DeviceInfo;
use eft_component::fault::Fault;
use eft_control::accusation::Verdict;
use eft_harness::Plan;
use eft_messages::ComponentId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

/// Which servers may die, and how often.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub peers: Vec<ComponentId>,
    /// Chance per step that one of them dies.
    pub crash: f64,
    /// How long a dead server stays dead, at most.
    pub downtime: Duration,
    /// No server dies while another of its stack is dead. Only the NIC can repeat what it handed to an ip that
    /// is dead.
    pub one_at_a_time: bool,
    /// Which other faults they may have, and the chance per step.
    pub kinds: Vec<Fault>,
    pub inject: f64,
    /// Chance per step that one of them gets a fuse, and so dies in the middle of a turn.
    pub fuse: f64,
    /// Chance that another server of its stack dies with it.
    pub together: f64,
    /// Chance per step that a sequence number or position of one of their queues is damaged.
    pub flip: f64,
    /// Chance per step that a bit of a descriptor is changed that an ip has written.
    pub flip_descriptor: f64,
    /// Chance per step that one of them does nothing any more, and how long the watchdog waits then.
    pub hang: f64,
    pub patience: Duration,
    /// Chance per step that a hostile program does something, where there is one.
    pub hostility: f64,
}

/// Words in the names of such counters.
const ODD: &[&str] = &[
    "drop", "refused", "full", "error", "retransm", "stale", "bad", "again", "resub", "no_", "damaged",
    "mismatch", "probe", "recover", "spurious",
];

static DEATHS_ARE_NO_NEWS: Once = Once::new();

/// A death in the middle of a turn is a panic that is caught: it needs no word.
fn say_nothing_of_fuses() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let silent = |s: &String| s == eft_transport::FUSE_BURNT || s == crate::stack::POISONED;
        if !info.payload().downcast_ref::<String>().is_some_and(silent) {
            usual(info);
        }
    }));
}

/// Two stacks and the wire between them.
pub struct Simulation {
    pub seed: u64,
    pub now: Instant,
    pub random: Random,
    pub stacks: [Stack; 2],
    pub applications: [Application; 2],
    hostiles: [Hostile; 2],
    pub link: Link,
    /// The address of side 1.
    server: IpAddr,
    pub faults: Faults,
    /// Side, server, and when it comes back.
    dead: Vec<(usize, ComponentId, Instant)>,
    /// Side, server, which life of it, and when the watchdog kills it.
    hung: Vec<(usize, ComponentId, u32, Instant)>,
    /// How many were hung.
    pub hangs: u64,
    /// Deaths by fuses that have been handled.
    buried: [u64; 2],
    pub steps: u64,
    /// The last steps, for failure lines.
    trace: VecDeque<String>,
}

impl Simulation {
    pub fn new(seed: u64, settings: Settings) -> Simulation {
        DEATHS_ARE_NO_NEWS.call_once(say_nothing_of_fuses);
        let now = Instant::from_millis(1000);
        let spare = Spare::default();
        let ends = [0, 1].map(|side| {
            Rc::new(RefCell::new(End {
                info: DeviceInfo { mac: MacAddress([2, 0, 0, 0, 0, side as u8 + 1]), ..settings.device },
                outgoing: VecDeque::new(),
                incoming: VecDeque::new(),
                depth: 64,
                spare: spare.clone(),
            }))
        });
        let stack = |side: usize| {
            let shape = Shape {
                addresses: match settings.ipv6 {
                    true => vec![address(side), address6(side)],
                    false => vec![address(side)],
                },
                rules: settings.rules.clone(),
                topology: settings.topology.clone(),
                transport: settings.transport.clone(),
                geometry: settings.geometry,
                sizes: settings.sizes,
                seed: seed.wrapping_mul(2) + side as u64,
                record: settings.record.then_some(settings.record_max),
                hostile: settings.hostile,
                is_lasting: settings.is_lasting,
            };
            Stack::new(now, shape, ends[side].clone())
        };
        Simulation {
            seed,
            now,
            random: Random::new(seed),
            stacks: [stack(0), stack(1)],
            applications: Default::default(),
            hostiles: [0, 1].map(|side| {
                let to = [0, 1].map(|side| settings.address(side).address);
                Hostile::new(seed.wrapping_mul(3) + side, to.to_vec())
            }),
            link: Link::new(settings.conditions, ends.clone()),
            server: settings.address(1).address,
            faults: settings.faults,
            dead: Vec::new(),
            hung: Vec::new(),
            hangs: 0,
            buried: [0; 2],
            steps: 0,
            trace: VecDeque::new(),
        }
    }

    /// A stream from side 0 to port 80 of side 1, with `up` and `down` bytes.
    pub fn stream(&mut self, up: u64, down: u64, write_max: usize) {
        self.stream_from(0, up, down, write_max);
    }

    /// The same with TCP Fast Open, from side 0.
    pub fn stream_early(&mut self, up: u64, down: u64) {
        let to = Endpoint::new(self.server, 80);
        self.applications[0].connect_early(to, plan(up, down, 0));
    }

    /// The same from either side; side 1 then speaks with itself.
    pub fn stream_from(&mut self, side: usize, up: u64, down: u64, write_max: usize) {
        let to = Endpoint::new(self.server, 80);
        let plan = plan(up, down, write_max);
        self.applications[side].connect(to, plan);
    }

    /// Side 1 serves such streams; returns when it listens.
    pub fn serve(&mut self, up: u64, down: u64, write_max: usize) {
        let plan = plan(down, up, write_max);
        self.applications[1].listen(80, plan);
        self.run(Duration::from_secs(5), |s| s.applications[1].listening() > 0);
    }

    /// Runs until `done`, for at most `limit` of virtual time.
    pub fn run(&mut self, limit: Duration, done: impl Fn(&Simulation) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end {
                self.fail(&format!("not done after {limit:?}"));
            }
            if !self.step() {
                self.fail("everybody sleeps, and nothing will happen any more");
            }
        }
    }

    /// Runs on for a while, whatever happens.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end && self.step() {}
    }

    /// Ends the test; the line says how to repeat it.
    pub fn fail(&self, why: &str) -> ! {
        panic!("{}", self.report(why));
    }

    /// How things stand, and what led there.
    pub fn report(&self, why: &str) -> String {
        let mut text =
            format!("seed {}: {why} (at {} us, step {})\n", self.seed, self.now.as_micros(), self.steps);
        for (side, app) in self.applications.iter().enumerate() {
            text += &format!("side {side}: failures {:?}\n", app.failures);
            for s in &app.streams {
                text += &format!("  {s:?}\n");
            }
        }
        for line in &self.trace {
            text += &format!("  {line}\n");
        }
        text + &self.oddities()
    }

    /// Counters of unusual events.
    fn oddities(&self) -> String {
        let is_odd = |name: &str| ODD.iter().any(|word| name.contains(word));
        let mut text = String::new();
        for (side, stack) in self.stacks.iter().enumerate() {
            for peer in stack.peers() {
                let all = stack.all_counters(peer);
                let odd: Vec<_> = all.iter().filter(|(name, count)| *count > 0 && is_odd(name)).collect();
                text += &format!("  side {side} {peer}: {odd:?}\n");
            }
        }
        text
    }

    fn note(&mut self, line: String) {
        if self.trace.len() >= 40 {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// One turn of a server or program, or the passing of time. False: nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.maybe_kill();
        self.maybe_inject();
        self.maybe_flip();
        self.maybe_flip_descriptor();
        self.maybe_light();
        self.maybe_hang();
        self.maybe_be_hostile();
        self.kill_hung();
        self.revive();
        self.pump();
        let mut runnable: Vec<(usize, Option<ComponentId>)> = Vec::new();
        for side in 0..2 {
            runnable.extend(self.stacks[side].runnable(self.now).map(|p| (side, Some(p))));
            if self.applications[side].is_runnable(&self.stacks[side]) {
                runnable.push((side, None));
            }
        }
        if runnable.is_empty() {
            return self.pass_time();
        }
        let (side, who) = runnable[self.random.below(runnable.len() as u64) as usize];
        match who {
            Some(peer) => {
                let budget = 1 + self.random.below(64) as usize;
                self.stacks[side].step(self.now, peer, budget);
                self.bury(side);
                for (accuser, accused, verdict) in self.stacks[side].judge_accused(self.now) {
                    let now = self.now.as_micros();
                    self.note(format!("{now} us: {accuser} of side {side} accuses {accused}: {verdict:?}"));
                    match verdict {
                        Verdict::Accused => self.kill(side, accused),
                        Verdict::Accuser => self.kill(side, accuser),
                        Verdict::Neither => {}
                    }
                }
            }
            None => {
                self.applications[side].step(self.now, &mut self.stacks[side], self.seed);
                self.bury(side);
            }
        }
        self.now += Duration::from_nanos(200 + self.random.below(2000));
        true
    }

    fn hand_over_effects(&mut self, side: usize) {
        for effect in std::mem::take(&mut self.stacks[side].effects) {
            match effect.is_for(HOSTILE, hostile::CONNECTION) {
                true => self.hostiles[side].tell(&effect),
                false => self.applications[side].tell(effect),
            }
        }
    }

    /// Moves frames between devices and wire, and wakes the drivers concerned.
    fn pump(&mut self) {
        let took = self.link.take(self.now, &mut self.random);
        let got = self.link.deliver(self.now);
        for side in 0..2 {
            if took[side] || got[side] {
                self.stacks[side].wake(ComponentId::nic(0));
            }
        }
    }

    fn pass_time(&mut self) -> bool {
        let stacks = self.stacks.iter().filter_map(Stack::deadline);
        let births = self.dead.iter().map(|(_, _, at)| *at);
        let hung = self.hung.iter().map(|(.., at)| *at);
        let next = stacks.chain(births).chain(hung).chain(self.link.deadline()).min();
        match next {
            Some(at) => {
                self.now = self.now.max(at);
                true
            }
            None => false,
        }
    }

    /// How many requests of hostile programs were granted.
    pub fn granted_to_hostile(&self) -> u64 {
        self.hostiles.iter().map(Hostile::granted).sum()
    }

    /// A counter, summed over both sides.
    pub fn total(&self, peer: ComponentId, name: &str) -> u64 {
        self.stacks.iter().map(|s| s.counter(peer, name)).sum()
    }
}

/// The IPv6 address of each side.
pub fn address6(side: usize) -> Cidr {
    let text = ["fd77::1/64", "fd77::2/64"][side];
    text.parse().expect("an address")
}

/// The IPv4 address of each side.
pub fn address(side: usize) -> Cidr {
    let text = ["10.77.0.1/24", "10.77.0.2/24"][side];
    text.parse().expect("an address")
}

/// Programs that write little at a time want it to leave at once.
fn plan(send: u64, receive: u64, write_max: usize) -> Plan {
    Plan { send, receive, write_max, shutdown: true, no_delay: write_max > 0, ..Plan::default() }
}
