//! What interfaces learn by themselves ([`crate::learners`]): packets for it and from it, and how the supervisor hears of it.
//!
//! What is learnt does not take effect here at once: the supervisor is told, keeps it for a successor, and configures ip,
//! transports and programs with it, as with what an operator changes.

use crate::config::Config;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::learners::KNOWN;
use crate::note;
use crate::pending::ToPeer;
use crate::v6;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use eft_autoconf::host::Send;
use eft_autoconf::known;
use eft_autoconf::method::Method;
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
        let Some(link) = self.link(nic).copied() else { return };
        if let Some(host) = self.autoconf.host(nic) {
            host.start(cx.now, link.mac, cx.random);
            self.schedule_autoconf(cx.now);
        }
        if self.sure_link_local(nic).is_some() {
            self.start_client6(cx, nic);
        }
    }

    /// The link-local address of an interface is sure: DHCPv6 servers may be asked.
    pub(crate) fn start_client6(&mut self, cx: &mut Context, nic: u8) {
        if let Some(host) = self.autoconf.host(nic) {
            host.start6(cx.now, cx.random);
            // What was due before is due still.
            self.autoconf.due = Some(cx.now);
        }
    }

    pub(crate) fn expire_autoconf(&mut self, cx: &mut Context, out: &mut Out) {
        if self.autoconf.due.is_none_or(|due| due > cx.now) {
            return;
        }
        let hosts = self.autoconf.hosts.iter();
        let all: Vec<(u8, Method)> =
            hosts.flat_map(|(nic, host)| host.methods.iter().map(|method| (*nic, *method))).collect();
        for (nic, method) in all {
            self.expire_method(cx, nic, method, out);
        }
        self.autoconf_changed(cx, out);
    }

    /// What is due of a method. If that has killed two predecessors, the interface does without the method, and all that it has
    /// brought ends.
    fn expire_method(&mut self, cx: &mut Context, nic: u8, method: Method, out: &mut Out) {
        let may_run = self.enter(cx, note::method(nic, method));
        let Some(host) = self.autoconf.host(nic) else { return };
        if !may_run {
            host.give_up(method);
        } else if let Some(send) = host.expire(method, cx.now, cx.random) {
            self.send_for_host(cx, nic, send, out);
        }
    }

    fn send_for_host(&mut self, cx: &mut Context, nic: u8, send: Send, out: &mut Out) {
        match send {
            Send::Solicit => self.solicit_routers(cx, nic, out),
            Send::Dhcp4(send) => self.send_by_client4(cx, nic, send, out),
            Send::Dhcp6(bytes) => self.send_by_client6(cx, nic, &bytes, out),
        }
    }

    /// Whether a message of a DHCPv4 server may be for this interface's client.
    pub(crate) fn awaits_server4(&mut self, nic: u8) -> bool {
        self.autoconf.host(nic).is_some_and(|host| host.awaits_server4())
    }

    /// A DHCPv4 server's message.
    pub(crate) fn receive_server4(&mut self, cx: &mut Context, nic: u8, message: &[u8], out: &mut Out) {
        cx.count(Counter::DhcpIn);
        if let Some(host) = self.autoconf.host(nic) {
            host.receive4(cx.now, message, cx.random);
            self.autoconf_changed(cx, out);
        }
    }

    pub(crate) fn awaits_server6(&mut self, nic: u8) -> bool {
        self.autoconf.host(nic).is_some_and(|host| host.awaits_server6())
    }

    /// A DHCPv6 server's message.
    pub(crate) fn receive_server6(&mut self, cx: &mut Context, nic: u8, message: &[u8], out: &mut Out) {
        cx.count(Counter::DhcpIn);
        if let Some(host) = self.autoconf.host(nic) {
            host.receive6(cx.now, message, cx.random);
            self.autoconf_changed(cx, out);
        }
    }

    /// The stack ends.
    pub(crate) fn release_leases(&mut self, cx: &mut Context, out: &mut Out) {
        let mut sends = Vec::new();
        for (nic, host) in &mut self.autoconf.hosts {
            sends.extend(host.release(cx.now, cx.random).into_iter().map(|send| (*nic, send)));
        }
        for (nic, send) in sends {
            self.send_for_host(cx, nic, send, out);
        }
        self.schedule_autoconf(cx.now);
    }

    /// Whether an address is tried out on this interface.
    pub(crate) fn is_probed(&mut self, nic: u8, address: Ipv4Addr) -> bool {
        self.autoconf.host(nic).is_some_and(|host| host.probed() == Some(address))
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
        host.advertised(cx.now, from, &read, cx.random);
        self.autoconf_changed(cx, out);
    }

    /// Another host has an address that may have been learnt.
    pub(crate) fn autoconf_conflict(&mut self, cx: &mut Context, nic: u8, address: IpAddr, out: &mut Out) {
        if let Some(host) = self.autoconf.host(nic) {
            if let Some(send) = host.conflict(cx.now, without_zone(address), cx.random) {
                self.send_for_host(cx, nic, send, out);
            }
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
