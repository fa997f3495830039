//! An arriving segment: copied out of shared memory first, then checked (RFC 9293 §3.1).

use super::block::Tuple;
use super::counters::Counter;
use super::options::Options;
use crate::addresses::{IP_HEADERS_MAX, hops_and_class, ip_addresses, is_whole};
use crate::page::Page;
use eft_base::checksum::Checksum;
use eft_base::wire::{ECN_FIELD, PROTOCOL_TCP, TCP_FIN, TCP_SYN, TcpHeader};
use eft_base::{PacketRef, WireAddress};
use eft_channel::{Copied, Memory};
use eft_component::Context;
use zerocopy::FromBytes;

/// Largest IP header (with options or extension headers) and TCP header.
const HEADERS_MAX: usize = IP_HEADERS_MAX + TCP_HEADER_MAX;
const TCP_HEADER_MAX: usize = 60;

/// Why a packet is not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The reference does not resolve.
    Unreadable,
    Malformed,
    Checksum,
}

/// Where the payload is.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// In a NIC's pool, with a verified checksum.
    Packet(PacketRef),
    /// At the start of our own buffer, where we verified the checksum.
    Scratch,
}

/// A segment whose header has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// As we see it: `local` is the destination.
    pub tuple: Tuple,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// The urgent pointer; valid with URG.
    pub urgent: u16,
    /// The ECN field of its IP header (RFC 3168 §5).
    pub ecn: u8,
    /// Bytes of payload.
    pub len: u32,
    pub payload: Payload,
    /// How many segments it was on the wire.
    pub count: u32,
    pub options: Options,
    /// Its header without options and checksum, which a signature covers.
    pub header: [u8; size_of::<TcpHeader>()],
}

impl Segment {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The ACE field (RFC 9768 §2): AE, CWR and ECE, of which AE lies before the other flags.
    pub fn ace(&self) -> u8 {
        (self.header[12] & 1) << 2 | self.flags >> 6
    }

    /// SEG.LEN: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        self.len + self.has(TCP_SYN) as u32 + self.has(TCP_FIN) as u32
    }

    /// Copies `len` bytes from `skip` on into the receive ring at `offset`. False if the packet's
    /// pool is gone, or the bytes do not get there as they are: then nothing of them is delivered.
    pub fn place(&self, cx: &Context, scratch: &[u8], page: &Page, offset: u64, skip: u32, len: u32) -> bool {
        match self.payload {
            Payload::Packet(packet) => {
                let Some((from, at)) = cx.memory.resolve(packet.skip(skip)) else { return false };
                let copied = page.fill_receive(offset, from, at, len as usize);
                cx.add(Counter::CopiedAgain, u64::from(copied == Copied::Again));
                copied != Copied::Wrongly
            }
            Payload::Scratch => {
                let bytes = &scratch[skip as usize..(skip + len) as usize];
                page.write_receive(offset, bytes);
                true
            }
        }
    }
}

/// Reads and checks the segment in `packet`. If its checksum was not verified before, the payload is
/// copied into `scratch` and verified there, so that the verified bytes are the ones used.
pub fn parse(
    memory: &Memory,
    scratch: &mut [u8],
    packet: PacketRef,
    ip_header_len: u16,
    checksum_ok: bool,
    segment_size: u16,
    zone: u16,
) -> Result<Segment, Unfit> {
    let ip_len = ip_header_len as usize;
    let mut bytes = [0; HEADERS_MAX];
    let copied = (packet.len as usize).min(ip_len + TCP_HEADER_MAX).min(HEADERS_MAX);
    memory.read(packet, &mut bytes[..copied]).ok_or(Unfit::Unreadable)?;
    let bytes = &bytes[..copied];
    let ip = bytes.get(..ip_len).ok_or(Unfit::Malformed)?;
    let (source, destination) = ip_addresses(ip, zone).ok_or(Unfit::Malformed)?;
    if !is_whole(ip, packet.len) {
        return Err(Unfit::Malformed);
    }
    let (header, _) = TcpHeader::read_from_prefix(&bytes[ip_len..]).map_err(|_| Unfit::Malformed)?;
    let header_len = header.header_len();
    if header_len < size_of::<TcpHeader>() {
        return Err(Unfit::Malformed);
    }
    let options = bytes.get(ip_len + size_of::<TcpHeader>()..ip_len + header_len).ok_or(Unfit::Malformed)?;
    let data = packet.skip((ip_len + header_len) as u32);
    let payload = if checksum_ok {
        Payload::Packet(data)
    } else {
        let header = &bytes[ip_len..ip_len + header_len];
        verify(memory, scratch, data, header, source, destination)?;
        Payload::Scratch
    };
    let tuple = Tuple {
        local: destination,
        remote: source,
        local_port: header.destination_port.get(),
        remote_port: header.source_port.get(),
    };
    if tuple.local_port == 0 || tuple.remote_port == 0 {
        return Err(Unfit::Malformed);
    }
    Ok(Segment {
        tuple,
        seq: header.sequence.get(),
        ack: header.acknowledgment.get(),
        flags: header.flags,
        window: header.window.get(),
        urgent: header.urgent.get(),
        ecn: hops_and_class(ip).1 & ECN_FIELD,
        len: data.len,
        payload,
        count: match segment_size {
            0 => 1,
            size => data.len.div_ceil(size as u32).max(1),
        },
        options: Options::parse(options),
        header: zerocopy::transmute!(TcpHeader { checksum: 0.into(), ..header }),
    })
}

/// Copies the payload into `scratch` and sums it with the header (RFC 9293 §3.1).
fn verify(
    memory: &Memory,
    scratch: &mut [u8],
    data: PacketRef,
    header: &[u8],
    source: WireAddress,
    destination: WireAddress,
) -> Result<(), Unfit> {
    let len = data.len as usize;
    let copy = scratch.get_mut(..len).ok_or(Unfit::Malformed)?;
    memory.read(data, copy).ok_or(Unfit::Unreadable)?;
    let sum = Checksum::new()
        .add_pseudo_header(source.into(), destination.into(), PROTOCOL_TCP, (header.len() + len) as u32)
        .add_bytes(header)
        .add_bytes(copy);
    if sum.finish() != 0 {
        return Err(Unfit::Checksum);
    }
    Ok(())
}

#[cfg(test)]
impl Segment {
    /// An empty segment.
    pub fn nothing() -> Segment {
        Segment {
            tuple: Tuple::default(),
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            urgent: 0,
            ecn: 0,
            len: 0,
            payload: Payload::Scratch,
            count: 1,
            options: Options::default(),
            header: [0; size_of::<TcpHeader>()],
        }
    }
}
