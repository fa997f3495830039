//! The engine: questions from ip, rules from the store, loads and shows from operators.

mod fatal;
mod loading;
mod tracking;

use crate::config::FilterConfig;
use crate::counters::{COUNTERS, Counter};
use crate::durable::States;
use crate::edge::ToIp;
use crate::rule::{Decision, Packet, Quoted, Ruleset};
use crate::show::protocol;
use crate::state::{State, is_error};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;
use eft_arena::Fuse;
use eft_arena::docket::Docket;
use eft_base::address::without_zone;
use eft_base::{Instant, Protection, RequestId};
use eft_channel::Segment;
use eft_component::{Answer, Component, Configure, Context, Occasion, Outbox};
use eft_messages::filter::{FilterToIp, Flow, IpToFilter, Judgement, is_ordinary};
use eft_messages::{ComponentId, Encoded, Role};

/// How often expired states are removed. Until then, packets do not match them.
const SWEEP: Duration = Duration::from_secs(2);
/// Questions held until the first rules come. ip has fewer outstanding.
const HELD_MAX: usize = 65536;
/// ip's number for packets of the host to itself.
const LOCAL_INTERFACE: u8 = 255;

const KEY_RULES: &str = "filter";
const KEY_LOAD: &str = "filter.load:";
const KEY_SHOW_RULES: &str = "filter.show:rules:";
const KEY_SHOW_STATES: &str = "filter.show:states:";
const KEY_INTERFACES: &str = "interfaces";

/// For a packet that passes by its connection's state: whether the connection gets a grant.
#[derive(Clone, Copy, PartialEq)]
struct MayGrant(bool);

/// A packet as the other end of its connection might send.
fn reverse(p: &Packet) -> Packet {
    Packet {
        source: p.destination,
        destination: p.source,
        source_port: p.destination_port,
        destination_port: p.source_port,
        // Packets of the host to itself are judged once, when they leave.
        inbound: p.interface != LOCAL_INTERFACE && !p.inbound,
        ..*p
    }
}

/// The engine.
pub struct Filter {
    /// `None` until the first rules have come.
    rules: Option<Ruleset>,
    last_error: Option<String>,
    interfaces: Vec<(u8, String)>,
    states: States,
    docket: Docket,
    /// What was found in the arena, until it is counted.
    recovery: Option<crate::durable::Recovery>,
    held: VecDeque<(RequestId, Packet)>,
    /// The packet that the next question's ICMP error quotes.
    quote: Option<(RequestId, Quoted)>,
    sweep_at: Option<Instant>,
    /// ip knows that everything passes.
    passes_all: bool,
}

impl Filter {
    /// Opens the arena ([`crate::arena_len`] bytes) with the states that a predecessor left there.
    pub fn open(arena: Segment, config: FilterConfig) -> Filter {
        Filter::open_with(arena, config, Fuse::default())
    }

    /// The same with a fuse, of which the engine may die even here.
    pub fn open_with(arena: Segment, config: FilterConfig, fuse: Fuse) -> Filter {
        let (states, recovery) = States::open(arena, config.states, config.seed, fuse);
        Filter {
            rules: None,
            last_error: None,
            interfaces: Vec::new(),
            sweep_at: (states.len() > 0).then_some(Instant::ZERO),
            docket: states.docket(),
            states,
            recovery: Some(recovery),
            held: VecDeque::new(),
            quote: None,
            passes_all: false,
        }
    }

    /// For tests of dying in the middle of a turn.
    pub fn fuse(&self) -> Fuse {
        self.states.fuse()
    }

