//! The modelled machine in time: plans are applied, loads come and go, samples are taken.

mod readings;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use eft_base::{ComponentId, Random};
use eft_cores::error::EngineError;
use eft_cores::member::Place;
use eft_cores::plan::{Plan, Seat};
use eft_cores::sample::Traffic;
use eft_cores::wanted::CpuChange;
use eft_machine::{CpuId, CpuSet, Share};

use crate::machine::hardware::{Activity, Hardware};
use crate::machine::load::{Load, Schedule};
use crate::machine::others::{Disturbance, Others};
use crate::machine::shape::{Shape, components};
use crate::machine::steady::{CpuShare, Steady, steady};

const STEP_NS: u64 = 2_000_000;
/// TCP opens its window over several round trips.
const RAMP_NS: f64 = 15_000_000.0;
/// The pause for one moved component, and for a change of speed.
pub const MOVE_NS: u64 = 400_000;
const SPEED_NS: u64 = 50_000;
const NOISE: f64 = 0.02;
/// How long noise and interference stay the same.
const MOOD_NS: u64 = 10_000_000;
const QUEUE: u32 = 64;
/// How often the kernel's account of the CPUs is read, and in which units it counts (proc_stat(5)).
const ACCOUNT_NS: u64 = 20_000_000;
const TICK_NS: u64 = 10_000_000;
const UPPER_MARK: f64 = 0.75;
const LOWER_MARK: f64 = 0.125;

pub struct World {
    pub hardware: Hardware,
    pub schedule: Schedule,
    plan: Plan,
    now_ns: u64,
    random: Random,
    rate: f64,
    stalled_ns: u64,
    messages: f64,
    /// How often a component reported that it gets too little time.
    starved: u64,
    energy_uj: f64,
    parts: BTreeMap<String, Part>,
    cpu_ns: BTreeMap<CpuId, (f64, f64)>,
    /// The kernel's account of them as it was last read, and when: busy and idle ns.
    accounts: BTreeMap<CpuId, (u64, u64)>,
    accounted_to_ns: u64,
    /// The last results, by load and plan; a load that alternates has two.
    known: VecDeque<(String, Plan, Rc<Steady>)>,
    disturbance: Disturbance,
    noise: f64,
    /// When both change next.
    mood_ends_ns: u64,
    traffic: Traffic,
    traffic_rest: BTreeMap<&'static str, f64>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    busy_ns: f64,
    polling_ns: f64,
    sleeping_ns: f64,
    heartbeat: f64,
    wake_ups: f64,
    wakes_sent: f64,
    high: f64,
    low: f64,
    overloads: u64,
    underloads: u64,
}

impl Part {
    fn unseen() -> Part {
        Part { low: f64::from(QUEUE), ..Part::default() }
    }
}

impl World {
    pub fn new(shape: &Shape, schedule: Schedule, seed: u64) -> Self {
        let hardware = Hardware::new(shape.machine(), shape.duty_levels().is_none());
        let parts = components().into_iter().map(|name| (name, Part::unseen())).collect();
        Self {
            hardware,
            schedule,
            plan: Plan::default(),
            now_ns: 0,
            random: Random::new(seed),
            rate: 0.0,
            stalled_ns: 0,
            messages: 0.0,
            starved: 0,
            energy_uj: 0.0,
            parts,
            cpu_ns: BTreeMap::new(),
            accounts: BTreeMap::new(),
            accounted_to_ns: 0,
            known: VecDeque::new(),
            disturbance: Disturbance::default(),
            noise: 1.0,
            mood_ends_ns: 0,
            traffic: Traffic::default(),
            traffic_rest: BTreeMap::new(),
        }
    }

