//! The `cores` component, live: observes, asks the policy, applies what it says.
//!
//! It owns nothing that the data path needs. It sees status pages read-only, asks the supervisor for every move, and
//! changes speeds and parking through the journaled actuators. If it dies the stack runs on under the last plan, which
//! the supervisor remembers for it; reborn, it takes up there.
//!
//! It wakes as often as its policy wants to look, less often while nothing happens, and not at all if the policy needs
//! no samples.

mod apply;
mod asks;
mod attention;
mod choose;
mod decide;
mod history;
mod machine;
mod policy;

pub use apply::Actuator;
pub use decide::{Decider, Decision, Ground, Wanted};
pub use machine::{has_frequencies, machine};

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use eft_base::Instant;
use eft_channel::account::Phase;
use eft_channel::notify::Mode;
use eft_channel::status::Status;
use eft_component::scheduling::Scheduling;
use eft_component::server::counter;
use eft_cores::sample::Sample;
use eft_machine::CpuSet;
use eft_messages::ComponentId;
use rustix::event::{PollFd, PollFlags, poll};

use super::Setup;
use crate::protocol::{FromServer, MemberView, PACKET_MAX, Place, ToServer};
use crate::stack_sensor::{CounterNames, StackSensor};
use crate::{Doing, Error, Result, memory, sandbox, scm};
use attention::Attention;
use eft_host::clock;
use eft_host::sensors::Tree;
use history::History;

/// How long moves may take before what follows them is done all the same.
const ARRIVAL: Duration = Duration::from_millis(200);

/// A plan whose moves are under way.
struct Applying {
    old: Wanted,
    new: Wanted,
    since: Instant,
}

struct Cores {
    control: OwnedFd,
    status: Status,
    sensor: StackSensor,
    members: Vec<MemberView>,
    topology: BTreeMap<String, Place>,
    settings: Scheduling,
    managed: CpuSet,
    actuator: Option<Actuator>,
    decider: Box<dyn Decider>,
    applied: Wanted,
    applying: Option<Applying>,
    history: History,
    /// Why the last plan was not carried out.
    trouble: Option<String>,
    last: Sample,
    attention: Attention,
    next_look: Option<Instant>,
    glances: u64,
    looks: u64,
    look_ns: u64,
    decide_ns: u64,
    stop: bool,
    buffer: Vec<u8>,
}

/// Runs the component until the supervisor stops it.
pub fn run(setup: Setup, names: CounterNames) -> Result<()> {
    let Setup { identity, control, status, .. } = setup;
    super::park::place(identity.cpu)?;
    status.state().awake();
    let mut early = Early::default();
    early.receive(&control)?;
    let settings = early.settings;
    let managed = settings.managed.clone();
    let actuator = if managed.is_empty() { None } else { Some(Actuator::new(&managed)?) };
    match actuator {
        Some(_) => sandbox::enter_for_actuators()?,
        None => sandbox::enter_for_sensors()?,
    }
    status.account().open(clock::now());
    let mut cores = Cores {
        control,
        status,
        sensor: StackSensor::new(Tree::live(), names, &managed),
        members: Vec::new(),
        topology: early.topology,
        decider: Box::new(choose::Idle),
        settings,
        managed,
        actuator,
        applied: early.applied,
        applying: None,
        history: History::default(),
        trouble: None,
        last: Sample::default(),
        attention: Attention::default(),
        next_look: None,
        glances: 0,
        looks: 0,
        look_ns: 0,
        decide_ns: 0,
        stop: false,
        buffer: vec![0; PACKET_MAX],
    };
    for (view, page) in early.members {
        cores.member(view, page);
    }
    cores.choose(false);
    super::tell(&cores.control, &FromServer::Ready, &[]);
    cores.run()
}

/// What comes before `Run`.
#[derive(Default)]
struct Early {
    settings: Scheduling,
    topology: BTreeMap<String, Place>,
    applied: Wanted,
    members: Vec<(MemberView, Status)>,
}

