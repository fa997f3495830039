//! Whether arriving segments are signed as their receivers want it (RFC 2385 §2.0, RFC 5925 §7.5.2). One that is not changes
//! nothing, resets included.

use super::ao::TrafficKey;
use super::ao_keys::{AoKey, AoKeys, extension};
use super::block::{State, bit};
use super::connection::Connection;
use super::counters::Counter;
use super::covered::Covered;
use super::engine::Tcp;
use super::options::{Authentication, OPTIONS_MAX, Options, Signature};
use super::segment::{Payload, Segment};
use super::signature::{are_equal, digest};
use crate::page::Keys;
use alloc::rc::Rc;
use core::net::IpAddr;
use eft_base::PacketRef;
use eft_base::wire::{ICMP_UNREACHABLE, ICMPV6_UNREACHABLE, TCP_ACK, TCP_SYN, TcpHeader};
use eft_channel::socket::{AuthenticationStatus, SignatureKey};
use eft_component::Context;

/// A segment as it arrived: its packet, and the length of the IP headers.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub packet: PacketRef,
    pub ip_len: u16,
}

/// The options of a segment, as bytes.
struct Raw {
    bytes: [u8; OPTIONS_MAX],
    len: usize,
}

impl Arrived {
    /// Reads the options again; `None` if they, or the header, are not what was parsed.
    fn options(&self, cx: &Context, segment: &Segment) -> Option<Raw> {
        const HEADER: usize = size_of::<TcpHeader>();
        let mut bytes = [0; HEADER + OPTIONS_MAX];
        let len = usize::from(segment.header[12] >> 4) * 4;
        let head = PacketRef { len: len as u32, ..self.packet.skip(self.ip_len.into()) };
        cx.memory.read(head, bytes.get_mut(..len)?)?;
        // The checksum.
        bytes[16..18].fill(0);
        let (header, options) = bytes.split_at(HEADER);
        let raw = Raw { bytes: options.try_into().ok()?, len: len.checked_sub(HEADER)? };
        (*header == segment.header && Options::parse(raw.get()) == segment.options).then_some(raw)
    }
}

impl Raw {
    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Bytes of header, options and data.
fn segment_len(segment: &Segment) -> u32 {
    u32::from(segment.header[12] >> 4) * 4 + segment.len
}

/// What a signature of this segment covers.
fn covered<'a>(segment: &'a Segment, data: &'a [u8]) -> Covered<'a> {
    let addresses = (segment.tuple.remote, segment.tuple.local);
    Covered { addresses, header: &segment.header, len: segment_len(segment), data }
}

/// Whether the code is that of a key of ours, `key`, which makes it with `traffic`.
fn is_code(
    key: &SignatureKey,
    traffic: &TrafficKey,
    extension: u32,
    (segment, told): (&Segment, &Authentication),
    options: &Raw,
    scratch: &[u8],
) -> bool {
    let len = usize::from(told.mac_len);
    let data = &scratch[..segment.len as usize];
    let code = traffic.code(&covered(segment, data), extension, options.get(), key.excludes_options == 0);
    told.mac_len == key.mac_len && len > 0 && len <= code.len() && are_equal(&code[..len], &told.mac[..len])
}

/// Which initial sequence numbers a segment's traffic key has (RFC 5925 §5.2), its sender's first, and the extension of its sequence
/// number; `None` if the sender's is not known.
fn place(c: &Connection, segment: &Segment) -> Option<((u32, u32), u32)> {
    let block = &c.block;
    if segment.has(TCP_SYN) {
        return Some(((segment.seq, if segment.has(TCP_ACK) { block.iss } else { 0 }), 0));
    }
    if block.state() == State::SynSent {
        return None;
    }
    let extension = extension(block.irs, block.received_offset(segment.seq));
    Some(((block.irs, block.iss), extension))
}

impl Tcp {
    /// Whether a segment is signed as its receiver wants it. One for nobody is. A verified payload lies in the scratch buffer from
    /// then on: nobody changes it there.
    pub(super) fn is_authentic(&mut self, cx: &Context, segment: &mut Segment, arrived: Arrived) -> bool {
        if !self.is_keyed && !segment.options.are_signed() && !segment.has(TCP_SYN) {
            return true;
        }
        let judged = match self.find(&segment.tuple) {
            Some(i) => self.judge(cx, i, segment, arrived),
            None => match self.ports.listener(&segment.tuple) {
                Some(listener) => self.judge_for_listener(cx, listener, segment, arrived),
                None => Ok(()),
            },
        };
        judged.map_err(|fault| cx.count(fault)).is_ok()
    }

