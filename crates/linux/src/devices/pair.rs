//! `pair`: shared memory to another stack on the same machine.
//!
//! Each side owns one half: a queue whose lines describe frames, and one frame slot for each line. A frame is copied
//! into the slot of its line, so a slot is free again once the other side has published that it took the line; no other
//! bookkeeping is needed. The other side maps the half read-only. Each side has an eventfd that wakes it.

use super::note::{self, Noted, Place};
use super::virtio::VnetHeader;
use crate::protocol::DeviceSetup;
use crate::{Doing, Error, Result, memory, scm};
use eft_base::PacketRef;
use eft_channel::queue::{Line, Message, Position};
use eft_channel::{Consumer, Pool, PoolView, Producer, Segment};
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_PAYLOAD_MAX};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Frames in flight in one direction.
const FRAMES: usize = 128;
const SLOT_LEN: usize = eft_messages::nic::PACKET_SLOT_LEN;
const LINES: usize = 4096;
const SLOTS: usize = LINES + FRAMES * size_of::<Line>();
/// Bytes of one half.
pub const HALF_LEN: usize = SLOTS + FRAMES * SLOT_LEN;
/// Bytes of the page in which a side publishes how far it has read.
pub const TAKEN_LEN: usize = 4096;

/// Descriptors of one side, as the supervisor keeps them: its eventfd, its half and its taken page, then the peer's
/// half and taken page (both read-only) and the peer's eventfd.
pub const DESCRIPTORS: usize = 6;

/// Meets the other stack at `path` and exchanges halves with it. Waits until it is there.
pub fn open(path: &str) -> Result<Vec<OwnedFd>> {
    let half = memory::create("eft-pair-half", HALF_LEN)?;
    let taken = memory::create("eft-pair-taken", TAKEN_LEN)?;
    let event = rustix::event::eventfd(
        0,
        rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
    )
    .doing("eventfd")?;
    let stream = meet(path)?;
    let (half_ro, taken_ro) = (memory::read_only(&half)?, memory::read_only(&taken)?);
    scm::send(&stream, b"eft-pair-1", &[half_ro.as_fd(), taken_ro.as_fd(), event.as_fd()], false)
        .doing("pair: the other stack is gone")?;
    let mut hello = [0u8; 16];
    let (n, fds) = scm::receive(&stream, &mut hello, false).doing("pair: the other stack is gone")?;
    if &hello[..n] != b"eft-pair-1" || fds.len() != 3 {
        return Err(Error::Protocol(format!(
            "pair:{path}: the other side does not speak this version of eft's pair"
        )));
    }
    let mut peer = fds.into_iter();
    let mut next = || peer.next().ok_or_else(|| Error::Protocol("pair: descriptor missing".into()));
    let (peer_half, peer_taken, peer_event) = (next()?, next()?, next()?);
    Ok(vec![event, half, taken, peer_half, peer_taken, peer_event])
}

/// How often to try a path where no stack answers before the path counts as left by a dead one.
const KNOCKS: usize = 50;