impl Early {
    fn receive(&mut self, control: &OwnedFd) -> Result<()> {
        let mut buffer = vec![0; PACKET_MAX];
        loop {
            let (n, mut fds) = scm::receive(control, &mut buffer, false).doing("control socket")?;
            let message =
                postcard::from_bytes::<ToServer>(&buffer[..n]).doing("message of the supervisor")?;
            match message {
                ToServer::Run => return Ok(()),
                ToServer::Stop => return Err(Error("stopped during set-up".into())),
                ToServer::Member(view) => {
                    if let Some(page) = fds.pop().and_then(|fd| open_page(&fd)) {
                        self.members.push((view, page));
                    }
                }
                ToServer::Configure { key, value } => match key.as_str() {
                    "scheduling" => self.settings = serde_json::from_slice(&value).doing("scheduling")?,
                    "topology.places" => self.topology = serde_json::from_slice(&value).doing("topology")?,
                    // What a predecessor wrote; if it is damaged, nothing is known to be applied.
                    "cores.applied" => self.applied = serde_json::from_slice(&value).unwrap_or_default(),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

fn open_page(fd: &OwnedFd) -> Option<Status> {
    Status::new(memory::map(fd, false).ok()?).ok()
}

impl Cores {
    fn run(&mut self) -> Result<()> {
        while !self.stop {
            self.status.account().leave(Phase::Busy);
            self.status.account().enter(Phase::Busy, clock::now());
            self.take_control()?;
            if self.stop {
                break;
            }
            let now = clock::now();
            if self.next_look.is_some_and(|at| now >= at) {
                self.glance(now);
            }
            self.go_on_applying(now);
            self.status.add(counter::TURNS, 1);
            self.status.beat();
            self.sleep();
        }
        self.end();
        Ok(())
    }

    fn sleep(&mut self) {
        self.status.account().leave(Phase::Sleeping);
        let now = clock::now();
        let soon = self.applying.as_ref().map(|_| now + Duration::from_millis(1));
        let due = self.next_look.into_iter().chain(soon).min();
        let state = self.status.state();
        state.announce(Mode::Descriptor);
        self.status.account().enter(Phase::Sleeping, now);
        let timeout = due.map(|d| {
            let left = d.saturating_since(now);
            rustix::time::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos() as _ }
        });
        let _ = poll(&mut [PollFd::new(&self.control, PollFlags::IN)], timeout.as_ref());
        state.awake();
        self.status.account().woke_up();
        self.status.add(counter::SLEEPS, 1);
    }

    fn take_control(&mut self) -> Result<()> {
        loop {
            match scm::receive(&self.control, &mut self.buffer, true) {
                Ok((0, _)) => {
                    self.stop = true;
                    return Ok(());
                }
                Ok((n, fds)) => {
                    if let Ok(message) = postcard::from_bytes::<ToServer>(&self.buffer[..n]) {
                        self.handle(message, fds);
                    }
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
                Err(e) => return Err(e).doing("control socket"),
            }
        }
    }

    fn handle(&mut self, message: ToServer, mut fds: Vec<OwnedFd>) {
        match message {
            ToServer::Stop => self.stop = true,
            ToServer::Member(view) => {
                if let Some(page) = fds.pop().and_then(|fd| open_page(&fd)) {
                    self.member(view, page);
                }
            }
            ToServer::Place { place, ticket } => {
                let refusal = super::park::place(place.cpu).err().map(|e| e.0);
                super::tell(&self.control, &FromServer::Placed { ticket, place, refusal }, &[]);
            }
            ToServer::Configure { key, value } if key == "cores.refused" => {
                self.failed(&String::from_utf8_lossy(&value));
            }
            ToServer::Configure { key, value } if key.starts_with("cores.ask:") => {
                let answer = self.asked(&value);
                let answer = FromServer::Answer { key, value: answer.to_string().into_bytes() };
                super::tell(&self.control, &answer, &[]);
            }
            _ => {}
        }
    }

    fn member(&mut self, view: MemberView, page: Status) {
        if view.peer == ComponentId::CORES {
            return;
        }
        self.sensor.update(view.clone(), page);
        match self.members.iter_mut().find(|m| m.peer == view.peer) {
            Some(m) => *m = view,
            None => self.members.push(view),
        }
    }

    /// Makes the decider of the present settings and lets it begin.
    fn choose(&mut self, chosen: bool) {
        let ground = Ground {
            settings: &self.settings,
            members: &self.members,
            topology: &self.topology,
            managed: &self.managed,
            applied: &self.applied,
            chosen,
        };
        match choose::decider(&ground) {
            Ok(decider) => self.decider = decider,
            Err(reason) => {
                eprintln!("eft cores: {reason}; everything stays as it is");
                self.trouble = Some(reason);
                self.decider = Box::new(choose::Idle);
            }
        }
        self.look();
    }

    /// One look, and what follows from it.
    fn look(&mut self) {
        let began = clock::now();
        let sample = self.sensor.sample(began);
        self.looks += 1;
        let seen = clock::now();
        let decision = self.decider.decide(&sample);
        self.look_ns += seen.saturating_since(began).as_nanos() as u64;
        self.decide_ns += clock::now().saturating_since(seen).as_nanos() as u64;
        self.last = sample;
        self.next_look = self.decider.period().map(|p| began + p);
        if let Some(decision) = decision {
            self.begin(decision, began);
        }
    }

    /// Looks if there is something to see.
    fn glance(&mut self, now: Instant) {
        let settled = self.decider.is_settled() && self.applying.is_none();
        let glance = self.sensor.glance(now);
        self.glances += 1;
        let pace = self.attention.pay(glance, now, settled, self.members.len() as u64);
        if pace.look {
            self.look();
        }
        self.next_look = self.decider.period().map(|p| now + p * pace.periods);
    }

    /// Starts to apply what was decided: makes room and asks for the moves.
    fn begin(&mut self, decision: Decision, now: Instant) {
        let Decision { wanted, reason, readings } = decision;
        let policy = self.settings.policy.name();
        let Some(wanted) = wanted else { return self.history.note_only(now.0, policy, &reason, readings) };
        if let Some(Applying { old, new, .. }) = self.applying.take() {
            self.applied = apply::with_room(&old, new);
            self.history.outcome("overtaken by the next");
        }
        let plan = serde_json::to_value(&wanted).unwrap_or_default();
        self.history.note(now.0, policy, &reason, plan, readings);
        let old = self.applied.clone();
        if let Err(why) = self.actuate(|a| a.make_room(&old, &wanted), &wanted) {
            return self.failed(&why);
        }
        let places: Vec<(ComponentId, Place)> = self
            .members
            .iter()
            .filter_map(|m| Some((m.peer, *wanted.places.get(&m.peer.to_string())?)))
            .collect();
        if !places.is_empty() {
            super::tell(&self.control, &FromServer::Arrange { places }, &[]);
        }
        self.applying = Some(Applying { old, new: wanted, since: now });
        self.trouble = None;
    }

    /// Once everybody is where the plan wants it, the rest of the plan.
    fn go_on_applying(&mut self, now: Instant) {
        let Some(applying) = &self.applying else { return };
        let is_there = |m: &MemberView| {
            let wanted = applying.new.places.get(&m.peer.to_string());
            !m.running || wanted.is_none_or(|p| !m.moving && (m.cpu, m.dedicated) == (p.cpu, p.dedicated))
        };
        let late = now.saturating_since(applying.since) >= ARRIVAL;
        if !late && !self.members.iter().all(is_there) {
            return;
        }
        let Some(Applying { old, new, .. }) = self.applying.take() else { return };
        if let Err(why) = self.actuate(|a| a.take_away(&old, &new), &new) {
            return self.failed(&why);
        }
        self.applied = new;
        self.remember();
        self.history.outcome(if late { "applied, though not all arrived in time" } else { "applied" });
    }

    /// Runs an actuation if the plan has one. Without managed CPUs a plan that wants one is refused.
    fn actuate(
        &mut self,
        act: impl FnOnce(&Actuator) -> std::result::Result<(), String>,
        wanted: &Wanted,
    ) -> std::result::Result<(), String> {
        let Some(actuator) = &self.actuator else {
            return match apply::touches_cpus(wanted) {
                true => Err("the plan sets speeds or parks, but no CPU is managed".into()),
                false => Ok(()),
            };
        };
        // The journal's lock may be another's for a while: that is no hang.
        let state = self.status.state();
        state.announce(Mode::Descriptor);
        let done = act(actuator);
        state.awake();
        reap_children();
        done
    }

    /// A plan could not be carried out: one line, and the last good one stays.
    fn failed(&mut self, why: &str) {
        eprintln!("eft cores: the plan was not carried out: {why}");
        self.history.outcome(&format!("not carried out: {why}"));
        self.trouble = Some(why.to_string());
        if let Some(Applying { old, new, .. }) = self.applying.take() {
            // Whatever of it was done is taken back as far as it can be.
            let _ = self.actuate(|a| a.make_room(&new, &old).and_then(|()| a.take_away(&new, &old)), &old);
        }
    }

    fn remember(&self) {
        let value = serde_json::to_vec(&self.applied).unwrap_or_default();
        super::tell(&self.control, &FromServer::Remember { value }, &[]);
    }

    /// At the end: what was changed on the host is undone.
    fn end(&mut self) {
        self.decider.end();
        let applied = std::mem::take(&mut self.applied);
        if apply::touches_cpus(&applied) {
            if let Err(why) = self.actuate(|a| a.undo(&applied), &applied) {
                eprintln!("eft cores: not everything could be undone: {why}; try `eft cpu restore`");
                return;
            }
            self.remember();
        }
    }
}

/// Keepers that ended are our children.
fn reap_children() {
    // SAFETY: waits for nobody and writes nowhere.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}
