//! Asks the filter about packets, which stay here meanwhile.
//!
//! A packet that waits is a transmission in [`Stage::Verdict`] or an entry of the arrivals. Their ids go
//! to the filter and come back; the top bit of the index tells the two apart.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::grants::Way;
use crate::note;
use crate::pending::{Arrival, Asked, Question, Stage, ToPeer, Transmission};
use alloc::vec::Vec;
use eft_base::RequestId;
use eft_base::errno::EPERM;
use eft_base::wire::IcmpHeader;
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, Flow, IpToFilter, Judgement};
use eft_messages::nic::FrameDescriptor;
use zerocopy::IntoBytes;

const ARRIVAL: u32 = 1 << 31;

/// Asks about a packet; for an ICMP error, first sends what it quotes.
fn ask(request: RequestId, q: &Question, interface: u8, inbound: bool, len: u32, out: &mut Out) {
    if let Some(quoted) = q.quoted {
        out.push(ToPeer::Filter(IpToFilter::Quote {
            request,
            source: quoted.source.into(),
            destination: quoted.destination.into(),
            source_port: quoted.source_port,
            destination_port: quoted.destination_port,
            protocol: quoted.protocol,
        }));
    }
    out.push(ToPeer::Filter(IpToFilter::Ask {
        request,
        source: q.source.into(),
        destination: q.destination.into(),
        source_port: q.source_port,
        destination_port: q.destination_port,
        protocol: q.protocol,
        tcp_flags: q.tcp_flags,
        interface,
        inbound,
        len: len.min(u16::MAX as u32) as u16,
    }))
}

/// A packet that waits for a verdict.
enum Waiting {
    Arrival(RequestId),
    Transmission(RequestId),
}

fn waiting(request: RequestId) -> Waiting {
    match request.index & ARRIVAL {
        0 => Waiting::Transmission(request),
        _ => Waiting::Arrival(RequestId { index: request.index & !ARRIVAL, ..request }),
    }
}

/// An arrival's id among those that the filter gets.
pub(crate) fn tagged(arrival: RequestId) -> RequestId {
    RequestId { index: arrival.index | ARRIVAL, ..arrival }
}

impl Ip {
    /// A transmission passes at once, or, if there is a filter, when it says so.
    pub(crate) fn judge_transmission(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        t: &Transmission,
        descriptor: &mut FrameDescriptor,
        out: &mut Out,
    ) {
        let way = self.grants.way(cx.now, &t.question, t.hop.interface);
        if way == Way::Pass {
            cx.count(Counter::FilterGranted);
            return self.depart(cx, id, descriptor, out);
        }
        self.frames.write(t.frame, 0, descriptor.as_bytes());
        self.take_way(cx, way, id, out);
    }

    /// A packet that came in is complete: it passes when the filter, if there is one, says so.
    pub(crate) fn judge(&mut self, cx: &mut Context, mut arrival: Arrival, out: &mut Out) {
        if !self.with_filter {
            return self.accept(cx, arrival, out);
        }
        let way = self.grants.way(cx.now, &arrival.question, arrival.interface);
        if way == Way::Pass {
            cx.count(Counter::FilterGranted);
            return self.accept(cx, arrival, out);
        }
        if arrival.question.is_error() {
            let message = arrival.packet.skip(arrival.header_len as u32);
            arrival.question.quoted =
                self.quoted(cx, message.skip(size_of::<IcmpHeader>() as u32), arrival.question.zone());
        }
        match self.arrivals.insert(Asked { arrival, named: self.docket.running() }) {
            Ok(id) => self.take_way(cx, way, tagged(id), out),
            Err(a) => self.drop_packet(cx, a.arrival.packet, Counter::DropArrivalsFull, out),
        }
    }

    /// Handles a packet that does not pass at once.
    fn take_way(&mut self, cx: &mut Context, way: Way, request: RequestId, out: &mut Out) {
        match way {
            Way::Hold(flow) => return self.grants.hold(&flow, request),
            Way::EndAndAsk(flow) => self.end_grant(cx, &flow, out),
            Way::Ask | Way::Pass => {}
        }
        self.ask(cx, Counter::FilterAsks, request, out);
    }

    fn ask(&mut self, cx: &mut Context, count: Counter, request: RequestId, out: &mut Out) {
        let (question, interface, inbound, len) = match waiting(request) {
            Waiting::Arrival(id) => match self.arrivals.get(id).map(|a| &a.arrival) {
                Some(a) => (a.question, a.interface, true, a.packet.len),
                None => return,
            },
            Waiting::Transmission(id) => match self.transmissions.get(id) {
                Some(t) => (t.question, t.hop.interface, false, t.len),
                None => return,
            },
        };
        cx.count(count);
        self.grants.count_question();
        ask(request, &question, interface, inbound, len, out);
    }

    /// The filter has not answered for long.
    pub(crate) fn ask_again(&mut self, cx: &mut Context, request: RequestId, out: &mut Out) {
        // A question may be two messages.
        if out.room(ComponentId::FILTER) > 1 {
            self.ask(cx, Counter::FilterAsksAgain, request, out);
        }
    }

