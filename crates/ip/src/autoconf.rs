//! What interfaces learn by themselves ([`crate::learners`]): packets for it and from it, and how the supervisor hears of it.
//!
//! What is learnt does not take effect here at once: the supervisor is told, keeps it for a successor, and configures ip,
//! transports and programs with it, as with what an operator changes.

use crate::config::Config;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::learners::KNOWN;
use crate::pending::ToPeer;
use crate::v6;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use eft_autoconf::host::Send;
use eft_autoconf::known;
use eft_base::Instant;
use eft_base::address::without_zone;
use eft_component::{Answer, Context};

/// News are told at once, and then not for so long: whoever may send advertisements must not keep all servers busy.
const TELL_INTERVAL: Duration = Duration::from_millis(500);

impl Ip {
    /// What a configuration says of it. Interfaces whose link is up begin.
    pub(crate) fn configure_autoconf(&mut self, cx: &mut Context, config: &Config) {
        for nic in self.autoconf.configure(config) {
            if self.link(nic).is_some_and(|link| link.up) {
                self.start_autoconf(cx, nic);
            }
        }
        self.note_deprecated(cx.now);
        self.schedule_autoconf(cx.now);
    }

    /// The link of an interface came up.
    pub(crate) fn start_autoconf(&mut self, cx: &mut Context, nic: u8) {
        if let Some(host) = self.autoconf.host(nic) {
            host.start(cx.now, cx.random);
            self.schedule_autoconf(cx.now);
        }
    }

    pub(crate) fn expire_autoconf(&mut self, cx: &mut Context, out: &mut Out) {
        if self.autoconf.due.is_none_or(|due| due > cx.now) {
            return;
        }
        let mut sends = Vec::new();
        for (nic, host) in &mut self.autoconf.hosts {
            sends.extend(host.expire(cx.now, cx.random).into_iter().map(|send| (*nic, send)));
        }
        for (nic, send) in sends {
            match send {
                Send::Solicit => self.solicit_routers(cx, nic, out),
            }
        }
        self.autoconf_changed(cx, out);
    }

    /// A router's advertisement, from its ICMPv6 header on; its checksum and its hop limit are right.
    pub(crate) fn receive_router(
        &mut self,
        cx: &mut Context,
        nic: u8,
        from: Ipv6Addr,
        bytes: &[u8],
        out: &mut Out,
    ) {
        let Some(host) = self.autoconf.host(nic) else { return };
        // RFC 4861 §6.1.2; one that claims our own address is none.
        let is_router = v6::address::is_link_local(from) && !self.routes.is_ours(from.into());
        let read = eft_autoconf::router::message::parse(bytes).filter(|_| is_router);
        let (Some(read), IpAddr::V6(from)) = (read, without_zone(from.into())) else {
            return cx.count(Counter::DropDiscovery);
        };
        cx.count(Counter::RouterAdvertisements);
        host.advertised(cx.now, from, &read);
        self.autoconf_changed(cx, out);
    }

    /// Another host has an address that may have been learnt.
    pub(crate) fn autoconf_conflict(&mut self, cx: &mut Context, nic: u8, address: IpAddr) {
        if let (Some(host), IpAddr::V6(address)) = (self.autoconf.host(nic), without_zone(address)) {
            host.conflict(address);
            self.autoconf.due = Some(cx.now);
        }
    }

    /// Something may be known now that was not, or the other way round.
    fn autoconf_changed(&mut self, cx: &mut Context, out: &mut Out) {
        self.note_deprecated(cx.now);
        let a = &mut self.autoconf;
        if cx.now >= a.tell_after {
            let known = a.known();
            if known != a.told {
                out.push(ToPeer::Answer(Answer { key: KNOWN.into(), value: known::text(&known) }));
                a.told = known;
                a.tell_after = cx.now + TELL_INTERVAL;
            }
        }
        self.schedule_autoconf(cx.now);
    }

    /// When something ends, is to be sent or told.
    fn schedule_autoconf(&mut self, now: Instant) {
        let a = &mut self.autoconf;
        let waits = a.known() != a.told;
        let ends = a.hosts.iter().filter_map(|(_, host)| host.deadline(now));
        a.due = ends.chain(waits.then_some(a.tell_after)).min();
    }

    /// Tells the routes which addresses new connections do not use if there is another (RFC 6724 §5, rule 3).
    fn note_deprecated(&mut self, now: Instant) {
        for (nic, host) in &self.autoconf.hosts {
            for a in host.known().addresses() {
                let deprecated = a.preferred.is_some_and(|end| end <= now);
                self.routes.set_deprecated(*nic, a.cidr.address, deprecated);
            }
        }
    }
}
