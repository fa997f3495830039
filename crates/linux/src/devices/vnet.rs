//! Devices with virtio-net headers: TAP and AF_PACKET. One system call moves one frame of up to 64 KB; the kernel
//! segments frames and completes checksums.

use super::note::{self, Noted};
use super::ring::{ReceiveRing, Taken};
use super::virtio::{VNET_HEADER_LEN, VnetHeader};
use crate::Result;
use crate::protocol::{DeviceKind, DeviceSetup};
use eft_base::PacketRef;
use eft_base::wire::{ETHERTYPE_IPV6, EthernetHeader};
use eft_channel::{Pool, PoolView};
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use eft_messages::nic::{FRAME_CHECKSUM, FRAME_PAYLOAD_MAX, FrameDescriptor};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use zerocopy::FromBytes;

const F_NEEDS_CSUM: u8 = 1;
const F_DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
/// Where UDP's header has its checksum.
const UDP_CHECKSUM: u16 = 6;

type Outcome<T> = std::result::Result<T, DeviceError>;

/// Largest TCP or UDP payload that goes with one frame: 64 KB less all headers.
pub const SEGMENT_MAX: u32 = 65535 - 60 - 60;

/// One look of so many at an empty ring asks the socket.
const LOOKS: u32 = 64;

/// A TAP or packet-socket descriptor.
pub struct VnetDevice {
    fd: OwnedFd,
    info: DeviceInfo,
    ring: Option<ReceiveRing>,
    /// How often it was found empty since the socket was asked.
    looks: u32,
}

impl VnetDevice {
    pub fn new(fd: OwnedFd, setup: &DeviceSetup) -> Result<VnetDevice> {
        // Without offloads nor is anything coalesced: the NIC would verify what it joins, and tcp would not do so again.
        let offloads = !matches!(setup.kind, DeviceKind::PlainTap);
        let info = DeviceInfo {
            mac: setup.mac,
            mtu: setup.mtu,
            up: true,
            checksum: offloads,
            segment_max: if offloads { SEGMENT_MAX } else { 0 },
            datagrams: offloads,
            coalesce: offloads,
        };
        let ring = setup.ring.map(|shape| ReceiveRing::map(&fd, shape)).transpose()?;
        Ok(VnetDevice { fd, info, ring, looks: 0 })
    }

    /// The ring is empty. Now and then the socket is asked, too, which is ready until somebody has heard that the interface went
    /// down, or took a frame whose slot a predecessor has damaged.
    fn look_at_socket(&mut self, pool: &Pool, slot: PacketRef) -> Outcome<ReceivedFrame> {
        self.looks = (self.looks + 1) % LOOKS;
        if self.looks == 0 { self.read(pool, slot) } else { Err(DeviceError::WouldBlock) }
    }

    /// Reads one frame of what waits for a system call.
    fn read(&mut self, pool: &Pool, slot: PacketRef) -> Outcome<ReceivedFrame> {
        let view = pool.view();
        let offset = view.locate(slot).ok_or(DeviceError::Failed(libc::EFAULT))?;
        let memory = view
            .segment
            .range_mut(offset, slot.len as usize)
            .map_err(|_| DeviceError::Failed(libc::EFAULT))?;
        let mut vnet = VnetHeader::default();
        let noted = note::header(view);
        let header = noted.unwrap_or((&raw mut vnet).cast());
        let parts = [iovec(header, VNET_HEADER_LEN), iovec(memory, slot.len as usize)];
        // SAFETY: the slot is ours (just allocated), the header is on our stack or in our pool.
        let n = unsafe { libc::readv(self.fd.as_raw_fd(), parts.as_ptr(), 2) };
        if n < 0 {
            return match last_error() {
                // The interface is down; frames arrive again when it is up.
                DeviceError::Failed(libc::EIO | libc::ENETDOWN) => Err(DeviceError::WouldBlock),
                e => Err(e),
            };
        }
        if let Some(noted) = noted {
            // SAFETY: so many bytes of our pool.
            vnet = unsafe { noted.cast::<VnetHeader>().read_unaligned() };
        }
        Ok(received(vnet, (n as usize).saturating_sub(VNET_HEADER_LEN) as u32))
    }
}

impl AsFd for VnetDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn iovec(base: *const u8, len: usize) -> libc::iovec {
    libc::iovec { iov_base: base.cast_mut().cast(), iov_len: len }
}

