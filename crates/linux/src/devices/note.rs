//! What a device notes of the frame that it receives, in the journal of the NIC's pool: if the NIC dies before it has written there
//! what the frame is, its successor's device finds it by the note, unless it gets the frame anew.

use super::virtio::{VNET_HEADER_LEN, VnetHeader};
use eft_base::PacketRef;
use eft_base::wire::{ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader, Ipv4Header, Ipv6Header};
use eft_channel::PoolView;
use eft_channel::journal::{self, NOTE_LEN, WIPED};
use std::mem::offset_of;
use std::sync::atomic::{Ordering, compiler_fence};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Its header may have come, and nothing else: the kernel writes it where it lies here, and then the frame, in one call.
const READ: u32 = u32::from_ne_bytes([WIPED; 4]);
/// It is being written.
const BEGUN: u32 = 1;
/// The frame was copied from `place`, which is not given back before.
const TAKEN: u32 = 2;

const ETHERNET_LEN: usize = size_of::<EthernetHeader>();
/// An ARP message about IPv4 addresses.
const ARP_LEN: usize = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Note {
    vnet: VnetHeader,
    _padding: [u8; 2],
    len: u32,
    place: Place,
    state: u32,
}

/// Names a place from which a frame was taken, and its use.
pub type Place = [u32; 3];

const _: () = assert!(size_of::<Note>() == NOTE_LEN);

/// What a predecessor was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A call of the kernel has brought a frame.
    Read(VnetHeader, u32),
    /// A frame was copied from this place.
    Taken(VnetHeader, u32, Place),
}

/// Where a call of the kernel is to put the header of a frame.
pub fn header(view: &PoolView) -> Option<*mut u8> {
    view.segment.range_mut(journal::note(view)? + offset_of!(Note, vnet), VNET_HEADER_LEN).ok()
}

/// Notes a frame that was copied, before its place is given back.
#[inline]
pub fn take(view: &PoolView, vnet: VnetHeader, len: u32, place: Place) {
    let Some(at) = journal::note(view) else { return };
    let Ok(state) = view.segment.atomic_u32(at + offset_of!(Note, state)) else { return };
    let note = Note { vnet, _padding: [0; 2], len, place, state: BEGUN };
    // Else a half of it could be taken for what the kernel writes.
    state.store(BEGUN, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let _ = view.segment.write(at, note.as_bytes());
    state.store(TAKEN, Ordering::Release);
}

/// What a dead NIC's device noted of the frame that it received into a slot.
pub fn find(view: &PoolView, slot: PacketRef) -> Option<Noted> {
    let mut note = Note::new_zeroed();
    view.segment.read(journal::note(view)?, note.as_mut_bytes()).ok()?;
    match note.state {
        READ if note.vnet.flags != WIPED => Some(Noted::Read(note.vnet, frame_len(view, slot)?)),
        TAKEN => Some(Noted::Taken(note.vnet, note.len, note.place)),
        _ => None,
    }
}

/// How long a frame is, of which only the bytes are known. `None`: it is nothing for ip.
fn frame_len(view: &PoolView, slot: PacketRef) -> Option<u32> {
    let mut bytes = [0; ETHERNET_LEN + size_of::<Ipv6Header>()];
    view.segment.read(view.locate(slot)?, &mut bytes).ok()?;
    let (ethernet, rest) = EthernetHeader::ref_from_prefix(&bytes).ok()?;
    let len = match ethernet.ethertype.get() {
        ETHERTYPE_IPV4 => usize::from(Ipv4Header::ref_from_prefix(rest).ok()?.0.total_len.get()),
        ETHERTYPE_IPV6 => {
            size_of::<Ipv6Header>() + usize::from(Ipv6Header::ref_from_prefix(rest).ok()?.0.payload_len.get())
        }
        ETHERTYPE_ARP => ARP_LEN,
        _ => return None,
    };
    Some((ETHERNET_LEN + len) as u32)
}

#[cfg(test)]
mod tests;
