//! The engine: frames from ip to the device, frames from the device to ip.
//!
//! Invariants: no frame overtakes another of its connection, no slot is reused while ip may still read it, and every
//! descriptor of ip is checked before use.

mod arriving;
mod inherited;

use crate::coalesce::Coalescer;
use crate::counters::{COUNTERS, Counter};
use crate::cut;
use crate::output::ToIp;
use crate::received::Received;
use alloc::collections::VecDeque;
use arriving::received;
use core::convert::Infallible;
use core::time::Duration;
use eft_base::errno::{EINVAL, EMSGSIZE, ENOBUFS};
use eft_base::{Instant, PacketRef, RequestId};
use eft_channel::journal::Journal;
use eft_channel::rounds::Rounds;
use eft_channel::{Memory, Pool, Seen};
use eft_component::{Component, Context, Device, DeviceError, DeviceInfo, Frame, Outbox};
use eft_messages::nic::{
    FRAME_CHECKSUM, FRAME_HEADER_MAX, FRAME_PAYLOAD_MAX, FrameDescriptor, IpToNic, NicToIp,
};
use eft_messages::{ComponentId, Encoded, Role};

/// Frames that wait for a device that is busy. ip has fewer outstanding.
const PENDING_MAX: usize = 4096;
/// How soon a busy device, or a full queue toward ip, is tried again if nothing else wakes us.
const RETRY: Duration = Duration::from_micros(200);
/// How often the device is asked whether its link has changed.
const LINK_CHECK: Duration = Duration::from_millis(500);
const ETHERNET_LEN: usize = 14;
/// A VLAN tag may come on top of the MTU.
const LINK_SLACK: usize = 4;
/// Nothing longer fits an IPv4 header's length field.
const FRAME_LEN_MAX: usize = ETHERNET_LEN + 65535;

/// The driver process of one device.
pub struct Nic<D: Device> {
    device: D,
    pub(crate) pool: Pool,
    interface: u8,
    info: DeviceInfo,
    /// What a successor would find of `received`, and of what is on its way there.
    journal: Journal,
    received: Received,
    /// Frames of a predecessor.
    inherited: u64,
    coalescer: Coalescer,
    /// Descriptors that ip has sent.
    seen: Seen,
    /// Frames that the device had no room for, in order.
    pending: VecDeque<(RequestId, FrameDescriptor)>,
    connected: bool,
    retry_at: Option<Instant>,
    link_check_at: Instant,
    /// Frames have passed since ip was told of the link.
    active: bool,
    /// Run while ip has frames.
    rounds: Rounds,
}

impl<D: Device> Nic<D> {
    /// `pool` must have slots of at least a frame's largest length; `interface` is the number by
    /// which ip knows this device.
    pub fn new(mut device: D, pool: Pool, interface: u8) -> Nic<D> {
        let info = device.info();
        Nic {
            journal: Journal::new(pool.id(), pool.view()),
            received: Received::new(&pool),
            inherited: 0,
            coalescer: Coalescer::new(),
            seen: Seen::default(),
            device,
            pool,
            interface,
            info,
            pending: VecDeque::new(),
            connected: false,
            retry_at: None,
            link_check_at: Instant::ZERO,
            active: false,
            rounds: Rounds::default(),
        }
    }

    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    pub fn interface(&self) -> u8 {
        self.interface
    }

