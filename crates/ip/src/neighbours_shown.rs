//! The neighbour table as operators see it: one line for each neighbour, `NIC ADDRESS MAC STATE CONFIRMED USED`.
//!
//! The states are those of RFC 4861 §7.3.2 in the words of iproute2: `incomplete`, `reachable`, `stale`, `probe`, `failed`,
//! `permanent`. CONFIRMED and USED are milliseconds since the neighbour last answered and since a packet last went to it; `-`
//! stands for never, and for a MAC that is not known.

use crate::engine::{Ip, Out};
use crate::neighbour::Shown;
use crate::pending::ToPeer;
use alloc::format;
use alloc::string::{String, ToString};
use eft_base::Instant;
use eft_base::address::without_zone;
use eft_component::Answer;

impl Ip {
    pub(crate) fn show_neighbours(&self, now: Instant, key: String, out: &mut Out) {
        let value = self.describe_neighbours(now).into_bytes();
        out.push(ToPeer::Answer(Answer { key, value }));
    }

    fn describe_neighbours(&self, now: Instant) -> String {
        let since = |at: Option<Instant>| {
            at.map_or("-".to_string(), |at| now.saturating_since(at).as_millis().to_string())
        };
        let line = |n: Shown| {
            let mac = n.mac.map_or("-".to_string(), |mac| mac.to_string());
            let address = without_zone(n.address);
            let (confirmed, used) = (since(n.confirmed), since(n.used));
            format!("{} {address} {mac} {} {confirmed} {used}\n", n.interface, n.state)
        };
        self.neighbours.shown(now).map(line).collect()
    }
}