    /// Why the last rules were refused, in one line.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// The connections that are known.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.states.iter()
    }

    /// Says that everything passes, if that is so and ip does not know it.
    fn say_whether_all_passes(&mut self, out: &mut Outbox<ToIp>) {
        let is_so = self.rules.as_ref().is_some_and(|r| r.rules.is_empty()) && self.states.len() == 0;
        if is_so && !self.passes_all {
            self.passes_all = true;
            out.push(ToIp::ToIp(FilterToIp::PassAll {}));
        }
    }

    fn recall_by_rules(&mut self, out: &mut Outbox<ToIp>) {
        self.passes_all = false;
        out.push(ToIp::ToIp(FilterToIp::RecallByRules {}));
    }

    fn count_recovery(&mut self, cx: &Context) {
        if let Some(r) = self.recovery.take() {
            cx.add(Counter::StatesRecovered, r.recovered);
            cx.add(Counter::StatesDamaged, r.damaged);
            cx.add(Counter::StatesMended, r.mended);
            cx.add(Counter::Blamed, self.docket.take_blamed());
            cx.gauge(Counter::States, self.states.len() as u64);
        }
    }

    fn interface_name(&self, index: u8) -> Option<&str> {
        if index == LOCAL_INTERFACE {
            return Some("lo");
        }
        let found = self.interfaces.iter().find(|(i, _)| *i == index);
        found.map(|(_, name)| name.as_str())
    }

    fn answer(&mut self, cx: &mut Context, request: RequestId, p: &Packet, out: &mut Outbox<ToIp>) {
        if !self.enter(p) {
            return self.refuse_fatal(cx, request, out);
        }
        let known = if is_error(p) { self.match_quoted(cx, p) } else { self.match_state(cx, p) };
        let (judgement, by_rules) = match known {
            Some(_) => (Judgement::Pass, false),
            None => self.judge_by_rules(cx, p, out),
        };
        let grant = by_rules || known == Some(MayGrant(true));
        cx.count(match judgement {
            Judgement::Pass => Counter::Passed,
            _ => Counter::Blocked,
        });
        cx.add(Counter::StateHits, known.is_some() as u64);
        cx.add(Counter::Granted, grant as u64);
        out.push(ToIp::ToIp(match grant {
            true => FilterToIp::Grant { request, by_rules },
            false => FilterToIp::Verdict { request, judgement },
        }));
    }

    /// The rules' verdict for a packet without a state, and whether it is the same for all ordinary packets of its
    /// connection.
    fn judge_by_rules(&mut self, cx: &mut Context, p: &Packet, out: &mut Outbox<ToIp>) -> (Judgement, bool) {
        let Some(rules) = &self.rules else {
            return (Judgement::Drop, false);
        };
        let interface = self.interface_name(p.interface);
        let decision = rules.decide(p, interface);
        if decision.judgement == Judgement::Pass && decision.keep_state {
            let begun = self.begin_state(cx, p, out);
            return (if begun { Judgement::Pass } else { Judgement::Drop }, false);
        }
        let both = is_ordinary(p.protocol, p.tcp_flags)
            && !rules.tell_ordinary_packets_apart()
            && [decision, rules.decide(&reverse(p), interface)].iter().all(|d| *d == Decision::PASS);
        (decision.judgement, both)
    }

    fn set_interfaces(&mut self, text: &[u8], out: &mut Outbox<ToIp>) {
        let text = core::str::from_utf8(text).unwrap_or("");
        let named = text.lines().filter_map(|line| line.trim().split_once(' '));
        self.interfaces =
            named.filter_map(|(index, name)| Some((index.parse().ok()?, name.trim().to_string()))).collect();
        self.recall_by_rules(out);
        self.say_whether_all_passes(out);
    }

    fn show_rules(&self) -> String {
        self.rules.as_ref().map_or(String::new(), |r| r.to_string())
    }

    fn show_states(&self, now: Instant) -> String {
        let mut text = String::new();
        for s in self.states.iter().filter(|s| s.expires > now || s.granted) {
            let p = s.flow.protocol;
            let [opener, other] = s.ends().map(|(a, port)| (without_zone(a), port)).map(|(a, port)| {
                match (a.is_ipv6(), port) {
                    (_, 0) => format!("{a}"),
                    (true, _) => format!("{a}[{port}]"),
                    (false, _) => format!("{a}:{port}"),
                }
            });
            let (opener_seen, other_seen) = (s.opener.name(p), s.other.name(p));
            let proto = protocol(p);
            // pfctl puts our own end first; the arrow points from the opener.
            let _ = if s.inbound {
                writeln!(text, "all {proto} {other} <- {opener}       {other_seen}:{opener_seen}")
            } else {
                writeln!(text, "all {proto} {opener} -> {other}       {opener_seen}:{other_seen}")
            };
        }
        text
    }
}