    /// Whether frames wait until the device can be written to again.
    pub fn wants_writable(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether frames would be taken from the device now. While this is false, a world should not
    /// wait for the device to become readable: its frames would not be taken.
    pub fn wants_readable(&self) -> bool {
        self.connected && self.retry_at.is_none() && self.pool.available() > 0
    }

    fn link(&self) -> ToIp {
        ToIp(NicToIp::Link {
            mac: self.info.mac,
            mtu: self.info.mtu,
            up: self.info.up,
            checksum: self.info.checksum,
            segment_max: self.info.segment_max,
        })
    }

    /// Tells ip of the link if it has changed; and again after frames, for a changed bit makes a message about a link of one about
    /// a frame, and ip would go on with an address that is not the device's.
    fn check_link(&mut self, cx: &mut Context, out: &mut Outbox<ToIp>) {
        self.link_check_at = cx.now + LINK_CHECK;
        let info = self.device.info();
        let changed = info != self.info;
        if changed {
            self.info = info;
            cx.count(Counter::LinkChanges);
        }
        if core::mem::take(&mut self.active) || changed {
            out.push(self.link());
        }
    }

    /// Copies and checks what ip described. The error is the errno of the answer.
    fn check(&self, memory: &Memory, at: PacketRef) -> Result<FrameDescriptor, (Counter, i32)> {
        let bad = (Counter::DropBadSend, EINVAL);
        let d: FrameDescriptor = memory.read_value(at).ok_or(bad)?;
        let header_len = d.header_len as usize;
        let count = d.payload_count as usize;
        if !(ETHERNET_LEN..=FRAME_HEADER_MAX).contains(&header_len) || count > FRAME_PAYLOAD_MAX {
            return Err(bad);
        }
        let mut len = header_len;
        for r in &d.payload[..count] {
            memory.resolve(*r).ok_or(bad)?;
            len = len.saturating_add(r.len as usize);
        }
        let checksum = d.flags & FRAME_CHECKSUM != 0;
        if checksum {
            let field = d.checksum_start as usize + d.checksum_offset as usize;
            if !self.info.checksum || field + 2 > header_len {
                return Err(bad);
            }
        }
        let too_long = (Counter::DropTooLong, EMSGSIZE);
        if d.segment_size > 0 {
            // A device segments only frames whose checksum it completes.
            if self.info.segment_max == 0 || !checksum {
                return Err(bad);
            }
            if len > FRAME_LEN_MAX || len - header_len > self.info.segment_max as usize {
                return Err(too_long);
            }
        } else if len > ETHERNET_LEN + LINK_SLACK + self.info.mtu as usize {
            return Err(too_long);
        }
        Ok(d)
    }

    fn receive_send(&mut self, cx: &mut Context, request: RequestId, at: PacketRef, out: &mut Outbox<ToIp>) {
        // The first of the two messages has its answer, or will get it; an answer that was lost is given again.
        if self.seen.is_repeated(cx.memory, at) {
            cx.count(Counter::DropRepeated);
            if !self.pending.iter().any(|(waiting, _)| *waiting == request) {
                out.push(ToIp(NicToIp::Sent { request, errno: 0 }));
            }
            return;
        }
        let mut descriptor = match self.check(cx.memory, at) {
            Ok(d) => d,
            Err((why, errno)) => {
                cx.count(why);
                out.push(ToIp(NicToIp::Sent { request, errno }));
                return;
            }
        };
        if self.pending.is_empty() {
            match self.transmit(cx, &mut descriptor) {
                Ok(errno) => out.push(ToIp(NicToIp::Sent { request, errno })),
                Err(Busy) => self.postpone(cx, request, descriptor, out),
            }
        } else {
            self.postpone(cx, request, descriptor, out);
        }
    }

    fn postpone(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        descriptor: FrameDescriptor,
        out: &mut Outbox<ToIp>,
    ) {
        if self.pending.len() >= PENDING_MAX {
            cx.count(Counter::DropPendingFull);
            let errno = ENOBUFS;
            out.push(ToIp(NicToIp::Sent { request, errno }));
            return;
        }
        self.pending.push_back((request, descriptor));
        self.retry_at.get_or_insert(cx.now + RETRY);
    }

    /// Hands a checked frame to the device, cut if the device does not cut it. Returns the errno of the answer, or [`Busy`]; then
    /// what is left is to be sent. A frame that is damaged is lost, as on its way.
    fn transmit(&mut self, cx: &mut Context, d: &mut FrameDescriptor) -> Result<i32, Busy> {
        if !d.is_as_sealed() {
            cx.count(Counter::DropDamaged);
            return Ok(0);
        }
        let datagrams = cut::has_datagrams(d);
        if !datagrams || self.info.datagrams {
            let errno = self.hand_over(cx, d)?;
            // A device may find out with the first frame that it does not cut datagrams.
            self.info.datagrams &= self.device.info().datagrams;
            if errno == 0 || !datagrams || self.info.datagrams {
                return Ok(errno);
            }
        }
        let mut worst = 0;
        // What is cut is another frame.
        d.seal = 0;
        loop {
            let before = *d;
            let Some(first) = cut::take_first(d) else { return Ok(worst) };
            match self.hand_over(cx, &first) {
                Ok(errno) => worst = worst.max(errno),
                Err(Busy) => {
                    *d = before;
                    return Err(Busy);
                }
            }
        }
    }

    /// Hands a frame to the device as it is.
    fn hand_over(&mut self, cx: &mut Context, d: &FrameDescriptor) -> Result<i32, Busy> {
        let frame = Frame { descriptor: d, memory: cx.memory };
        match self.device.send(&frame) {
            Ok(()) => {
                let refs = &d.payload[..d.payload_count as usize];
                let len = d.header_len as u64 + refs.iter().map(|r| r.len as u64).sum::<u64>();
                cx.count(Counter::FramesOut);
                cx.add(Counter::BytesOut, len);
                if d.segment_size > 0 {
                    cx.count(Counter::LargeOut);
                }
                Ok(0)
            }
            Err(DeviceError::WouldBlock) => {
                cx.count(Counter::WouldBlock);
                Err(Busy)
            }
            Err(DeviceError::Failed(errno)) => {
                cx.count(Counter::DropDevice);
                Ok(errno)
            }
            Err(DeviceError::Gone(errno)) => {
                cx.count(Counter::DropDevice);
                self.link_check_at = cx.now;
                Ok(errno)
            }
        }
    }

    /// Sends waiting frames, until the device is busy again.
    fn retry(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<ToIp>) -> usize {
        let mut done = 0;
        while done < budget
            && let Some((request, mut descriptor)) = self.pending.pop_front()
        {
            match self.transmit(cx, &mut descriptor) {
                Ok(errno) => out.push(ToIp(NicToIp::Sent { request, errno })),
                Err(Busy) => {
                    self.pending.push_front((request, descriptor));
                    break;
                }
            }
            done += 1;
        }
        if !self.pending.is_empty() {
            self.retry_at = Some(cx.now + RETRY);
        }
        cx.gauge(Counter::Pending, self.pending.len() as u64);
        done
    }
}

/// The device has no room now.
struct Busy;

impl<D: Device> Component for Nic<D> {
    type In = IpToNic;
    type Out = ToIp;
    type Event = Infallible;
    type Effect = Infallible;
    const COUNTERS: &'static [&'static str] = COUNTERS;

