//! A whole stack that gets its addresses from servers: the wire, and the supervisor, which puts in force what ip has learnt. The servers
//! are the test's.

use eft_autoconf::known::{self, All};
use eft_autoconf::method::Method;
use eft_base::{Instant, MacAddress, Random};
use eft_component::DeviceInfo;
use eft_control::network::{Interface, Network};
use eft_messages::ComponentId;
use eft_sim::device::{End, Spare, WireFrame};
use eft_sim::node::Effect;
use eft_sim::simulation::Settings;
use eft_sim::{Shape, Stack};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

pub const S: Duration = Duration::from_secs(1);
pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// All that is on the link beside the stack.
pub trait Link {
    type Address: Copy + PartialEq + Debug;
    const METHOD: Method;

    /// The stack has sent a frame: the frames that come because of it.
    fn hear(&mut self, now: Instant, frame: Vec<u8>, random: &mut Random) -> Vec<Vec<u8>>;

    /// The address that was lent.
    fn lent(known: &All) -> Option<Self::Address>;
}

pub struct World<L: Link> {
    pub now: Instant,
    random: Random,
    stack: Stack,
    end: Rc<RefCell<End>>,
    pub link: L,
    flying: BTreeMap<(Instant, u64), Vec<u8>>,
    order: u64,
    pub known: All,
    /// When the address changed, and to what.
    pub had: Vec<(Instant, Option<L::Address>)>,
    /// ip and others die now and then.
    pub mortal: bool,
    next_death: Instant,
}

impl<L: Link> Deref for World<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.link
    }
}

impl<L: Link> DerefMut for World<L> {
    fn deref_mut(&mut self) -> &mut L {
        &mut self.link
    }
}

impl<L: Link> World<L> {
    pub fn of(seed: u64, link: L) -> World<L> {
        let settings = Settings::default();
        let now = Instant::from_millis(1000);
        let end = Rc::new(RefCell::new(End {
            info: DeviceInfo { mac: MacAddress(MAC), ..settings.device },
            outgoing: VecDeque::new(),
            incoming: VecDeque::new(),
            depth: 64,
            spare: Spare::default(),
        }));
        let shape = Shape {
            addresses: Vec::new(),
            rules: settings.rules,
            topology: settings.topology,
            transport: Vec::new(),
            geometry: settings.geometry,
            sizes: settings.sizes,
            seed,
            record: None,
            hostile: false,
            is_lasting: false,
        };
        let mut world = World {
            now,
            random: Random::new(seed),
            stack: Stack::new(now, shape, end.clone()),
            end,
            link,
            flying: BTreeMap::new(),
            order: 0,
            known: All::new(),
            had: Vec::new(),
            mortal: false,
            next_death: now,
        };
        world.put_in_force(Vec::new());
        world
    }

    /// As the supervisor does.
    fn put_in_force(&mut self, learnt: Vec<u8>) {
        self.known = known::parse(&learnt);
        let auto = vec![L::METHOD];
        let interface = Interface { name: "eft0".into(), addresses: Vec::new(), auto };
        let network = Network { interfaces: vec![interface], ..Network::default() };
        let (network, _) = network.with(&self.known, |_, _| true);
        self.stack.put_in_force(self.now, &network, learnt);
        let address = self.address();
        if self.had.last().map(|(_, last)| *last) != Some(address) {
            self.had.push((self.now, address));
        }
    }

    pub fn address(&self) -> Option<L::Address> {
        L::lent(&self.known)
    }

    /// A frame for the stack.
    pub fn fly(&mut self, frame: Vec<u8>) {
        self.order += 1;
        let delay = Duration::from_micros(200 + self.random.below(800));
        self.flying.insert((self.now + delay, self.order), frame);
    }

    /// Takes what the stack has sent, and brings what has arrived.
    fn exchange(&mut self) {
        let frames: Vec<WireFrame> = self.end.borrow_mut().outgoing.drain(..).collect();
        let mut woken = !frames.is_empty();
        for WireFrame { bytes, .. } in frames {
            for frame in self.link.hear(self.now, bytes, &mut self.random) {
                self.fly(frame);
            }
        }
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let bytes = entry.remove();
            let frame = WireFrame { bytes, segment_size: 0, checksum_ok: false };
            self.end.borrow_mut().incoming.push_back(frame);
            woken = true;
        }
        if woken {
            self.stack.wake(ComponentId::nic(0));
        }
        for effect in std::mem::take(&mut self.stack.effects) {
            if let Effect::Answer(answer) = effect
                && answer.key == "autoconf"
            {
                self.put_in_force(answer.value);
            }
        }
    }

    fn maybe_kill(&mut self) {
        if !self.mortal || self.now < self.next_death {
            return;
        }
        let peers: Vec<ComponentId> = self.stack.peers().collect();
        let peer = peers[self.random.below(peers.len() as u64) as usize];
        self.stack.kill(self.now, peer);
        self.stack.restart(self.now, peer);
        self.next_death = self.now + Duration::from_millis(1 + self.random.below(60_000));
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.maybe_kill();
            self.exchange();
            let runnable: Vec<ComponentId> = self.stack.runnable(self.now).collect();
            if let Some(peer) = runnable.first() {
                let which = self.random.below(runnable.len() as u64) as usize;
                self.stack.step(self.now, *runnable.get(which).unwrap_or(peer), 16);
                self.now += Duration::from_nanos(500);
                continue;
            }
            let death = self.mortal.then_some(self.next_death);
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let next = self.stack.deadline().into_iter().chain(arrival).chain(death).min().unwrap_or(end);
            if next >= end {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
        }
    }

    /// Runs in small steps, for at most `limit`.
    pub fn run_until(&mut self, limit: Duration, done: impl Fn(&World<L>) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            assert!(self.now < end, "not done after {limit:?}");
            self.run_for(S / 100);
        }
    }
}

/// Servers' answers, each behind what a liar says before it.
pub fn behind_lies(
    answers: impl Iterator<Item = Vec<u8>>,
    mut lies: impl FnMut(&[u8]) -> Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    answers.flat_map(|answer| [lies(&answer), vec![answer]].concat()).collect()
}

/// What a liar makes of an honest message that begins at `at` of a frame: the same, damaged behind its first `kept` bytes, which
/// belong to no exchange.
pub fn damaged(frame: &[u8], at: usize, kept: usize, random: &mut Random) -> Vec<u8> {
    let mut damaged = frame.to_vec();
    let begin = at + random.below((damaged.len() - at) as u64) as usize;
    match random.below(4) {
        0 => damaged.truncate(begin),
        _ => damaged[begin..].iter_mut().for_each(|b| *b = random.below(256) as u8),
    }
    if damaged.len() > at + kept {
        damaged[at + kept] = !frame[at + kept];
    }
    damaged
}
