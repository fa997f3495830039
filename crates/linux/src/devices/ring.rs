//! The receive ring of a packet socket: the kernel puts frames into memory that the NIC's process maps (packet(7), PACKET_RX_RING,
//! TPACKET_V2), so that a frame costs it no system call, and neither does a look whether there is one.
//!
//! A frame that is longer than a slot waits in the socket's queue, and its slot says so. Slots are used in turn. The ring belongs to
//! the socket, so what is in it outlives the process: a successor goes on behind the slot that was released last, which its
//! predecessor numbered.

use super::note::Place;
use super::virtio::{VNET_HEADER_LEN, VnetHeader};
use crate::protocol::RingShape;
use crate::{Doing, Result, memory};
use eft_channel::Segment;
use eft_channel::segment::OutOfBounds;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const SOL_PACKET: i32 = 263;
const PACKET_RX_RING: i32 = 5;
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_VERSION: i32 = 10;
const TPACKET_V2: i32 = 1;

/// A slot's status: it is the kernel's unless it has `USER`.
const USER: u32 = 1;
/// The frame did not fit, and waits in the socket's queue.
const COPY: u32 = 1 << 1;

/// Bytes of a ring. With frames of 1,500 bytes at most it has 8,192 slots: what arrives within 4 ms at two million frames a second.
const RING_LEN: u32 = 16 << 20;
/// Bytes that the kernel allocates at once.
const BLOCK_LEN: u32 = 64 << 10;
/// Bytes of a slot before a frame, at most: `struct tpacket2_hdr`, an address of the link, the virtio header, and both paddings.
const BEFORE: u32 = 128;

/// After so many looks at an empty slot one looks whether another one waits.
const LOOKS: u32 = 4096;

/// What a slot begins with: `struct tpacket2_hdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    sec: u32,
    nsec: u32,
    vlan: [u16; 2],
    /// The kernel's padding, which it clears when it fills a slot. A released slot has its number here; the first is 1.
    number: u32,
}

const NUMBER: usize = offset_of!(Header, number);

impl RingShape {
    /// For an interface whose packets have at most so many bytes.
    fn for_mtu(mtu: u16) -> RingShape {
        let slot_len = (u32::from(mtu) + BEFORE).next_power_of_two().max(2048);
        RingShape { slots: RING_LEN / slot_len, slot_len }
    }

    fn len(self) -> usize {
        self.slots as usize * self.slot_len as usize
    }
}

/// `struct tpacket_req`.
#[repr(C)]
struct Request {
    block_size: u32,
    block_nr: u32,
    frame_size: u32,
    frame_nr: u32,
}

/// Gives a packet socket a ring. It must not have received anything.
pub fn attach(fd: &OwnedFd, mtu: u16) -> Result<RingShape> {
    let shape = RingShape::for_mtu(mtu);
    let block = BLOCK_LEN.max(shape.slot_len);
    let request = Request {
        block_size: block,
        block_nr: shape.len() as u32 / block,
        frame_size: shape.slot_len,
        frame_nr: shape.slots,
    };
    set(fd, PACKET_VERSION, &TPACKET_V2).doing("PACKET_VERSION")?;
    set(fd, PACKET_COPY_THRESH, &1i32).doing("PACKET_COPY_THRESH")?;
    set(fd, PACKET_RX_RING, &request).doing("PACKET_RX_RING")?;
    Ok(shape)
}

/// Sets an option of a packet socket.
pub(super) fn set<T>(fd: &OwnedFd, option: i32, value: &T) -> std::io::Result<()> {
    // SAFETY: the value is a live `T`, and has its length.
    let done = unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(fd.as_raw_fd(), SOL_PACKET, option, value, size_of::<T>() as u32)
    };
    if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// What was in the ring. A slot in which there was anything is to be [released](ReceiveRing::release) when that was taken and
/// noted: if the process dies before, its successor finds it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Nothing,
    Frame(VnetHeader, u32, Place),
    /// The frame is the next in the socket's queue.
    InQueue,
    /// It was cut, or does not fit where it was to go.
    Lost,
}

/// A mapped ring.
pub struct ReceiveRing {
    memory: Segment,
    shape: RingShape,
    /// The slot that is filled next, and the number that it gets.
    next: u32,
    number: u32,
    /// How often that slot was found empty since something was found elsewhere.
    empty: u32,
}

impl ReceiveRing {
    pub fn map(fd: &impl AsFd, shape: RingShape) -> Result<ReceiveRing> {
        Ok(ReceiveRing::over(memory::map_len(fd, shape.len(), true)?, shape))
    }

