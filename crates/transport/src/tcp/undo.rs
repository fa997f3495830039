//! Undoes a reduction of the window when nothing was lost: Eifel (RFC 3522, by timestamps), F-RTO (RFC 5682, without
//! them), and DSACK (RFC 2883, RFC 3708: all retransmitted data came twice).

use super::congestion::Congestion;
use super::segment::Segment;

/// F-RTO, after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    /// Not after a timeout, or the timeout was right.
    Off,
    /// The first segment was sent again; the next acknowledgment decides (§3.1 step 2).
    Asked,
    /// New data are sent instead of data that seem lost (§3.1 step 2b).
    NewData,
}

/// The state before a reduction, and what may show that the retransmission was needless.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    pub congestion: Congestion,
    /// Our timestamp clock when the first segment was retransmitted; no retransmission carries less. `None` without
    /// timestamps.
    clock: Option<u32>,
    /// Bytes that were retransmitted, less those that the peer reported as received twice.
    unproven: u64,
    /// Anything was retransmitted.
    any: bool,
    pub after_timeout: bool,
    frto: Frto,
    /// Acknowledgments beyond this offset do not count any more.
    until: Option<u64>,
}

/// What an acknowledgment says about the reduction.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// The acknowledgment moved.
    pub advanced: bool,
    /// A segment that was sent once, before the timeout, arrived.
    pub originals: bool,
    /// It is a duplicate, or reports out-of-order ranges.
    pub repeated: bool,
    /// New data could be sent.
    pub can_send_new: bool,
    /// Bytes that the peer reports as received twice.
    pub duplicate: u64,
}

impl Undo {
    pub fn new(congestion: Congestion, clock: Option<u32>, after_timeout: bool) -> Undo {
        let frto = if after_timeout && clock.is_none() { Frto::Asked } else { Frto::Off };
        Undo { congestion, clock, unproven: 0, any: false, after_timeout, frto, until: None }
    }

    pub fn on_sent_again(&mut self, bytes: u64) {
        self.unproven += bytes;
        self.any = true;
    }

    /// The timer ran out again: F-RTO does not apply any more (RFC 5682 §3.1 step 1).
    pub fn on_timeout_again(&mut self) {
        self.frto = Frto::Off;
    }

    /// The recovery is over; reports of duplicates may follow for a round trip.
    pub fn on_recovered(&mut self, nxt: u64) {
        self.frto = Frto::Off;
        self.clock = None;
        self.until = Some(nxt);
    }

    pub fn is_over(&self, una: u64) -> bool {
        self.until.is_some_and(|until| una > until)
    }

    pub fn tries_new_data(&self) -> bool {
        self.frto == Frto::NewData
    }

    /// Whether the first acknowledgment echoes a timestamp from before the first retransmission: the original arrived,
    /// only late (RFC 3522 §3.2).
    fn echoes_original(&self, acknowledgment: &Segment) -> bool {
        let echo = acknowledgment.options.timestamps.map_or(0, |(_, echo)| echo);
        self.clock.is_some_and(|clock| echo != 0 && (echo.wrapping_sub(clock) as i32) < 0)
    }

    /// Whether the reduction is to be undone.
    pub fn judge(&mut self, acknowledgment: &Segment, evidence: &Evidence) -> bool {
        if !self.any {
            return false;
        }
        self.unproven = self.unproven.saturating_sub(evidence.duplicate);
        if evidence.duplicate > 0 && self.unproven == 0 {
            return true;
        }
        if evidence.advanced {
            if self.echoes_original(acknowledgment) {
                return true;
            }
            // Timestamps decide by the first acknowledgment or not at all.
            self.clock = None;
        }
        self.judge_timeout(evidence)
    }

    /// RFC 5682 §3.1 with the enhancement by SACK.
    fn judge_timeout(&mut self, evidence: &Evidence) -> bool {
        if self.frto == Frto::Off {
            return false;
        }
        if evidence.originals {
            // Step 3b: data that were not retransmitted arrived.
            return true;
        }
        self.frto = match self.frto {
            Frto::Asked if evidence.advanced && evidence.can_send_new && !evidence.repeated => Frto::NewData,
            // Step 3a: the retransmissions were needed. Or step 2a, or there are no new data.
            Frto::NewData if !evidence.repeated && !evidence.advanced => Frto::NewData,
            Frto::Asked if !evidence.advanced && !evidence.repeated => Frto::Asked,
            _ => Frto::Off,
        };
        false
    }
}

#[cfg(test)]
mod tests;
