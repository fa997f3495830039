//! The engine with an ip, played by the bench, that keeps the contract of [`eft_messages::filter`].

use super::meaning::packet;
use crate::rule::Packet;
use crate::state::flow;
use crate::{Counter, Filter, FilterConfig, ToIp, arena_len};
use eft_base::{Instant, Random, RequestId};
use eft_channel::status::Status;
use eft_channel::{Memory, Segment};
use eft_component::server::FRAME_COUNTERS;
use eft_component::{Answer, Component, Configure, Context, Outbox};
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, Flow, IpToFilter, Judgement, is_ordinary};
use std::collections::HashMap;
use std::time::Duration;

pub const STATES: usize = 64;
const CONFIG: FilterConfig = FilterConfig { states: STATES, seed: 5 };
pub const US: &str = "10.77.0.2";
pub const THEM: &str = "10.77.0.1";

/// The one that is always asked about.
const REQUEST: RequestId = RequestId { index: 7, generation: 9 };

/// A grant that ip has.
#[derive(Clone, Copy)]
pub struct Granted {
    by_rules: bool,
    interface: u8,
    last: Instant,
}

pub struct Bench {
    pub filter: Filter,
    pub arena: Segment,
    memory: Memory,
    status: Status,
    random: Random,
    pub now: Instant,
    pub out: Outbox<ToIp>,
    /// `None`: an ip that asks about every packet.
    pub grants: Option<HashMap<Flow, Granted>>,
    /// Packets that passed by grants, and how many of them by states, not reported to the filter
    /// yet.
    passed: (u64, u64),
}

impl Bench {
    pub fn raw() -> Bench {
        let arena = Segment::heap(arena_len(&CONFIG));
        Bench {
            filter: Filter::open(arena.clone(), CONFIG),
            arena,
            memory: Memory::new(),
            status: Status::heap(),
            random: Random::new(1),
            now: Instant::from_millis(1),
            out: Outbox::with_room(&[ComponentId::IP], 1024),
            grants: Some(HashMap::new()),
            passed: (0, 0),
        }
    }

    pub fn new(rules: &str) -> Bench {
        let mut b = Bench::raw();
        b.configure("interfaces", "0 eft0\n1 eft1\n");
        b.configure("filter", rules);
        assert_eq!(b.filter.last_error(), None);
        b
    }

    /// The filter dies, and a successor opens its arena.
    pub fn crash(&mut self, rules: &str) {
        self.reopen();
        self.learn(rules);
    }

    pub fn reopen(&mut self) {
        self.filter = Filter::open(self.arena.clone(), CONFIG);
        self.grants.iter_mut().for_each(|grants| grants.clear());
    }

    /// A newborn filter meets ip, and hears its rules.
    pub fn learn(&mut self, rules: &str) {
        self.with(|f, cx, out| f.peer_reborn(cx, ComponentId::IP, out));
        self.configure("filter", rules);
    }

    /// ip dies, and has a successor.
    pub fn crash_ip(&mut self) {
        self.passed = (0, 0);
        self.grants.iter_mut().for_each(|grants| grants.clear());
        self.with(|f, cx, out| f.peer_reborn(cx, ComponentId::IP, out));
        self.drain();
    }

    pub fn with<T>(&mut self, f: impl FnOnce(&mut Filter, &mut Context, &mut Outbox<ToIp>) -> T) -> T {
        let mut cx =
            Context { now: self.now, random: &mut self.random, memory: &self.memory, status: &self.status };
        f(&mut self.filter, &mut cx, &mut self.out)
    }

    pub fn configure(&mut self, key: &str, value: &str) -> Option<String> {
        let event = Configure { key: key.into(), value: value.into() };
        self.with(|f, cx, out| f.event(cx, event, out));
        let mut answer = None;
        for o in self.drain() {
            if let ToIp::Answer(Answer { key: k, value }) = o {
                assert_eq!(k, key);
                answer = Some(String::from_utf8(value).unwrap());
            }
        }
        answer
    }

    pub fn tell(&mut self, message: IpToFilter) {
        self.with(|f, cx, out| f.receive(cx, ComponentId::IP, message, out));
    }