    fn over(memory: Segment, shape: RingShape) -> ReceiveRing {
        let mut ring = ReceiveRing { memory, shape, next: 0, number: 1, empty: 0 };
        let released = (0..shape.slots).filter_map(|slot| Some((slot, ring.released(slot)?)));
        // They lie within one round of each other, so one of two is the later one also where numbers begin anew.
        let last = released.reduce(|a, b| if (b.1.wrapping_sub(a.1) as i32) > 0 { b } else { a });
        match last {
            Some((slot, number)) => {
                ring.next = (slot + 1) % shape.slots;
                ring.number = following(number);
            }
            // Nothing was ever taken, or everything that was is overwritten.
            None => ring.next = ring.oldest_waiting().filter(|_| ring.is_full()).unwrap_or(0),
        }
        ring
    }

    /// Takes the next frame into `to`.
    #[inline]
    pub fn take(&mut self, to: &Segment, at: usize, room: u32) -> Taken {
        // A ring of this shape is mapped, so every slot has its header.
        self.try_take(to, at, room).unwrap_or(Taken::Nothing)
    }

    fn try_take(&mut self, to: &Segment, at: usize, room: u32) -> std::result::Result<Taken, OutOfBounds> {
        let slot = self.at(self.next);
        let status = self.memory.atomic_u32(slot)?.load(Ordering::Acquire);
        if status & USER == 0 {
            self.look_elsewhere();
            return Ok(Taken::Nothing);
        }
        self.empty = 0;
        if status & COPY != 0 {
            return Ok(Taken::InQueue);
        }
        let mut header = Header::new_zeroed();
        self.memory.read(slot, header.as_mut_bytes())?;
        Ok(self.copy(&header, slot, to, at, room).unwrap_or(Taken::Lost))
    }

    /// The frame of a slot. What its header says was written by the kernel, or by a predecessor that went mad.
    fn copy(&self, header: &Header, slot: usize, to: &Segment, at: usize, room: u32) -> Option<Taken> {
        let mac = usize::from(header.mac);
        let len = header.snaplen;
        let end = mac.checked_add(len as usize)?;
        if len != header.len || len > room || end > self.shape.slot_len as usize {
            return None;
        }
        let mut vnet = VnetHeader::default();
        self.memory.read(slot + mac.checked_sub(VNET_HEADER_LEN)?, vnet.as_mut_bytes()).ok()?;
        self.memory.copy_to(slot + mac, to, at, len as usize).ok()?;
        Some(Taken::Frame(vnet, len, [self.next, header.sec, header.nsec]))
    }

    /// Gives the slot that was looked at last to the kernel.
    pub fn release(&mut self) {
        let slot = self.at(self.next);
        if let (Ok(number), Ok(status)) =
            (self.memory.atomic_u32(slot + NUMBER), self.memory.atomic_u32(slot))
        {
            number.store(self.number, Ordering::Relaxed);
            status.store(0, Ordering::Release);
        }
        self.next = (self.next + 1) % self.shape.slots;
        self.number = following(self.number);
    }

    /// Whether a frame that was taken from this place lies there still.
    pub fn has(&self, [slot, sec, nsec]: Place) -> bool {
        slot < self.shape.slots && self.waits(slot) && self.filled(slot) == (sec, nsec)
    }

    /// A predecessor that went mad may have damaged what it wrote: where frames wait, but not where the next one should, they are taken
    /// from there.
    #[inline]
    fn look_elsewhere(&mut self) {
        self.empty += 1;
        if self.empty == LOOKS {
            self.empty = 0;
            self.next = self.oldest_waiting().unwrap_or(self.next);
        }
    }

    /// The slot that waits behind one that does not; of several, or if all wait, the one that was filled first.
    #[cold]
    fn oldest_waiting(&self) -> Option<u32> {
        let slots = self.shape.slots;
        let is_full = self.is_full();
        let firsts = (0..slots)
            .filter(|slot| self.waits(*slot) && (is_full || !self.waits((slot + slots - 1) % slots)));
        firsts.min_by_key(|slot| self.filled(*slot))
    }

    fn is_full(&self) -> bool {
        (0..self.shape.slots).all(|slot| self.waits(slot))
    }

    fn waits(&self, slot: u32) -> bool {
        self.memory.atomic_u32(self.at(slot)).is_ok_and(|status| status.load(Ordering::Acquire) & USER != 0)
    }

    /// When the kernel filled it.
    fn filled(&self, slot: u32) -> (u32, u32) {
        let header = self.header(slot);
        (header.sec, header.nsec)
    }

    /// The number of a slot that is the kernel's.
    fn released(&self, slot: u32) -> Option<u32> {
        let header = self.header(slot);
        (header.status & USER == 0 && header.number != 0).then_some(header.number)
    }

    fn header(&self, slot: u32) -> Header {
        let mut header = Header::new_zeroed();
        // Every slot lies within the ring.
        let _ = self.memory.read(self.at(slot), header.as_mut_bytes());
        header
    }

    fn at(&self, slot: u32) -> usize {
        slot as usize * self.shape.slot_len as usize
    }
}

/// 0 is no number.
fn following(number: u32) -> u32 {
    number.wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests;