    pub fn with(mut self, others: Others) -> Self {
        self.disturbance = Disturbance::by(others);
        self
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Messages carried since the beginning.
    pub fn messages(&self) -> f64 {
        self.messages
    }

    /// Modelled energy since the beginning.
    pub fn energy_j(&self) -> f64 {
        self.energy_uj * 1e-6
    }

    pub fn apply(&mut self, plan: &Plan) {
        let moved = plan.seats.iter().filter(|(name, seat)| self.plan.seats.get(*name) != Some(seat)).count();
        let named: CpuSet = self.plan.speeds.keys().chain(plan.speeds.keys()).copied().collect();
        let changed = named.iter().filter(|cpu| self.plan.speed(*cpu) != plan.speed(*cpu)).count();
        self.stalled_ns += moved as u64 * MOVE_NS + changed as u64 * SPEED_NS;
        self.plan = plan.clone();
    }

    /// The plan in force.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Carries out one step of a plan on the CPUs. Unmanaged CPUs cannot be changed.
    ///
    /// # Panics
    /// If a component would be left on a parked CPU: the caller has to prevent that.
    pub fn change(&mut self, change: &CpuChange) -> Result<(), EngineError> {
        let slowed: CpuSet = change.faster.keys().chain(change.slower.keys()).copied().collect();
        let changed = change.unpark.union(&change.park).union(&slowed);
        if let Some(cpu) = changed.minus(&self.hardware.machine().managed).first() {
            return Err(EngineError::Host(format!("CPU {cpu} is not managed")));
        }
        let stranded = self.plan.used().and(&change.park);
        assert!(stranded.is_empty(), "{} is parked under {}", stranded, self.plan);
        let mut plan = self.plan.clone();
        plan.parked = plan.parked.minus(&change.unpark).union(&change.park);
        for (cpu, share) in change.faster.iter().chain(&change.slower) {
            assert!(share.is_valid() && *share != Share::NONE, "CPU {cpu} at {share} of its speed");
            plan.speeds.insert(*cpu, *share);
        }
        plan.speeds.retain(|_, share| *share < Share::ALL);
        self.apply(&plan);
        Ok(())
    }

    /// Moves components; one that may run anywhere goes to CPU 0. Returns those whose seats changed.
    ///
    /// # Panics
    /// If one would go to a parked CPU.
    pub fn arrange(&mut self, places: &[(ComponentId, Place)]) -> Vec<(ComponentId, Place)> {
        let mut plan = self.plan.clone();
        for (peer, place) in places {
            let seat = Seat { cpu: place.cpu.unwrap_or(CpuId(0)), dedicated: place.dedicated };
            assert!(!plan.parked.contains(seat.cpu), "{peer} goes to CPU {}, which is parked", seat.cpu);
            plan.seats.insert(peer.to_string(), seat);
        }
        let is_new = |peer: &ComponentId| {
            let name = peer.to_string();
            plan.seats.get(&name) != self.plan.seats.get(&name)
        };
        let moved = places.iter().filter(|(peer, _)| is_new(peer)).copied().collect();
        self.apply(&plan);
        moved
    }

    /// A plan's throughput under a load, and the modelled power meanwhile.
    pub fn steady(&self, plan: &Plan, load: &Load) -> (Steady, f64) {
        let result = steady(&self.hardware, plan, load);
        let share = |share: &CpuShare| (share.busy + share.polling).min(1.0);
        let activity: Activity = result.cpus.iter().map(|(cpu, of)| (*cpu, share(of))).collect();
        let power_w = self.hardware.power_w(plan, &activity);
        (result, power_w)
    }

    fn now(&mut self, load: &Load) -> Rc<Steady> {
        let known = self.known.iter().find(|(name, known, _)| *name == load.name && *known == self.plan);
        if let Some((.., result)) = known {
            return result.clone();
        }
        let result = Rc::new(steady(&self.hardware, &self.plan, load));
        self.known.truncate(1);
        self.known.push_front((load.name.clone(), self.plan.clone(), result.clone()));
        result
    }

    /// Lets time pass.
    pub fn pass(&mut self, length_ns: u64) {
        let end_ns = self.now_ns + length_ns;
        while self.now_ns < end_ns {
            if self.now_ns >= self.mood_ends_ns {
                self.noise = 1.0 + NOISE * (self.random.below(2001) as f64 / 1000.0 - 1.0) * 1.7;
                self.disturbance.pass(&mut self.random);
                self.starved += u64::from(self.disturbance.starves());
                self.mood_ends_ns = self.now_ns + MOOD_NS;
            }
            let step_ns = STEP_NS.min(end_ns.min(self.mood_ends_ns) - self.now_ns);
            self.step(step_ns, self.noise);
        }
    }

    fn account(&mut self) {
        let in_ticks = |ns: f64| ns as u64 / TICK_NS * TICK_NS;
        let counted = |(cpu, (busy_ns, idle_ns)): (&CpuId, &(f64, f64))| {
            (*cpu, (in_ticks(*busy_ns), in_ticks(*idle_ns)))
        };
        self.accounts = self.cpu_ns.iter().map(counted).collect();
        self.accounted_to_ns = self.now_ns;
    }

    fn step(&mut self, step_ns: u64, noise: f64) {
        let load = self.schedule.at(self.now_ns).cloned();
        self.now_ns += step_ns;
        let Some(load) = load else {
            self.rate = 0.0;
            return self.rest(step_ns);
        };
        let steady = self.now(&load);
        let lost_ns = self.stalled_ns.min(step_ns);
        self.stalled_ns -= lost_ns;
        let open = 1.0 - lost_ns as f64 / step_ns as f64;
        self.rate += (steady.rate - self.rate) * (1.0 - (-(step_ns as f64) / RAMP_NS).exp());
        // A plan that can do less does so at once.
        self.rate = self.rate.min(steady.rate);
        let rate = (self.rate * noise).min(steady.rate * (1.0 + NOISE)) * open;
        let done = rate * self.disturbance.left;
        self.count(&load, done * step_ns as f64 * 1e-9);
        self.spend(&steady, done * self.disturbance.dearer, step_ns);
    }

    fn rest(&mut self, step_ns: u64) {
        let nothing = Steady::default();
        self.spend(&nothing, 0.0, step_ns);
    }

    fn count(&mut self, load: &Load, messages: f64) {
        self.messages += messages;
        let each = load.per_thousand;
        let mut add = |name: &'static str, per_thousand: u64, counter: &mut u64| {
            let rest = self.traffic_rest.entry(name).or_default();
            *rest += messages * per_thousand as f64 / 1000.0;
            *counter += *rest as u64;
            *rest -= (*rest as u64) as f64;
        };
        let traffic = &mut self.traffic;
        add("received_bytes", each.received_bytes, &mut traffic.received_bytes);
        add("sent_bytes", each.sent_bytes, &mut traffic.sent_bytes);
        add("received_segments", each.received_segments, &mut traffic.received_segments);
        add("sent_segments", each.sent_segments, &mut traffic.sent_segments);
        add("received_empty", each.received_empty_segments, &mut traffic.received_empty_segments);
        add("sent_empty", each.sent_empty_segments, &mut traffic.sent_empty_segments);
        add("accepted", each.accepted_connections, &mut traffic.accepted_connections);
        add("closed", each.closed_connections, &mut traffic.closed_connections);
        add("ip_received", each.ip_received_bytes, &mut traffic.ip_received_bytes);
        add("ip_sent", each.ip_sent_bytes, &mut traffic.ip_sent_bytes);
        traffic.connections_open = load.connections_open;
    }