    fn decode(peer: ComponentId, line: &Encoded) -> Option<IpToNic> {
        match peer.role {
            Role::Ip => IpToNic::decode(line),
            _ => None,
        }
    }

    fn receive(&mut self, cx: &mut Context, _: ComponentId, message: IpToNic, out: &mut Outbox<ToIp>) {
        self.active = true;
        match message {
            IpToNic::Send { request, descriptor } => self.receive_send(cx, request, descriptor, out),
            IpToNic::Done { packet } => {
                if self.pool.owns(packet) {
                    self.journal.forget(packet.slot);
                    self.pool.free(packet);
                    self.received.remove(packet.slot);
                } else {
                    cx.count(Counter::BadDone);
                }
            }
        }
    }

    fn event(&mut self, _: &mut Context, event: Infallible, _: &mut Outbox<ToIp>) {
        match event {}
    }

    fn poll(&mut self, cx: &mut Context, budget: usize, out: &mut Outbox<ToIp>) -> usize {
        self.retry_at = None;
        let moved = self.retry(cx, budget, out) + self.take_frames(cx, budget, out);
        self.active |= moved > 0;
        moved
    }

    fn wants_device(&self) -> bool {
        self.wants_readable()
    }

    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<ToIp>) {
        // This turn's poll has already retried waiting frames.
        if self.link_check_at <= cx.now {
            self.check_link(cx, out);
        }
        self.repeat_received(cx, out);
    }

    fn check(&self) {
        let held = self.pool.slots() - self.pool.available();
        assert_eq!(held, self.received.len(), "slots that hold a frame, and frames that ip has");
        assert!(self.pending.len() <= PENDING_MAX, "{} frames wait for the device", self.pending.len());
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.connected {
            return None;
        }
        [self.retry_at, self.rounds.deadline(), Some(self.link_check_at)].into_iter().flatten().min()
    }

    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<ToIp>) {
        if peer != ComponentId::IP {
            return;
        }
        self.connected = true;
        // The transports resubmit to the new ip what the old one had not confirmed.
        self.pending.clear();
        self.seen.forget();
        self.retry_at = None;
        self.info = self.device.info();
        self.link_check_at = cx.now + LINK_CHECK;
        out.push(self.link());
        self.journal.pass_nothing();
        cx.add(Counter::Inherited, core::mem::take(&mut self.inherited));
        self.received.renew();
        cx.add(Counter::Redelivered, self.received.len() as u64);
        for (packet, frame) in self.received.iter() {
            out.push(received(*packet, *frame));
        }
    }

    fn flush(&mut self, cx: &mut Context, _: &mut Outbox<ToIp>) {
        self.rounds.arm(cx.now, !self.received.is_empty());
        cx.gauge(Counter::Held, self.received.len() as u64);
        self.device.flush();
    }
}