/// The segmentation type of a frame.
fn gso_type(d: &FrameDescriptor) -> u8 {
    match EthernetHeader::ref_from_prefix(&d.header) {
        _ if d.checksum_offset == UDP_CHECKSUM => GSO_UDP_L4,
        Ok((h, _)) if h.ethertype.get() == ETHERTYPE_IPV6 => GSO_TCPV6,
        _ => GSO_TCPV4,
    }
}

fn last_error() -> DeviceError {
    match std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
        libc::EAGAIN | libc::EINTR => DeviceError::WouldBlock,
        // The interface's queue is full at the moment.
        libc::ENOBUFS => DeviceError::WouldBlock,
        errno @ (libc::ENXIO | libc::ENODEV | libc::EBADFD) => DeviceError::Gone(errno),
        errno => DeviceError::Failed(errno),
    }
}

impl Device for VnetDevice {
    fn info(&mut self) -> DeviceInfo {
        self.info
    }

    fn send(&mut self, frame: &Frame) -> Outcome<()> {
        let d = frame.descriptor;
        let mut vnet = VnetHeader::default();
        if d.flags & FRAME_CHECKSUM != 0 {
            vnet.flags = F_NEEDS_CSUM;
            vnet.csum_start = d.checksum_start;
            vnet.csum_offset = d.checksum_offset;
        }
        if d.segment_size != 0 {
            vnet.gso_type = gso_type(d);
            vnet.gso_size = d.segment_size;
            vnet.hdr_len = d.header_len;
        }
        let mut parts = [iovec(std::ptr::null(), 0); 2 + FRAME_PAYLOAD_MAX];
        parts[0] = iovec((&raw const vnet).cast(), VNET_HEADER_LEN);
        parts[1] = iovec(d.header.as_ptr(), (d.header_len as usize).min(d.header.len()));
        let mut n = 2;
        for r in &d.payload[..(d.payload_count as usize).min(FRAME_PAYLOAD_MAX)] {
            if r.len == 0 {
                continue;
            }
            let (segment, offset) = frame.memory.resolve(*r).ok_or(DeviceError::Failed(libc::EFAULT))?;
            let p = segment.range(offset, r.len as usize).map_err(|_| DeviceError::Failed(libc::EFAULT))?;
            parts[n] = iovec(p, r.len as usize);
            n += 1;
        }
        // SAFETY: every part is a checked range of a live mapping or of our own stack.
        let sent = unsafe { libc::writev(self.fd.as_raw_fd(), parts.as_ptr(), n as i32) };
        if sent >= 0 {
            return Ok(());
        }
        let error = last_error();
        if vnet.gso_type == GSO_UDP_L4 && matches!(error, DeviceError::Failed(libc::EINVAL)) {
            // Linux before 6.2.
            self.info.datagrams = false;
        }
        Err(error)
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> Outcome<ReceivedFrame> {
        let Some(ring) = &mut self.ring else {
            return self.read(pool, slot);
        };
        let view = pool.view();
        let offset = view.locate(slot).ok_or(DeviceError::Failed(libc::EFAULT))?;
        match ring.take(&view.segment, offset, slot.len) {
            Taken::Nothing => self.look_at_socket(pool, slot),
            Taken::Frame(vnet, len, place) => {
                note::take(view, vnet, len, place);
                ring.release();
                Ok(received(vnet, len))
            }
            Taken::Lost => {
                ring.release();
                Err(DeviceError::Failed(libc::EMSGSIZE))
            }
            Taken::InQueue => {
                // If a predecessor read it and died, nothing is there; then the device says that more waits.
                let read = self.read(pool, slot);
                // Not before: if the process dies here, its successor finds the slot.
                if let Some(ring) = &mut self.ring {
                    ring.release();
                }
                read
            }
        }
    }

    fn recover(&mut self, pool: &PoolView, slot: PacketRef) -> Option<ReceivedFrame> {
        match note::find(pool, slot)? {
            Noted::Read(vnet, len) => Some(received(vnet, len)),
            Noted::Taken(_, _, place) if self.ring.as_ref()?.has(place) => None,
            Noted::Taken(vnet, len, _) => Some(received(vnet, len)),
        }
    }
}

fn received(vnet: VnetHeader, len: u32) -> ReceivedFrame {
    let segmented = matches!(vnet.gso_type & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6 | GSO_UDP_L4);
    ReceivedFrame {
        len,
        // NEEDS_CSUM: the frame comes from this machine and has never been on a wire.
        checksum_ok: vnet.flags & (F_NEEDS_CSUM | F_DATA_VALID) != 0,
        segment_size: if segmented { vnet.gso_size } else { 0 },
    }
}