    /// Ends a turn: what the filter has said, after ip has done what it recalls.
    fn drain(&mut self) -> Vec<ToIp> {
        self.with(|f, cx, _| f.commit(cx));
        let all: Vec<ToIp> = self.out.drain().collect();
        for o in &all {
            match o {
                ToIp::ToIp(FilterToIp::Recall { flow }) => self.end_grant(flow),
                ToIp::ToIp(FilterToIp::RecallByRules {}) => {
                    self.grants.iter_mut().for_each(|grants| grants.retain(|_, g| !g.by_rules))
                }
                _ => {}
            }
        }
        // What ip answered was a turn, too.
        self.with(|f, cx, _| f.commit(cx));
        all
    }

    fn end_grant(&mut self, flow: &Flow) {
        let at = match self.grants.as_mut().and_then(|grants| grants.remove(flow)) {
            Some(Granted { by_rules: true, .. }) => return,
            Some(grant) => grant.last.as_nanos(),
            None => 0,
        };
        self.tell(IpToFilter::Used { flow: *flow, at });
    }

    /// Whether it passes by a grant. If it ends a grant, the filter is told.
    fn passes_unasked(&mut self, p: &Packet) -> bool {
        let Some((flow, _)) = flow(p) else { return false };
        let Some(grant) = self.grants.as_mut().and_then(|grants| grants.get_mut(&flow)) else { return false };
        if !is_ordinary(p.protocol, p.tcp_flags) {
            self.end_grant(&flow);
            return false;
        }
        if grant.by_rules && grant.interface != p.interface {
            return false;
        }
        grant.last = self.now;
        self.passed.0 += 1;
        self.passed.1 += !grant.by_rules as u64;
        true
    }

    pub fn report(&mut self) {
        let (packets, by_state) = std::mem::take(&mut self.passed);
        self.tell(IpToFilter::Passed { packets, by_state });
    }

    pub fn ask(&mut self, p: &Packet) -> Option<bool> {
        if self.passes_unasked(p) {
            return Some(true);
        }
        self.put(p);
        self.verdict(p)
    }

    /// Puts the question about a packet.
    pub fn put(&mut self, p: &Packet) {
        let request = REQUEST;
        if let Some(q) = p.quoted {
            let m = IpToFilter::Quote {
                request,
                source: q.source.into(),
                destination: q.destination.into(),
                source_port: q.source_port,
                destination_port: q.destination_port,
                protocol: q.protocol,
            };
            self.tell(m);
        }
        let m = IpToFilter::Ask {
            request,
            source: p.source.into(),
            destination: p.destination.into(),
            source_port: p.source_port,
            destination_port: p.destination_port,
            protocol: p.protocol,
            tcp_flags: p.tcp_flags,
            interface: p.interface,
            inbound: p.inbound,
            len: 100,
        };
        self.tell(m);
    }

    /// Ends the turn of a question, and returns its answer.
    pub fn verdict(&mut self, p: &Packet) -> Option<bool> {
        let request = REQUEST;
        let (judgement, by_rules) = self.drain().iter().find_map(|o| match o {
            ToIp::ToIp(FilterToIp::Verdict { request: r, judgement }) if *r == request => {
                Some((*judgement, None))
            }
            ToIp::ToIp(FilterToIp::Grant { request: r, by_rules }) if *r == request => {
                Some((Judgement::Pass, Some(*by_rules)))
            }
            _ => None,
        })?;
        if let (Some(grants), Some(by_rules), Some((flow, _))) = (&mut self.grants, by_rules, flow(p)) {
            assert!(is_ordinary(p.protocol, p.tcp_flags));
            grants.insert(flow, Granted { by_rules, interface: p.interface, last: self.now });
        }
        Some(judgement == Judgement::Pass)
    }

    pub fn tcp(&mut self, from_us: bool, flags: u8) -> bool {
        let (from, to) = if from_us { ((US, 80), (THEM, 4000)) } else { ((THEM, 4000), (US, 80)) };
        let p = Packet { tcp_flags: flags, ..packet(!from_us, 6, from, to) };
        self.ask(&p).unwrap()
    }

    pub fn pass_time(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        if self.filter.deadline().is_some_and(|d| d <= self.now) {
            self.with(|f, cx, out| f.expire(cx, out));
            self.drain();
        }
    }

    pub fn count(&self, c: Counter) -> u64 {
        self.status.get(FRAME_COUNTERS.len() + c as usize)
    }
}
