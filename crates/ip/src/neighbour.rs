//! The neighbour table (addresses to link addresses), without the packets that fill it.
//!
//! States after RFC 4861 §7.3.2 in short: *incomplete* (asked, packets wait), *reachable* for a
//! while after each confirmation, then *stale*: still used, but the first use asks again (by
//! unicast), and the entry of a silent neighbour goes back to incomplete. Everything is bounded:
//! entries, and packets that wait.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use eft_base::{Instant, MacAddress, RequestId};

/// An operator asks for the neighbours: the key of the question and of the answer begins so.
pub(crate) const NEIGHBOURS: &str = "neighbours:";

const ENTRIES_MAX: usize = 1024;
const REACHABLE: Duration = Duration::from_secs(30);
/// When the question is repeated; after the last wait the neighbour counts as silent.
const WAITS_MS: [u64; 4] = [250, 500, 1000, 1250];
/// How long to wait before a silent neighbour is asked again.
const SILENT: Duration = Duration::from_millis(500);

enum State {
    /// Asked by broadcast `tries` times.
    Incomplete {
        tries: usize,
        next: Instant,
    },
    Reachable {
        until: Instant,
    },
    /// Asked by unicast; still used.
    Probing {
        tries: usize,
        next: Instant,
    },
    Silent {
        until: Instant,
    },
    /// Configured: neither asked nor learned.
    Permanent,
}

struct Neighbour {
    state: State,
    /// Meaningful in `Reachable`, `Probing` and `Permanent`.
    mac: MacAddress,
    used: Instant,
    /// When a packet last went to it, if one did: `used` also counts what it sent.
    sent: Option<Instant>,
    /// When it last answered.
    confirmed: Option<Instant>,
    waiting: VecDeque<RequestId>,
}

/// A neighbour as operators see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub interface: u8,
    pub address: IpAddr,
    pub mac: Option<MacAddress>,
    pub state: &'static str,
    pub confirmed: Option<Instant>,
    pub used: Option<Instant>,
}

/// What is learned of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Learned {
    pub mac: MacAddress,
    /// It answered us, so packets of ours reach it. Otherwise it is asked again at its first use.
    pub confirmed: bool,
}

/// What to do with a packet for a neighbour.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Send(MacAddress),
    /// Send, and ask this link address whether it is still there.
    SendAndProbe(MacAddress),
    /// The packet was queued; `ask`: no request was sent yet.
    Wait {
        ask: bool,
    },
    Unreachable,
    /// No more packets may wait.
    Full {
        ask: bool,
    },
    /// Every entry is in use.
    NoEntry,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Ask {
        interface: u8,
        address: IpAddr,
        mac: Option<MacAddress>,
    },
    /// The neighbour is silent; these packets cannot be sent.
    GiveUp {
        interface: u8,
        address: IpAddr,
        waiting: VecDeque<RequestId>,
    },
}

pub(crate) struct Neighbours {
    entries: BTreeMap<(u8, IpAddr), Neighbour>,
    waiting: usize,
    waiting_max: usize,
    waiting_max_each: usize,
    next: Option<Instant>,
}

