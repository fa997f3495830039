//! `eft capture`: a copy of every frame that crosses a device goes into a ring, and the capturing process reads the
//! ring and writes pcapng.
//!
//! The NIC never waits for the reader: when the ring is full, the copy is lost (and counted), not the frame.

use crate::{Doing, Error, Result, memory};
use eft_base::{Instant, PacketRef};
use eft_channel::queue::{Line, Position};
use eft_channel::{Consumer, Pool, PoolView, Producer, Segment};
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use eft_host::clock;
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_PAYLOAD_MAX};
use std::cell::RefCell;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::rc::Rc;

const FRAMES: usize = 512;
const SLOT_LEN: usize = 17 * 4096;
const LINES: usize = 4096;
const SLOTS: usize = LINES + FRAMES * size_of::<Line>();
/// Bytes of a capture ring.
pub const RING_LEN: usize = SLOTS + FRAMES * SLOT_LEN;

fn slot(position: u64) -> usize {
    SLOTS + (position as usize % FRAMES) * SLOT_LEN
}

/// The NIC's end of a ring.
pub struct CaptureWriter {
    segment: Segment,
    producer: Producer,
    position: u64,
    lost: u64,
}

impl CaptureWriter {
    pub fn new(fd: &OwnedFd) -> Result<CaptureWriter> {
        let segment = memory::map(fd, true)?;
        let (producer, _) = ends(&segment)?;
        Ok(CaptureWriter { segment, producer, position: 0, lost: 0 })
    }

    /// Adds a frame if there is room. `fill` copies it into the slot at the given offset and returns its length.
    fn add(&mut self, outgoing: bool, partial: bool, fill: impl FnOnce(&Segment, usize) -> Option<usize>) {
        if self.producer.room(1) == 0 {
            self.lost += 1;
            return;
        }
        let Some(len) = fill(&self.segment, slot(self.position)) else { return };
        let now = clock::now().0;
        let flags = outgoing as u64 | (partial as u64) << 1;
        if self.producer.push(&[len as u64, now, flags, self.lost, 0, 0, 0]).is_ok() {
            self.position += 1;
        }
    }
}

fn ends(segment: &Segment) -> Result<(Producer, Consumer)> {
    let bad = |_| Error::Protocol("bad capture ring".into());
    // SAFETY: lines and positions are atomics.
    let (lines, position) = unsafe {
        (
            segment.shared_slice::<Line>(LINES, FRAMES).map_err(bad)?,
            segment.shared::<Position>(0).map_err(bad)?,
        )
    };
    Ok(eft_channel::queue::queue(lines, position))
}

/// The place from which the NIC's loop takes a capture that an operator asked for.
pub type CaptureSlot = Rc<RefCell<Option<CaptureWriter>>>;

/// A device whose frames can be captured.
pub struct Captured<D> {
    device: D,
    capture: CaptureSlot,
}

impl<D> Captured<D> {
    pub fn new(device: D, capture: CaptureSlot) -> Self {
        Captured { device, capture }
    }
}

impl<D: Device> Device for Captured<D> {
    fn info(&mut self) -> DeviceInfo {
        self.device.info()
    }

