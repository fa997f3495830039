//! A simulated network device: one end of a link.
//!
//! The end outlives its driver, like a device handle that the supervisor holds: frames that arrive while the driver
//! is dead wait for its successor.

use eft_base::PacketRef;
use eft_base::checksum::Checksum;
use eft_channel::Pool;
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use eft_messages::nic::FRAME_CHECKSUM;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A frame between two devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFrame {
    pub bytes: Vec<u8>,
    /// TCP or UDP payload per segment if the frame holds several, else 0.
    pub segment_size: u16,
    /// The checksum need not be verified: nothing on the path can have damaged the frame.
    pub checksum_ok: bool,
}

/// Memory of frames that were received, for frames that are sent: it is not cleared, so that a long one need not be.
#[derive(Clone, Default)]
pub struct Spare(Rc<RefCell<Vec<Vec<u8>>>>);

/// Shorter ones are not worth it, and so many are enough.
const LONG: usize = 4096;
const SPARE_MAX: usize = 128;

impl Spare {
    fn take(&self, len: usize) -> Vec<u8> {
        let mut bytes = if len < LONG { None } else { self.0.borrow_mut().pop() }.unwrap_or_default();
        bytes.resize(len, 0);
        bytes
    }

    fn give(&self, bytes: Vec<u8>) {
        let mut all = self.0.borrow_mut();
        if bytes.len() >= LONG && all.len() < SPARE_MAX {
            all.push(bytes);
        }
    }
}

/// What a device and the wire share.
pub struct End {
    pub info: DeviceInfo,
    pub outgoing: VecDeque<WireFrame>,
    pub incoming: VecDeque<WireFrame>,
    /// Frames that the device holds before it blocks.
    pub depth: usize,
    /// The same of both ends.
    pub spare: Spare,
}

/// The driver's handle on an [`End`].
#[derive(Clone)]
pub struct SimDevice(pub Rc<RefCell<End>>);

impl Device for SimDevice {
    fn info(&mut self) -> DeviceInfo {
        self.0.borrow().info
    }

    fn send(&mut self, frame: &Frame) -> Result<(), DeviceError> {
        let mut end = self.0.borrow_mut();
        if end.outgoing.len() >= end.depth {
            return Err(DeviceError::WouldBlock);
        }
        let d = frame.descriptor;
        let (header, payload) = (&d.header[..d.header_len as usize], &d.payload[..d.payload_count as usize]);
        let len = header.len() + payload.iter().map(|r| r.len as usize).sum::<usize>();
        let mut bytes = end.spare.take(len);
        bytes[..header.len()].copy_from_slice(header);
        let mut rest = &mut bytes[header.len()..];
        for r in payload {
            let (part, behind) = rest.split_at_mut(r.len as usize);
            frame.memory.read(*r, part).ok_or(DeviceError::Failed(14))?;
            rest = behind;
        }
        if d.flags & FRAME_CHECKSUM != 0 && d.segment_size == 0 {
            let start = d.checksum_start as usize;
            let field = start + d.checksum_offset as usize;
            let sum = Checksum::new().add_bytes(&bytes[start..]).finish();
            bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        }
        end.outgoing.push_back(WireFrame {
            bytes,
            segment_size: d.segment_size,
            checksum_ok: d.segment_size > 0,
        });
        Ok(())
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> Result<ReceivedFrame, DeviceError> {
        let mut end = self.0.borrow_mut();
        let frame = end.incoming.pop_front().ok_or(DeviceError::WouldBlock)?;
        if !pool.write(slot, 0, &frame.bytes) {
            return Err(DeviceError::Failed(90));
        }
        let received = ReceivedFrame {
            len: frame.bytes.len() as u32,
            checksum_ok: frame.checksum_ok,
            segment_size: frame.segment_size,
        };
        end.spare.give(frame.bytes);
        Ok(received)
    }
}