    /// A grant is over: the filter is told when it was last used, and is asked about the held packets.
    fn end_grant(&mut self, cx: &mut Context, flow: &Flow, out: &mut Out) {
        let (used, held) = self.grants.end(flow);
        out_to_filter(used, out);
        held.into_iter().for_each(|id| self.ask(cx, Counter::FilterAsks, id, out));
    }

    pub(crate) fn receive_from_filter(&mut self, cx: &mut Context, message: FilterToIp, out: &mut Out) {
        match message {
            FilterToIp::Verdict { request, judgement } => self.answered(cx, request, judgement, None, out),
            FilterToIp::Grant { request, by_rules } => {
                self.answered(cx, request, Judgement::Pass, Some(by_rules), out)
            }
            FilterToIp::Recall { flow } => self.end_grant(cx, &flow, out),
            FilterToIp::PassAll {} => self.grants.grant_all(),
            FilterToIp::RecallByRules {} => {
                let held = self.grants.end_by_rules();
                held.into_iter().for_each(|id| self.ask(cx, Counter::FilterAsks, id, out));
            }
        }
    }

    /// The filter has answered, and perhaps grants the packet's connection by its rules or its state.
    fn answered(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        judgement: Judgement,
        grant_by_rules: Option<bool>,
        out: &mut Out,
    ) {
        self.grants.count_answer();
        let asked = match waiting(request) {
            Waiting::Arrival(id) => self.arrivals.get(id).map(|a| (a.arrival.question, a.arrival.interface)),
            Waiting::Transmission(id) => self.transmissions.get(id).map(|t| (t.question, t.hop.interface)),
        };
        if let (Some((question, interface)), Some(by_rules)) = (asked, grant_by_rules) {
            self.grants.grant(cx.now, &question, by_rules.then_some(interface));
        }
        self.carry_out(cx, request, judgement, out);
        for held in self.grants.take_held() {
            cx.count(Counter::FilterGranted);
            self.carry_out(cx, held, Judgement::Pass, out);
        }
    }

    fn carry_out(&mut self, cx: &mut Context, request: RequestId, judgement: Judgement, out: &mut Out) {
        match waiting(request) {
            Waiting::Arrival(id) => self.carry_out_arrival(cx, id, judgement, out),
            Waiting::Transmission(id) => self.carry_out_transmission(cx, id, judgement, out),
        }
    }

    fn carry_out_arrival(&mut self, cx: &mut Context, id: RequestId, judgement: Judgement, out: &mut Out) {
        let asked = self.arrivals.remove(id);
        let is_fatal = asked.is_some_and(|asked| !self.docket.enter_again(asked.named));
        match asked.map(|asked| asked.arrival) {
            Some(a) if is_fatal => self.drop_packet(cx, a.packet, Counter::DropFatal, out),
            Some(a) if judgement == Judgement::Pass => self.accept(cx, a, out),
            Some(a) => {
                self.reject_arrival(cx, &a, judgement, out);
                self.drop_packet(cx, a.packet, Counter::FilterBlockedIn, out)
            }
            None => cx.count(Counter::StaleReply),
        }
    }

    fn carry_out_transmission(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        judgement: Judgement,
        out: &mut Out,
    ) {
        let Some(&transmission) = self.transmissions.get(id).filter(|f| f.stage == Stage::Verdict) else {
            return cx.count(Counter::StaleReply);
        };
        let mut descriptor = self.descriptor(transmission.frame);
        if !self.enter_judged_send(&transmission, &descriptor) {
            cx.count(Counter::DropFatal);
            return self.finish(id, 0, out);
        }
        if judgement == Judgement::Pass {
            return self.depart(cx, id, &mut descriptor, out);
        }
        cx.count(Counter::FilterBlockedOut);
        // A sender that gets an answer needs no errno, too.
        let told = self.reject_transmission(cx, &transmission, &descriptor, judgement, out);
        self.finish(id, if told { 0 } else { EPERM }, out);
    }

    /// A new filter is asked about every packet without a verdict.
    pub(crate) fn filter_reborn(&mut self, cx: &mut Context, out: &mut Out) {
        self.grants.clear();
        let transmissions = self.transmissions.iter().filter(|(_, t)| t.stage == Stage::Verdict);
        let mut all: Vec<RequestId> = transmissions.map(|(id, _)| id).collect();
        all.extend(self.arrivals.iter().map(|(id, _)| tagged(id)));
        all.into_iter().for_each(|id| self.ask(cx, Counter::FilterAsksAgain, id, out));
    }

    pub(crate) fn expire_grants(&mut self, cx: &mut Context, out: &mut Out) {
        if self.grants.deadline().is_none_or(|at| at > cx.now) {
            return;
        }
        match self.enter(cx, note::grants()) {
            true => out_to_filter(self.grants.report(cx.now), out),
            false => self.grants.put_report_off(),
        }
    }
}

fn out_to_filter(message: Option<IpToFilter>, out: &mut Out) {
    if let Some(message) = message {
        out.push(ToPeer::Filter(message));
    }
}
