//! The T-junction: the filter is asked, the packet stays here.
//!
//! A packet that waits is a transmission in [`Stage::Verdict`] or an entry of the arrivals. Their ids go
//! to the filter and come back; the top bit of the index tells the two apart.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::pending::{Arrival, Question, Stage, ToPeer, Transmission};
use eft_base::RequestId;
use eft_base::errno::EPERM;
use eft_base::wire::IcmpHeader;
use eft_component::Context;
use eft_messages::filter::{IpToFilter, Judgement};

const ARRIVAL: u32 = 1 << 31;

/// Asks, and says before what the packet quotes if it is an error.
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

impl Ip {
    pub(crate) fn ask_out(id: RequestId, f: &Transmission, out: &mut Out) {
        ask(id, &f.question, f.hop.interface, false, f.len, out)
    }

    pub(crate) fn ask_in(id: RequestId, a: &Arrival, out: &mut Out) {
        let id = RequestId { index: id.index | ARRIVAL, ..id };
        ask(id, &a.question, a.interface, true, a.packet.len, out)
    }

    /// A packet that came in is whole: it passes once the filter, if there is one, says so.
    pub(crate) fn judge(&mut self, cx: &mut Context, mut arrival: Arrival, out: &mut Out) {
        if !self.with_filter {
            return self.accept(cx, arrival, out);
        }
        if arrival.question.is_error() {
            let message = arrival.packet.skip(arrival.header_len as u32);
            arrival.question.quoted = self.quoted(cx, message.skip(size_of::<IcmpHeader>() as u32));
        }
        match self.arrivals.insert(arrival) {
            Ok(id) => {
                cx.count(Counter::FilterAsks);
                Ip::ask_in(id, &arrival, out);
            }
            Err(a) => self.drop_packet(cx, a.packet, Counter::DropArrivalsFull, out),
        }
    }

    pub(crate) fn receive_verdict(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        judgement: Judgement,
        out: &mut Out,
    ) {
        let pass = judgement == Judgement::Pass;
        if request.index & ARRIVAL != 0 {
            let id = RequestId { index: request.index & !ARRIVAL, ..request };
            return match self.arrivals.remove(id) {
                Some(a) if pass => self.accept(cx, a, out),
                Some(a) => {
                    self.reject_arrival(cx, &a, judgement, out);
                    self.drop_packet(cx, a.packet, Counter::FilterBlockedIn, out)
                }
                None => cx.count(Counter::StaleReply),
            };
        }
        let Some(&transmission) = self.transmissions.get(request).filter(|f| f.stage == Stage::Verdict)
        else {
            return cx.count(Counter::StaleReply);
        };
        let mut descriptor = self.descriptor(transmission.frame);
        if pass {
            return self.depart(cx, request, &mut descriptor, out);
        }
        cx.count(Counter::FilterBlockedOut);
        // Whoever hears why from the answer need not hear it twice.
        let told = self.reject_transmission(cx, &transmission, &descriptor, judgement, out);
        self.finish(request, if told { 0 } else { EPERM }, out);
    }
}
