//! A datagram that was cut into fragments is answered when all of them are.

use crate::engine::{Ip, Out};
use core::net::IpAddr;
use eft_base::RequestId;
use eft_base::errno::EMSGSIZE;
use eft_component::Context;
use eft_messages::nic::FrameDescriptor;

impl Ip {
    /// Cuts a transmission that is longer than the link's MTU. Its checksum is complete.
    pub(crate) fn fragment(
        &mut self,
        cx: &mut Context,
        id: RequestId,
        whole: &FrameDescriptor,
        mtu: u16,
        out: &mut Out,
    ) {
        match self.transmissions.get(id).map(|t| t.question.source) {
            Some(IpAddr::V4(_)) => self.fragment_ipv4(cx, id, whole, mtu, out),
            _ => self.finish(id, EMSGSIZE, out),
        }
    }

    /// One fragment less; after the last the datagram is answered.
    pub(crate) fn settle_fragment(&mut self, datagram: RequestId, errno: i32, out: &mut Out) {
        let Some(d) = self.datagrams.get_mut(datagram) else {
            return;
        };
        d.remaining -= 1;
        if d.errno == 0 {
            d.errno = errno;
        }
        if d.remaining == 0
            && let Some(d) = self.datagrams.remove(datagram)
        {
            self.settle(d.origin, d.packet, d.errno, out);
        }
    }
}