    /// The same for a connection. An error is the counter of what is wrong.
    fn judge(
        &mut self,
        cx: &Context,
        i: u32,
        segment: &mut Segment,
        arrived: Arrived,
    ) -> Result<(), Counter> {
        let options = &segment.options;
        let (signature, authentication) = (options.signature, options.authentication);
        if !self.view(i).block.has(bit::SIGNED) {
            return if options.are_signed() { Err(Counter::DropUnexpectedSignature) } else { Ok(()) };
        }
        self.revive_for_message(cx, i);
        self.recall_keys(i);
        if self.view(i).block.has(bit::AUTHENTICATED) {
            return self.judge_by_ao(cx, i, segment, arrived);
        }
        let key = self.view(i).live.signing.key.clone();
        match (signature, key) {
            (None, _) => Err(Counter::DropUnsigned),
            (Some(_), _) if authentication.is_some() => Err(Counter::DropUnexpectedSignature),
            (Some(told), Some(key)) if self.is_signed(cx, segment, &key, &told) => Ok(()),
            _ => Err(Counter::DropSignature),
        }
    }

    /// RFC 5925 §7.5.2.
    fn judge_by_ao(
        &mut self,
        cx: &Context,
        i: u32,
        segment: &mut Segment,
        arrived: Arrived,
    ) -> Result<(), Counter> {
        let Some(told) = segment.options.authentication else {
            self.count_ao(i, |counted| &mut counted.unsigned);
            return Err(Counter::DropUnsigned);
        };
        if segment.options.signature.is_some() {
            return Err(Counter::DropUnexpectedSignature);
        }
        let raw = arrived.options(cx, segment);
        let is_read = self.read_data(cx, segment);
        let (mut c, scratch) = self.connection_and_scratch(i);
        let Some((isns, extension)) = place(&c, segment) else {
            // No answer to our SYN, or a reset for it, which cannot be signed by who has no connection.
            return Err(Counter::DropMalformed);
        };
        let tuple = c.block.tuple;
        let Some(ao) = &mut c.live.signing.ao else { return Err(Counter::DropUnknownKey) };
        let Some(key) = ao.by_receive_id(told.key_id) else {
            ao.counted.unknown = ao.counted.unknown.wrapping_add(1);
            return Err(Counter::DropUnknownKey);
        };
        let is_good = is_read
            && raw.is_some_and(|raw| {
                let traffic = key.verifier(&tuple, isns);
                is_code(&key.master, &traffic, extension, (segment, &told), &raw, scratch)
            });
        key.count(is_good);
        ao.count(is_good);
        if !is_good {
            return Err(Counter::DropSignature);
        }
        // The peer asks for a key (RFC 5925 §7.5.2.e): if we have it, we sign with it from now on.
        if told.next_id != c.cold.ao_current && ao.by_send_id(told.next_id).is_some() {
            c.cold.ao_current = told.next_id;
            cx.count(Counter::KeysChanged);
        }
        Ok(())
    }

    fn count_ao(&mut self, i: u32, which: impl FnOnce(&mut AuthenticationStatus) -> &mut u64) {
        if let Some(ao) = &mut self.connection(i).live.signing.ao {
            let count = which(&mut ao.counted);
            *count = count.wrapping_add(1);
        }
    }