impl Component for Filter {
    type In = IpToFilter;
    type Out = ToIp;
    type Event = Configure;
    type Effect = Answer;
    const COUNTERS: &'static [&'static str] = COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<IpToFilter> {
        match peer.role {
            Role::Ip => IpToFilter::decode(line),
            _ => None,
        }
    }

    fn begin(&mut self, _: Occasion<Configure>) {
        // An input is named when it is known what it is about. Nothing else that ip says is said again to a successor.
        self.docket.clear();
    }

    fn receive(&mut self, cx: &mut Context, _: ComponentId, message: IpToFilter, out: &mut Outbox<ToIp>) {
        let (request, packet) = match message {
            IpToFilter::Used { flow, at } => return self.grant_ended(cx, &flow, Instant(at)),
            IpToFilter::Passed { packets, by_state } => {
                cx.add(Counter::Passed, packets);
                cx.add(Counter::StateHits, by_state);
                return;
            }
            IpToFilter::Quote { request, source, destination, source_port, destination_port, protocol } => {
                let (source, destination) = (source.into(), destination.into());
                let quoted = Quoted { source, destination, source_port, destination_port, protocol };
                self.quote = Some((request, quoted));
                return;
            }
            IpToFilter::Ask {
                request,
                source,
                destination,
                source_port,
                destination_port,
                protocol,
                tcp_flags,
                interface,
                inbound,
                len: _,
            } => {
                let quote = self.quote.take().filter(|(of, _)| *of == request);
                let packet = Packet {
                    source: source.into(),
                    destination: destination.into(),
                    source_port,
                    destination_port,
                    protocol,
                    tcp_flags,
                    interface,
                    inbound,
                    quoted: quote.map(|(_, quoted)| quoted),
                };
                (request, packet)
            }
        };
        cx.count(Counter::Asked);
        if self.rules.is_some() {
            return self.answer(cx, request, &packet, out);
        }
        cx.count(Counter::Held);
        if self.held.len() < HELD_MAX {
            self.held.push_back((request, packet));
        } else {
            let judgement = Judgement::Drop;
            out.push(ToIp::ToIp(FilterToIp::Verdict { request, judgement }));
        }
    }

    fn event(&mut self, cx: &mut Context, Configure { key, value }: Configure, out: &mut Outbox<ToIp>) {
        self.count_recovery(cx);
        let answer = match key.as_str() {
            KEY_RULES => {
                let _ = self.load(cx, &value, out);
                return self.docket.clear();
            }
            Protection::KEY if Protection::of(&value) == Protection::Off => {
                self.docket.stop();
                return self.states.stop_committing();
            }
            KEY_INTERFACES => return self.set_interfaces(&value, out),
            k if k.starts_with(KEY_LOAD) => match self.load(cx, &value, out) {
                Ok(()) => "ok".to_string(),
                Err(e) => format!("error: {e}"),
            },
            k if k.starts_with(KEY_SHOW_RULES) => self.show_rules(),
            k if k.starts_with(KEY_SHOW_STATES) => self.show_states(cx.now),
            _ => return,
        };
        self.docket.clear();
        out.push(ToIp::Answer(Answer { key, value: answer.into_bytes() }));
    }

    fn commit(&mut self, _: &mut Context) {
        self.docket.clear();
        self.states.commit();
    }

    fn check(&self) {
        assert!(self.held.len() <= HELD_MAX, "{} questions are held", self.held.len());
        assert!(self.rules.is_none() || self.held.is_empty(), "a question is held although there are rules");
        assert!(
            self.states.len() == 0 || self.sweep_at.is_some(),
            "there are states, but no sweep is scheduled"
        );
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<ToIp>) {
        if self.sweep_at.is_none_or(|at| at > cx.now) {
            return;
        }
        let (docket, mut refused) = (&self.docket, 0);
        let may_end = |flow: &Flow| {
            let may = docket.enter(fatal::end(flow));
            refused += !may as u64;
            may
        };
        let recall = |flow| out.push(ToIp::ToIp(FilterToIp::Recall { flow }));
        let expired = self.states.expire(cx.now, may_end, recall);
        cx.add(Counter::DropFatal, refused);
        cx.add(Counter::StatesExpired, expired as u64);
        cx.gauge(Counter::States, self.states.len() as u64);
        self.sweep_at = (self.states.len() > 0).then_some(cx.now + SWEEP);
        self.say_whether_all_passes(out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<ToIp>) {
        self.count_recovery(cx);
        if peer == ComponentId::IP {
            // The new ip asks about its own packets; the old one's questions are void.
            self.held.clear();
            self.quote = None;
            self.states.forget_grants(cx.now);
            self.passes_all = false;
            self.say_whether_all_passes(out);
        }
    }
}