/// The first stack binds the path and waits for the second, which connects.
fn meet(path: &str) -> Result<OwnedFd> {
    let address = SocketAddrUnix::new(path).doing(format_args!("pair:{path}"))?;
    let socket = || {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .doing("pair: socket")
    };
    for knock in 0..=KNOCKS {
        let server = socket()?;
        match rustix::net::bind(&server, &address) {
            Ok(()) => {
                rustix::net::listen(&server, 1).doing(format_args!("pair:{path}"))?;
                let accepted = rustix::net::accept_with(&server, SocketFlags::CLOEXEC);
                let _ = std::fs::remove_file(path);
                return accepted.doing(format_args!("pair:{path}: waiting for the other stack"));
            }
            Err(rustix::io::Errno::ADDRINUSE) => {}
            Err(e) => return Err(e).doing(format_args!("pair:{path}")),
        }
        let client = socket()?;
        if rustix::net::connect(&client, &address).is_ok() {
            return Ok(client);
        }
        // The other stack is about to listen, or it died while it waited.
        if knock + 1 == KNOCKS {
            let _ = std::fs::remove_file(path);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Err(Error::Busy(format!("pair:{path}: the path is taken by something that does not answer; remove it")))
}

/// One side of a pair.
pub struct PairDevice {
    info: DeviceInfo,
    event: OwnedFd,
    peer_event: OwnedFd,
    own: Segment,
    peer: Segment,
    producer: Producer,
    consumer: Consumer,
    sent: u64,
    taken: u64,
    unrung: bool,
}

impl PairDevice {
    pub fn new(event: OwnedFd, rest: Vec<OwnedFd>, setup: &DeviceSetup) -> Result<PairDevice> {
        let mut fds = rest.into_iter();
        let mut next = || fds.next().ok_or_else(|| Error::Protocol("pair: descriptor missing".into()));
        let own = memory::map(&next()?, true)?;
        let own_taken = memory::map(&next()?, true)?;
        let (peer_fd, taken_fd) = (next()?, next()?);
        let peer = memory::map(&peer_fd, false)?;
        let peer_taken = memory::map(&taken_fd, false)?;
        let peer_event = next()?;
        if peer.len() != HALF_LEN || peer_taken.len() != TAKEN_LEN {
            return Err(Error::Protocol("pair: the other side's memory has another size".into()));
        }
        if !is_sealed(&peer_fd) || !is_sealed(&taken_fd) {
            return Err(Error::Protocol("pair: the other side's memory could shrink under us".into()));
        }
        let bad = |_| Error::Protocol("pair: bad segment".into());
        // SAFETY: lines and positions are atomics.
        let (lines, peer_lines, theirs, ours) = unsafe {
            (
                own.shared_slice::<Line>(LINES, FRAMES).map_err(bad)?,
                peer.shared_slice::<Line>(LINES, FRAMES).map_err(bad)?,
                peer_taken.shared::<Position>(0).map_err(bad)?,
                own_taken.shared::<Position>(0).map_err(bad)?,
            )
        };
        let producer = Producer::resume(lines, theirs);
        let consumer = Consumer::resume(peer_lines, ours);
        let info = DeviceInfo {
            mac: setup.mac,
            mtu: setup.mtu,
            up: true,
            checksum: true,
            segment_max: 65535 - 120,
            // The other stack may be of an eft that takes no frames of several datagrams.
            datagrams: false,
            // The other stack sends no small segments where it can send large ones.
            coalesce: false,
        };
        let (sent, taken) = (producer.position(), consumer.position());
        Ok(PairDevice { info, event, peer_event, own, peer, producer, consumer, sent, taken, unrung: false })
    }
}

/// Whether memory that another stack made cannot shrink. If it could, a read could kill this process.
fn is_sealed(fd: &OwnedFd) -> bool {
    rustix::fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(rustix::fs::SealFlags::SHRINK))
}

impl AsFd for PairDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl PairDevice {
    /// The next line of the other side. If there is none, the event is cleared and the queue is checked once more: a
    /// line that comes later rings again.
    fn next_message(&mut self) -> Option<Message> {
        let message = self.consumer.pop();
        if message.is_none() {
            self.consumer.publish();
            let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
            return self.consumer.pop();
        }
        message
    }
}

fn slot_offset(position: u64) -> usize {
    SLOTS + (position as usize % FRAMES) * SLOT_LEN
}

impl Device for PairDevice {
    fn info(&mut self) -> DeviceInfo {
        self.info
    }

    fn send(&mut self, frame: &Frame) -> std::result::Result<(), DeviceError> {
        if self.producer.room(1) == 0 {
            return Err(DeviceError::WouldBlock);
        }
        let d = frame.descriptor;
        let base = slot_offset(self.sent);
        let header_len = (d.header_len as usize).min(d.header.len());
        let fault = |_| DeviceError::Failed(libc::EMSGSIZE);
        self.own.write(base, &d.header[..header_len]).map_err(fault)?;
        let mut len = header_len;
        for r in &d.payload[..(d.payload_count as usize).min(FRAME_PAYLOAD_MAX)] {
            if len + r.len as usize > SLOT_LEN {
                return Err(DeviceError::Failed(libc::EMSGSIZE));
            }
            frame.memory.copy(*r, &self.own, base + len).ok_or(DeviceError::Failed(libc::EFAULT))?;
            len += r.len as usize;
        }
        // Memory between two stacks is as reliable as memory within one, so a checksum that is left to the device is
        // not computed: the receiver is told that it is right.
        let vouched = (d.flags & FRAME_CHECKSUM != 0) as u64;
        let message = [len as u64, d.segment_size as u64, vouched, 0, 0, 0, 0];
        self.producer.push(&message).map_err(|_| DeviceError::WouldBlock)?;
        self.sent += 1;
        self.unrung = true;
        Ok(())
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> std::result::Result<ReceivedFrame, DeviceError> {
        let received = self.take(pool, slot);
        // Not before it is noted, and not later: a successor gets what is not published again.
        self.consumer.publish();
        received
    }

    fn recover(&mut self, pool: &PoolView, slot: PacketRef) -> Option<ReceivedFrame> {
        match note::find(pool, slot)? {
            Noted::Taken(header, len, place) if number(place) < self.consumer.position() => {
                Some(received(header, len))
            }
            _ => None,
        }
    }

    fn flush(&mut self) {
        self.consumer.publish();
        if std::mem::take(&mut self.unrung) {
            let _ = rustix::io::write(&self.peer_event, &1u64.to_ne_bytes());
        }
    }
}

/// The place of a line.
fn place(number: u64) -> Place {
    [number as u32, (number >> 32) as u32, 0]
}

fn number([low, high, _]: Place) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// What the other stack says of a frame, as the header of one.
fn header(message: &Message) -> VnetHeader {
    VnetHeader { flags: u8::from(message[2] == 1), gso_size: message[1] as u16, ..VnetHeader::default() }
}

fn received(header: VnetHeader, len: u32) -> ReceivedFrame {
    ReceivedFrame { len, checksum_ok: header.flags == 1, segment_size: header.gso_size }
}

impl PairDevice {
    fn take(&mut self, pool: &Pool, slot: PacketRef) -> std::result::Result<ReceivedFrame, DeviceError> {
        let Some(message) = self.next_message() else {
            return Err(DeviceError::WouldBlock);
        };
        let nth = self.taken;
        let base = slot_offset(nth);
        self.taken += 1;
        let len = message[0] as usize;
        let view = pool.view();
        let to = view.locate(slot).ok_or(DeviceError::Failed(libc::EFAULT))?;
        if len > SLOT_LEN || len > slot.len as usize {
            return Err(DeviceError::Failed(libc::EMSGSIZE));
        }
        self.peer.copy_to(base, &view.segment, to, len).map_err(|_| DeviceError::Failed(libc::EFAULT))?;
        let header = header(&message);
        note::take(view, header, len as u32, place(nth));
        Ok(received(header, len as u32))
    }
}

#[cfg(test)]
mod tests;