    fn spend(&mut self, steady: &Steady, rate: f64, step_ns: u64) {
        let length = step_ns as f64;
        let used = if steady.rate > 0.0 { rate / steady.rate } else { 0.0 };
        let mut activity = Activity::new();
        self.spend_of_others(steady, used, length);
        for cpu in self.plan.used().iter() {
            let share = steady.cpus.get(&cpu).copied().unwrap_or_default();
            let busy = (share.busy * used).min(1.0);
            let polling = share.polling.min(1.0 - busy);
            activity.insert(cpu, busy + polling);
            let (busy_ns, idle_ns) = self.cpu_ns.entry(cpu).or_default();
            *busy_ns += (busy + polling) * length;
            *idle_ns -= (busy + polling) * length;
            self.spend_on(cpu, steady, rate, busy, polling, share.messages * used.min(1.0), length);
        }
        let watts = self.hardware.power_w(&self.plan, &activity);
        self.energy_uj += watts * length * 1e-3;
    }

    /// Charges each CPU for the load's program and peer; the rest is idle until the stack takes its share.
    fn spend_of_others(&mut self, steady: &Steady, used: f64, length: f64) {
        for cpu in self.plan.used().iter().chain(steady.cpus.keys().copied()).collect::<CpuSet>().iter() {
            let others = steady.cpus.get(&cpu).map_or(0.0, |share| (share.others * used).min(1.0));
            let (busy_ns, idle_ns) = self.cpu_ns.entry(cpu).or_default();
            *busy_ns += others * length;
            *idle_ns += (1.0 - others) * length;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn spend_on(
        &mut self,
        cpu: CpuId,
        steady: &Steady,
        rate: f64,
        busy: f64,
        polling: f64,
        messages: f64,
        length: f64,
    ) {
        let names: Vec<String> = self.plan.on(cpu).map(String::from).collect();
        let of = |name: &String| steady.service_ns.get(name).copied().unwrap_or(0.0);
        let total: f64 = names.iter().map(of).sum();
        for name in &names {
            let Some(part) = self.parts.get_mut(name) else { continue };
            let share = if total > 0.0 { of(name) / total } else { 0.0 };
            part.busy_ns += busy * share * length;
            part.polling_ns += polling * share * length;
            part.sleeping_ns += (1.0 - busy * share - polling * share) * length;
            let count = rate * length * 1e-9;
            part.heartbeat += count * share.min(1.0) + if share > 0.0 { 1.0 } else { 0.0 };
            part.wake_ups += steady.wakes_received.get(name).copied().unwrap_or(0.0) * count;
            part.wakes_sent += steady.wakes_sent.get(name).copied().unwrap_or(0.0) * count;
            let queued = (messages * share).min(f64::from(QUEUE));
            part.high = part.high.max((queued * 1.3).min(f64::from(QUEUE)));
            part.low = part.low.min(queued * 0.5);
            part.overloads += u64::from(queued > UPPER_MARK * f64::from(QUEUE));
            part.underloads += u64::from(queued < LOWER_MARK * f64::from(QUEUE));
        }
    }
}
