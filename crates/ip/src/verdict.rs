//! The T-junction: the filter is asked, the packet stays here.
//!
//! A packet that waits is a flight in [`Stage::Verdict`] or an entry of the arrivals. Their ids go
//! to the filter and come back; the top bit of the index tells the two apart.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::flight::{Arrival, Flight, Question, Stage, ToPeer};
use core::net::{IpAddr, Ipv4Addr};
use eft_base::errno::EPERM;
use eft_base::{RequestId, WireAddress};
use eft_component::Context;
use eft_messages::filter::IpToFilter;

const ARRIVAL: u32 = 1 << 31;

fn ask(request: RequestId, q: &Question, interface: u8, inbound: bool, len: u32) -> ToPeer {
    let wire = |a: Ipv4Addr| WireAddress::from(IpAddr::V4(a));
    ToPeer::Filter(IpToFilter::Ask {
        request,
        source: wire(q.source),
        destination: wire(q.destination),
        source_port: q.source_port,
        destination_port: q.destination_port,
        protocol: q.protocol,
        tcp_flags: q.tcp_flags,
        interface,
        inbound,
        len: len.min(u16::MAX as u32) as u16,
    })
}

impl Ip {
    pub(crate) fn ask_out(id: RequestId, f: &Flight) -> ToPeer {
        ask(id, &f.question, f.hop.interface, false, f.len)
    }

    pub(crate) fn ask_in(id: RequestId, a: &Arrival) -> ToPeer {
        let id = RequestId { index: id.index | ARRIVAL, ..id };
        ask(id, &a.question, a.interface, true, a.packet.len)
    }

    /// A packet that came in is whole: it passes once the filter, if there is one, says so.
    pub(crate) fn judge(&mut self, cx: &mut Context, arrival: Arrival, out: &mut Out) {
        if !self.with_filter {
            return self.accept(cx, arrival, out);
        }
        match self.arrivals.insert(arrival) {
            Ok(id) => {
                cx.count(Counter::FilterAsks as usize);
                out.push(Ip::ask_in(id, &arrival));
            }
            Err(a) => self.drop_packet(cx, a.packet, Counter::DropArrivalsFull, out),
        }
    }

    pub(crate) fn receive_verdict(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        pass: bool,
        out: &mut Out,
    ) {
        if request.index & ARRIVAL != 0 {
            let id = RequestId { index: request.index & !ARRIVAL, ..request };
            return match self.arrivals.remove(id) {
                Some(a) if pass => self.accept(cx, a, out),
                Some(a) => self.drop_packet(cx, a.packet, Counter::FilterBlockedIn, out),
                None => cx.count(Counter::StaleReply as usize),
            };
        }
        match self.flights.get(request) {
            Some(f) if f.stage == Stage::Verdict => {
                if pass {
                    let mut descriptor = self.descriptor(f.frame);
                    self.depart(cx, request, &mut descriptor, out);
                } else {
                    cx.count(Counter::FilterBlockedOut as usize);
                    self.finish(request, EPERM, out);
                }
            }
            _ => cx.count(Counter::StaleReply as usize),
        }
    }
}