    fn send(&mut self, frame: &Frame) -> std::result::Result<(), DeviceError> {
        self.device.send(frame)?;
        if let Some(capture) = self.capture.borrow_mut().as_mut() {
            let d = frame.descriptor;
            capture.add(true, d.flags & FRAME_CHECKSUM != 0, |segment, base| {
                let header_len = (d.header_len as usize).min(d.header.len());
                segment.write(base, &d.header[..header_len]).ok()?;
                let mut len = header_len;
                for r in &d.payload[..(d.payload_count as usize).min(FRAME_PAYLOAD_MAX)] {
                    if len + r.len as usize > SLOT_LEN {
                        return None;
                    }
                    frame.memory.copy(*r, segment, base + len)?;
                    len += r.len as usize;
                }
                Some(len)
            });
        }
        Ok(())
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> std::result::Result<ReceivedFrame, DeviceError> {
        let received = self.device.receive(pool, slot)?;
        if let Some(capture) = self.capture.borrow_mut().as_mut() {
            capture.add(false, false, |segment, base| {
                let len = received.len as usize;
                let from = pool.view().locate(PacketRef { len: received.len, ..slot })?;
                pool.view().segment.copy_to(from, segment, base, len).ok().map(|_| len)
            });
        }
        Ok(received)
    }

    fn recover(&mut self, pool: &PoolView, slot: PacketRef) -> Option<ReceivedFrame> {
        self.device.recover(pool, slot)
    }

    fn flush(&mut self) {
        self.device.flush();
    }
}

/// A captured frame.
pub struct CapturedFrame {
    pub bytes: Vec<u8>,
    /// Time of the capture (CLOCK_MONOTONIC).
    pub at: Instant,
    pub outgoing: bool,
    /// Frames lost before this one.
    pub lost: u64,
}

/// The operator's end of a ring.
pub struct CaptureReader {
    segment: Segment,
    consumer: Consumer,
    position: u64,
}

impl CaptureReader {
    pub fn new(fd: &OwnedFd) -> Result<CaptureReader> {
        let segment = memory::map(fd, true)?;
        let (_, consumer) = ends(&segment)?;
        Ok(CaptureReader { segment, consumer, position: 0 })
    }

    pub fn take(&mut self) -> Option<CapturedFrame> {
        let Some(message) = self.consumer.pop() else {
            self.consumer.publish();
            return None;
        };
        let mut bytes = vec![0; (message[0] as usize).min(SLOT_LEN)];
        let read = self.segment.read(slot(self.position), &mut bytes);
        self.position += 1;
        self.consumer.publish();
        read.ok().map(|_| CapturedFrame {
            bytes,
            at: Instant(message[1]),
            outgoing: message[2] & 1 != 0,
            lost: message[3],
        })
    }
}

/// Writes pcapng (draft-ietf-opsawg-pcapng): one section, one Ethernet interface.
pub struct PcapWriter<W: Write> {
    out: W,
    /// Nanoseconds between CLOCK_MONOTONIC and the time of day.
    offset: u64,
}

impl<W: Write> PcapWriter<W> {
    pub fn new(mut out: W, interface: &str) -> Result<Self> {
        let mut section = Vec::new();
        section.extend(0x1a2b_3c4du32.to_le_bytes());
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        block(&mut out, 0x0a0d_0d0a, &section)?;
        let mut description = Vec::new();
        description.extend(1u16.to_le_bytes());
        description.extend([0, 0]);
        description.extend(0u32.to_le_bytes());
        option(&mut description, 2, interface.as_bytes());
        option(&mut description, 9, &[9]);
        option(&mut description, 0, &[]);
        block(&mut out, 1, &description)?;
        let real = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let real = real.tv_sec as u64 * 1_000_000_000 + real.tv_nsec as u64;
        Ok(PcapWriter { out, offset: real.wrapping_sub(clock::now().0) })
    }

    pub fn write(&mut self, frame: &CapturedFrame) -> Result<()> {
        let at = frame.at.0.wrapping_add(self.offset);
        let len = frame.bytes.len() as u32;
        let mut body = Vec::with_capacity(frame.bytes.len() + 40);
        body.extend(0u32.to_le_bytes());
        body.extend(((at >> 32) as u32).to_le_bytes());
        body.extend((at as u32).to_le_bytes());
        body.extend(len.to_le_bytes());
        body.extend(len.to_le_bytes());
        body.extend(&frame.bytes);
        pad(&mut body);
        // epb_flags: 1 inbound, 2 outbound.
        option(&mut body, 2, &(if frame.outgoing { 2u32 } else { 1 }).to_le_bytes());
        option(&mut body, 0, &[]);
        block(&mut self.out, 6, &body)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.out.flush().doing("cannot write the capture")
    }
}

fn pad(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(4), 0);
}

fn option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend(value);
    pad(to);
}

fn block(out: &mut impl Write, kind: u32, body: &[u8]) -> Result<()> {
    let len = (body.len() + 12) as u32;
    let mut bytes = Vec::with_capacity(len as usize);
    bytes.extend(kind.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(body);
    bytes.extend(len.to_le_bytes());
    out.write_all(&bytes).doing("cannot write the capture")
}

#[cfg(test)]
mod tests;
