//! Questions and rules into a filter engine.

use super::Target;
use super::texts::pf_examples;
use crate::mutate::Examples;
use crate::source::Source;
use eft_base::{RequestId, WireAddress};
use eft_channel::{Memory, Segment};
use eft_component::{Answer, Configure};
use eft_filter::{Filter, FilterConfig, ToIp, arena_len};
use eft_harness::Host;
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, Flow, IpToFilter};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const CONFIG: FilterConfig = FilterConfig { states: 48, seed: 3 };

pub struct FilterBench {
    pub host: Host<Filter>,
    pub arena: Segment,
    next: u32,
    unanswered: BTreeSet<RequestId>,
    /// Grants of which ip has not said when they were last used.
    recalled: Vec<Flow>,
}

impl FilterBench {
    pub fn new(source: &mut Source) -> FilterBench {
        let arena = Segment::heap(arena_len(&CONFIG));
        let filter = Filter::open(arena.clone(), CONFIG);
        let host = Host::new(filter, Memory::new(), &[ComponentId::IP], source.generator());
        let mut bench =
            FilterBench { host, arena, next: 0, unanswered: BTreeSet::new(), recalled: Vec::new() };
        bench.configure("interfaces", "0 eft0\n1 eft1\n");
        bench
    }

    /// Configures; returns the answers to operators.
    pub fn configure(&mut self, key: &str, value: &str) -> Vec<String> {
        self.host.event(Configure { key: key.into(), value: value.into() });
        self.check()
    }

    pub fn load(&mut self, rules: &str) {
        self.configure("filter", rules);
    }

    /// The filter dies. Its successor opens the arena and repeats no question: ip asks again.
    pub fn die(&mut self, source: &mut Source) {
        let now = self.host.now;
        let filter = Filter::open(self.arena.clone(), CONFIG);
        self.host = Host::new(filter, Memory::new(), &[ComponentId::IP], source.generator());
        self.host.now = now;
        self.unanswered.clear();
        self.recalled.clear();
    }

    fn check(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        for m in self.host.take() {
            match m {
                ToIp::ToIp(FilterToIp::Verdict { request, .. } | FilterToIp::Grant { request, .. }) => {
                    assert!(self.unanswered.remove(&request), "{request:?} was answered twice");
                }
                ToIp::ToIp(FilterToIp::Recall { flow }) => self.recalled.push(flow),
                ToIp::ToIp(FilterToIp::RecallByRules {} | FilterToIp::PassAll {}) => {}
                ToIp::Answer(Answer { value, .. }) => {
                    answers.push(String::from_utf8(value).expect("answers are text"));
                }
            }
        }
        answers
    }

    /// Asks about a packet of few hosts and ports, so that states are met again, or of any.
    pub fn ask(&mut self, source: &mut Source) {
        if let Some(flow) = self.recalled.pop() {
            // Long ago, lately or, from an ip that has lost its mind, some day.
            let at = [0, self.host.now.as_nanos(), source.next_u64()][source.below(3) as usize];
            self.host.line(ComponentId::IP, &IpToFilter::Used { flow, at }.encode());
            self.host.line(ComponentId::IP, &IpToFilter::Passed { packets: 1, by_state: 1 }.encode());
        }
        self.next += 1;
        let request = RequestId { index: self.next, generation: 1 };
        let mut address = || -> WireAddress {
            match source.below(8) {
                0 => WireAddress(core::array::from_fn(|_| source.byte())),
                n => IpAddr::from([10, 77, 0, n as u8]).into(),
            }
        };
        let (from, to) = (address(), address());
        let m = IpToFilter::Ask {
            request,
            source: from,
            destination: to,
            source_port: [0, 1, 2, 3, 11][source.below(5) as usize],
            destination_port: [22, 53, 80, 65535][source.below(4) as usize],
            protocol: [1, 6, 6, 17, source.byte()][source.below(5) as usize],
            tcp_flags: source.byte(),
            interface: [0, 1, 255, source.byte()][source.below(4) as usize],
            inbound: source.chance(0.5),
            len: source.next_u32() as u16,
        };
        self.unanswered.insert(request);
        if source.chance(0.2) {
            // Sometimes another's.
            let request = RequestId { generation: 1 + source.chance(0.1) as u32, ..request };
            let quote = IpToFilter::Quote {
                request,
                source: to,
                destination: from,
                source_port: source.below(4) as u16,
                destination_port: [22, 53, 80, 65535][source.below(4) as usize],
                protocol: [1, 6, 17, source.byte()][source.below(4) as usize],
            };
            self.host.line(ComponentId::IP, &quote.encode());
        }
        self.host.line(ComponentId::IP, &m.encode());
        self.check();
    }

    /// With rules loaded, every question must have been answered.
    pub fn check_answered(&self) {
        assert!(self.unanswered.is_empty(), "not answered: {:?}", self.unanswered);
    }
}

pub struct Asks {
    bench: FilterBench,
    rules: Examples,
}

impl Asks {
    pub fn new(source: &mut Source) -> Asks {
        let mut bench = FilterBench::new(source);
        bench.load("pass");
        Asks { bench, rules: pf_examples() }
    }
}

impl Target for Asks {
    fn feed(&mut self, source: &mut Source) {
        match source.below(40) {
            0..4 => {
                let answers = self.bench.configure("filter.load:1", &self.rules.mutated_text(source));
                assert_eq!(answers.len(), 1);
                assert!(answers[0] == "ok" || answers[0].starts_with("error: "), "{}", answers[0]);
            }
            4 => {
                self.bench.configure("interfaces", &self.rules.mutated_text(source));
            }
            5 => {
                self.bench.configure("filter.show:states:1", "");
                self.bench.configure("filter.show:rules:1", "");
            }
            _ => {}
        }
        self.bench.ask(source);
        self.bench.check_answered();
        self.bench.host.pass(Duration::from_millis(source.below(3000)));
    }
}
