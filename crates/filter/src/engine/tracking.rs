//! Connection tracking: states are found, begun and ended.

use super::{Filter, MayGrant, SWEEP, ToIp};
use crate::counters::Counter;
use crate::rule::Packet;
use crate::state::{State, flow, quoted_packet};
use eft_base::Instant;
use eft_component::{Context, Outbox};
use eft_messages::filter::{FilterToIp, Flow};

impl Filter {
    /// The living connection that a packet belongs to, and whether its low end sent it.
    fn find_state(&mut self, cx: &Context, p: &Packet) -> Option<(u32, bool)> {
        let (flow, source_is_low) = flow(p)?;
        let slot = self.states.find(&flow)?;
        let state = self.states.get(slot)?;
        if state.expires <= cx.now && !state.granted {
            cx.count(Counter::StatesExpired);
            self.states.remove(slot);
            return None;
        }
        Some((slot, source_is_low))
    }

    /// Whether a packet belongs to a living connection; also updates the connection's state.
    pub(super) fn match_state(&mut self, cx: &Context, p: &Packet) -> Option<MayGrant> {
        let (slot, source_is_low) = self.find_state(cx, p)?;
        self.states.get(slot).filter(|s| s.admits(source_is_low, p))?;
        let mut grant = false;
        self.states.update(slot, |s| {
            s.observe(cx.now, source_is_low, p.tcp_flags);
            grant = s.may_grant(p);
            s.granted |= grant;
        });
        Some(MayGrant(grant))
    }

    /// Whether an ICMP error is about a packet of a living connection. The error does not extend the
    /// state's life.
    pub(super) fn match_quoted(&mut self, cx: &Context, error: &Packet) -> Option<MayGrant> {
        let quoted = quoted_packet(error)?;
        let (slot, source_is_low) = self.find_state(cx, &quoted)?;
        self.states.get(slot).filter(|s| s.may_quote(source_is_low, &quoted))?;
        Some(MayGrant(false))
    }

    /// Begins a state. False: there is no room, so the packet may not pass.
    pub(super) fn begin_state(&mut self, cx: &mut Context, p: &Packet, out: &mut Outbox<ToIp>) -> bool {
        let Some(state) = State::new(cx.now, p) else {
            // For example an ICMP error: it passes without a state.
            return true;
        };
        if let Some(old) = self.states.find(&state.flow) {
            self.end_state(old, out);
        }
        if !self.states.insert(state) {
            if let Some(victim) = self.states.choose_victim() {
                self.end_state(victim, out);
            }
            if !self.states.insert(state) {
                cx.count(Counter::StatesFull);
                return false;
            }
            cx.count(Counter::StatesEvicted);
        }
        cx.count(Counter::StatesCreated);
        cx.gauge(Counter::States, self.states.len() as u64);
        self.sweep_at.get_or_insert(cx.now + SWEEP);
        true
    }

    /// Ends a state before it expires. Its connection's next packet is judged by the rules.
    pub(super) fn end_state(&mut self, slot: u32, out: &mut Outbox<ToIp>) {
        if let Some(State { flow, granted: true, .. }) = self.states.get(slot) {
            out.push(ToIp::ToIp(FilterToIp::Recall { flow: *flow }));
        }
        self.states.remove(slot);
    }

    /// The grant of a connection is over. The state may have ended meanwhile.
    pub(super) fn grant_ended(&mut self, cx: &Context, flow: &Flow, at: Instant) {
        let Some(slot) = self.states.find(flow) else { return };
        // A time in the future is not believed.
        self.states.update(slot, |s| s.used(at.min(cx.now)));
        if self.states.get(slot).is_some_and(|s| s.expires <= cx.now) {
            cx.count(Counter::StatesExpired);
            self.states.remove(slot);
            cx.gauge(Counter::States, self.states.len() as u64);
        }
    }
}