    /// The same for a listener, which may get a connection by it.
    fn judge_for_listener(
        &mut self,
        cx: &Context,
        listener: u32,
        segment: &mut Segment,
        arrived: Arrived,
    ) -> Result<(), Counter> {
        let keys = self.keys_for(listener, segment.tuple.remote);
        self.is_keyed |= !keys.are_none();
        let (signature, authentication) = (segment.options.signature, segment.options.authentication);
        match (keys, signature, authentication) {
            (Keys::None, None, None) if self.connection(listener).wishes().required => {
                Err(Counter::DropUnsigned)
            }
            (Keys::None, None, None) => Ok(()),
            (Keys::None, ..) | (_, Some(_), Some(_)) => Err(Counter::DropUnexpectedSignature),
            (Keys::Md5(key), Some(told), None) if self.is_signed(cx, segment, &key, &told) => Ok(()),
            (Keys::Md5(_), Some(_), None) => Err(Counter::DropSignature),
            (Keys::Ao(keys), None, Some(told)) => {
                let raw = arrived.options(cx, segment).ok_or(Counter::DropUnreadable)?;
                if !self.read_data(cx, segment) {
                    return Err(Counter::DropUnreadable);
                }
                let mut keys = AoKeys::new(keys);
                let key = keys.by_receive_id(told.key_id).ok_or(Counter::DropUnknownKey)?;
                match opens(key, segment, &told, &raw, &self.scratch) {
                    true => Ok(()),
                    false if segment.has(TCP_SYN) => Err(Counter::DropSignature),
                    // Of a connection that has ended, perhaps, whose initial sequence numbers are forgotten.
                    false => Err(Counter::DropNoSocket),
                }
            }
            (Keys::Md5(_) | Keys::Ao(_), ..) => Err(Counter::DropUnsigned),
        }
    }

    fn is_signed(
        &mut self,
        cx: &Context,
        segment: &mut Segment,
        key: &SignatureKey,
        told: &Signature,
    ) -> bool {
        self.read_data(cx, segment) && {
            let data = &self.scratch[..segment.len as usize];
            are_equal(&digest(key, &covered(segment, data)), told)
        }
    }

    /// Puts a segment's data into the scratch buffer.
    fn read_data(&mut self, cx: &Context, segment: &mut Segment) -> bool {
        let Some(data) = self.scratch.get_mut(..segment.len as usize) else { return false };
        if let Payload::Packet(packet) = segment.payload {
            if cx.memory.read(packet, data).is_none() {
                return false;
            }
            segment.payload = Payload::Scratch;
        }
        true
    }

    /// Whether an ICMP error about a connection is ignored: nobody has signed it (RFC 5925 §7.8).
    pub(super) fn ignores_error(&mut self, cx: &Context, i: u32, kind: u8, code: u8) -> bool {
        let c = self.connection(i);
        let block = &c.block;
        let is_hard = match IpAddr::from(block.tuple.remote) {
            IpAddr::V4(_) => kind == ICMP_UNREACHABLE && matches!(code, 2..=4),
            IpAddr::V6(_) => kind == ICMPV6_UNREACHABLE && matches!(code, 1 | 4),
        };
        let is_protected = block.has(bit::AUTHENTICATED) && block.state().is_synchronized();
        if !is_hard || !is_protected || c.wishes().accepts_icmp {
            return false;
        }
        self.count_ao(i, |counted| &mut counted.icmp);
        cx.count(Counter::IcmpIgnored);
        true
    }
}

/// Whether a segment of no connection has the code of its key: a SYN, or the acknowledgment of a SYN-ACK of which nothing was kept
/// (RFC 5925 §5.2).
fn opens(key: &mut AoKey, segment: &Segment, told: &Authentication, raw: &Raw, scratch: &[u8]) -> bool {
    let (isns, extension) = if segment.has(TCP_SYN) {
        ((segment.seq, 0), 0)
    } else {
        let isns = (segment.seq.wrapping_sub(1), segment.ack.wrapping_sub(1));
        (isns, extension(isns.0, 0))
    };
    let traffic: Rc<TrafficKey> = key.verifier(&segment.tuple, isns);
    is_code(&key.master, &traffic, extension, (segment, told), raw, scratch)
}