impl Neighbours {
    /// At most `waiting_max` packets wait in all, `waiting_max_each` of them for one neighbour.
    pub fn new(waiting_max: usize, waiting_max_each: usize) -> Neighbours {
        Neighbours { entries: BTreeMap::new(), waiting: 0, waiting_max, waiting_max_each, next: None }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn schedule(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |n| n.min(at)));
    }

    /// What to do with packet `id` for a neighbour; it is queued if it must wait and, by its sender's share, may.
    pub fn lookup(
        &mut self,
        now: Instant,
        (interface, address): (u8, IpAddr),
        id: RequestId,
        may_wait: impl FnOnce() -> bool,
    ) -> Lookup {
        let first_wait = now + Duration::from_millis(WAITS_MS[0]);
        if let Some(n) = self.entries.get_mut(&(interface, address)) {
            (n.used, n.sent) = (now, Some(now));
            match n.state {
                State::Reachable { until } if now < until => return Lookup::Send(n.mac),
                State::Reachable { .. } => {
                    n.state = State::Probing { tries: 1, next: first_wait };
                    let mac = n.mac;
                    self.schedule(first_wait);
                    return Lookup::SendAndProbe(mac);
                }
                State::Probing { .. } | State::Permanent => return Lookup::Send(n.mac),
                State::Silent { until } if now < until => return Lookup::Unreachable,
                State::Silent { .. } | State::Incomplete { .. } => {}
            }
        } else if !self.make_room(now) {
            return Lookup::NoEntry;
        }
        let n = self.entries.entry((interface, address)).or_insert(Neighbour {
            state: State::Silent { until: now },
            mac: MacAddress::default(),
            used: now,
            sent: Some(now),
            confirmed: None,
            waiting: VecDeque::new(),
        });
        // A packet that may not wait asks, too: its repetition can go out then.
        let ask = !matches!(n.state, State::Incomplete { .. });
        if ask {
            n.state = State::Incomplete { tries: 1, next: first_wait };
        }
        let is_full = self.waiting >= self.waiting_max || n.waiting.len() >= self.waiting_max_each;
        let waits = !is_full && may_wait();
        if waits {
            n.waiting.push_back(id);
            self.waiting += 1;
        }
        if ask {
            self.schedule(first_wait);
        }
        if waits { Lookup::Wait { ask } } else { Lookup::Full { ask } }
    }

    /// Whether there is an entry, in whatever state.
    pub fn knows(&self, interface: u8, address: IpAddr) -> bool {
        self.entries.contains_key(&(interface, address))
    }

    /// The link address of a neighbour that has one.
    pub fn mac(&self, interface: u8, address: IpAddr) -> Option<MacAddress> {
        let n = self.entries.get(&(interface, address))?;
        matches!(n.state, State::Reachable { .. } | State::Probing { .. } | State::Permanent).then_some(n.mac)
    }

    /// Another host claims the neighbour's address: the entry stays in use, and its next use asks
    /// again.
    pub fn doubt(&mut self, now: Instant, interface: u8, address: IpAddr) {
        if let Some(n) = self.entries.get_mut(&(interface, address))
            && let State::Reachable { until } = &mut n.state
        {
            *until = now.min(*until);
        }
    }

    /// The neighbour's link address is known. Returns the packets that waited for it.
    pub fn learn(
        &mut self,
        now: Instant,
        interface: u8,
        address: IpAddr,
        Learned { mac, confirmed }: Learned,
    ) -> VecDeque<RequestId> {
        if !self.knows(interface, address) && !self.make_room(now) {
            return VecDeque::new();
        }
        let n = self.entries.entry((interface, address)).or_insert(Neighbour {
            state: State::Silent { until: now },
            mac,
            used: now,
            sent: None,
            confirmed: None,
            waiting: VecDeque::new(),
        });
        if matches!(n.state, State::Permanent) {
            return VecDeque::new();
        }
        let is_new = n.mac != mac || !matches!(n.state, State::Reachable { .. } | State::Probing { .. });
        n.mac = mac;
        if confirmed {
            n.state = State::Reachable { until: now + REACHABLE };
            n.confirmed = Some(now);
        } else if is_new {
            // Stale.
            n.state = State::Reachable { until: now };
        }
        let waiting = core::mem::take(&mut n.waiting);
        self.waiting -= waiting.len();
        waiting
    }

    /// Makes these the configured neighbours, and those that were forgotten. Returns the packets that can be sent now, with
    /// the link address for each neighbour's.
    pub fn configure(
        &mut self,
        now: Instant,
        configured: impl Iterator<Item = (u8, IpAddr, MacAddress)>,
    ) -> Vec<(MacAddress, VecDeque<RequestId>)> {
        self.entries.retain(|_, n| !matches!(n.state, State::Permanent));
        let mut ready = Vec::new();
        for (interface, address, mac) in configured {
            let waiting = self.forget_one(interface, address);
            let n = Neighbour {
                state: State::Permanent,
                mac,
                used: now,
                sent: None,
                confirmed: None,
                waiting: VecDeque::new(),
            };
            self.entries.insert((interface, address), n);
            ready.push((mac, waiting));
        }
        ready
    }

    /// All of them, by interface and address.
    pub fn shown(&self, now: Instant) -> impl Iterator<Item = Shown> {
        self.entries.iter().map(move |((interface, address), n)| {
            let (state, has_mac) = match n.state {
                State::Incomplete { .. } => ("incomplete", false),
                State::Reachable { until } if now < until => ("reachable", true),
                State::Reachable { .. } => ("stale", true),
                State::Probing { .. } => ("probe", true),
                State::Silent { .. } => ("failed", false),
                State::Permanent => ("permanent", true),
            };
            Shown {
                interface: *interface,
                address: *address,
                mac: has_mac.then_some(n.mac),
                state,
                confirmed: n.confirmed,
                used: n.sent,
            }
        })
    }

    /// Forgets an interface whose addresses changed. Returns the packets that waited.
    pub fn forget(&mut self, interface: u8) -> VecDeque<RequestId> {
        let mut waiting = VecDeque::new();
        self.entries.retain(|(i, _), n| {
            if *i == interface {
                waiting.append(&mut n.waiting);
            }
            *i != interface
        });
        self.waiting -= waiting.len();
        waiting
    }

    /// Forgets a neighbour. Returns the packets that waited.
    pub fn forget_one(&mut self, interface: u8, address: IpAddr) -> VecDeque<RequestId> {
        let waiting = self.entries.remove(&(interface, address)).map(|n| n.waiting).unwrap_or_default();
        self.waiting -= waiting.len();
        waiting
    }

    /// Evicts the entry that was unused for longest if the table is full. False: all are in use.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.entries.len() < ENTRIES_MAX {
            return true;
        }
        let may_go = |n: &Neighbour| !matches!(n.state, State::Permanent) && n.waiting.is_empty();
        let idle = self.entries.iter().filter(|(_, n)| may_go(n) && n.used < now);
        let oldest = idle.min_by_key(|(_, n)| n.used).map(|(k, _)| *k);
        oldest.is_some_and(|k| self.entries.remove(&k).is_some())
    }

    /// What is due by `now`.
    pub fn expire(&mut self, now: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        if self.next.is_none_or(|n| n > now) {
            return due;
        }
        let mut next: Option<Instant> = None;
        for ((interface, address), n) in &mut self.entries {
            let (tries, at, probing) = match n.state {
                State::Incomplete { tries, next } => (tries, next, false),
                State::Probing { tries, next } => (tries, next, true),
                _ => continue,
            };
            let mut at = at;
            if at <= now {
                let silent = tries >= WAITS_MS.len();
                if silent && !probing {
                    self.waiting -= n.waiting.len();
                    let waiting = core::mem::take(&mut n.waiting);
                    due.push(Due::GiveUp { interface: *interface, address: *address, waiting });
                    n.state = State::Silent { until: now + SILENT };
                    continue;
                }
                let tries = if silent { 0 } else { tries };
                let probing = probing && !silent;
                at = now + Duration::from_millis(WAITS_MS[tries]);
                due.push(Due::Ask {
                    interface: *interface,
                    address: *address,
                    mac: probing.then_some(n.mac),
                });
                let tries = tries + 1;
                n.state = if probing {
                    State::Probing { tries, next: at }
                } else {
                    State::Incomplete { tries, next: at }
                };
            }
            next = Some(next.map_or(at, |x| x.min(at)));
        }
        self.next = next;
        due
    }
}

#[cfg(test)]
mod tests;
