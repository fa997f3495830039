//! The devices, and what begins when one comes up.

use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::link::Link;
use crate::note;
use eft_component::Context;

impl Ip {
    pub(crate) fn link(&self, interface: u8) -> Option<&Link> {
        self.links.get(interface as usize)?.as_ref()
    }

    pub(crate) fn receive_link(&mut self, cx: &mut Context, interface: u8, link: Link, out: &mut Out) {
        // No device has a group's address (IEEE 802, section 8.2): the message is damaged, and the NIC says it again.
        if link.mac.is_multicast() {
            return cx.count(Counter::DropMalformed);
        }
        // The device counts as what it was before, or as not there.
        if !self.enter(cx, note::link(interface, &link)) {
            return;
        }
        let i = interface as usize;
        if self.links.len() <= i {
            self.links.resize(i + 1, None);
        }
        let was_up = self.links[i].is_some_and(|l| l.up && l.mac == link.mac);
        self.links[i] = Some(link);
        self.routes.add_link_local(interface, link.mac);
        if link.up && !was_up {
            let all = self.routes.addresses_of(interface).collect();
            self.announce(cx, interface, all, out);
            self.join_own_groups(cx.now, interface);
            self.groups.link_up(cx.now, interface);
            self.start_autoconf(cx, interface);
        }
        self.open_gate(cx, out);
    }
}
