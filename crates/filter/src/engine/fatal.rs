//! Inputs that have killed two lives: each is recorded in the [docket](eft_arena::docket) before it runs, and a condemned one does not
//! run. A question is answered with a drop, rules are refused, and a state that has expired stays where it is, where it lets nothing
//! pass.

use super::Filter;
use crate::counters::Counter;
use crate::edge::ToIp;
use crate::parser::parse;
use crate::rule::Packet;
use alloc::string::String;
use core::net::IpAddr;
use eft_arena::docket::{Kind, Note};
use eft_base::{RequestId, WireAddress};
use eft_component::{Context, Outbox};
use eft_messages::filter::{FilterToIp, Flow, Judgement};

fn halves(address: IpAddr) -> [u64; 2] {
    let number = u128::from_le_bytes(WireAddress::from(address).0);
    [number as u64, (number >> 64) as u64]
}

/// Two addresses with their ports, and whatever else there is.
fn words(source: (IpAddr, u16), destination: (IpAddr, u16), rest: [u8; 4]) -> [u64; 5] {
    let [from, to] = [source, destination].map(|(address, _)| halves(address));
    let ports = u64::from(source.1) << 48 | u64::from(destination.1) << 32;
    [from[0], from[1], to[0], to[1], ports | u64::from(u32::from_le_bytes(rest))]
}

/// A question is known by all that the answer depends on: ip asks again in other words, if its packet is sent again.
fn note(p: &Packet) -> Note {
    let mut content = [0; 10];
    content[..5].copy_from_slice(&words(
        (p.source, p.source_port),
        (p.destination, p.destination_port),
        [p.protocol, p.tcp_flags, p.interface, p.inbound as u8],
    ));
    let Some(q) = &p.quoted else {
        return Note::alone(Kind::Question, &content[..5]);
    };
    content[5..].copy_from_slice(&words(
        (q.source, q.source_port),
        (q.destination, q.destination_port),
        [q.protocol, 0, 0, 0],
    ));
    Note::alone(Kind::Question, &content)
}

/// The end of a connection's state.
pub(super) fn end(flow: &Flow) -> Note {
    let [low, high] = [flow.low, flow.high].map(|(address, port)| (WireAddress(address).into(), port));
    Note::alone(Kind::Timer, &words(low, high, [flow.protocol, 0, 0, 0]))
}

const KILLED: &str = "these rules have killed two filters";

impl Filter {
    /// Records that a question is answered from now on. False: it has killed two predecessors.
    pub(crate) fn enter(&self, p: &Packet) -> bool {
        self.docket.enter(note(p))
    }

    /// Answers a question that has killed two predecessors.
    pub(super) fn refuse_fatal(&self, cx: &Context, request: RequestId, out: &mut Outbox<ToIp>) {
        cx.count(Counter::DropFatal);
        cx.count(Counter::Blocked);
        out.push(ToIp::ToIp(FilterToIp::Verdict { request, judgement: Judgement::Drop }));
    }

    /// Rules have killed two predecessors. Those that are in force stay; if there are none, nothing passes but what belongs to a
    /// connection.
    pub(super) fn refuse_fatal_rules(
        &mut self,
        cx: &mut Context,
        out: &mut Outbox<ToIp>,
    ) -> Result<(), String> {
        cx.count(Counter::DropFatal);
        if self.rules.is_none() {
            self.put_in_force(cx, parse("block all").expect("sound rules"), out);
        }
        self.refuse_rules(cx, KILLED.into())
    }
}
