//! Costs of tcp's segments that the other experiments do not tell apart: bulk out has neither data that comes in nor many segments
//! without payload.

use eft_messages::transport::{IpToTransport, SendDescriptor, TransportToIp};
use eft_messages::{ComponentId, Role};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::batch::Profile;
use crate::batch::calibrated::Reader;
use crate::batch::servers::scaled;
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Work;
use crate::stack::Stack;
use crate::timed::charge::times;

/// Bytes of a TCP header without options.
const TCP_LEN: usize = 20;

#[derive(Clone, Copy, Debug)]
pub struct Segments {
    /// A received segment with payload, beside what one without costs, and 1024 bytes of payload.
    pub(super) data: Work,
    data_kib: Work,
    /// A segment without payload to ip.
    pub(super) empty: Work,
}

/// Segments that a tcp has sent in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub full: u64,
    pub empty: u64,
}

impl Sent {
    /// All that wait for ip behind so many messages.
    pub fn waiting(stack: &Stack, tcp: ComponentId, behind: usize) -> Sent {
        let mut sent = Sent::default();
        let queue = stack.queue(tcp, ComponentId::IP);
        for line in queue.into_iter().flat_map(|queue| queue.waiting_behind(behind)) {
            let Some(TransportToIp::Send { descriptor, .. }) = TransportToIp::decode(&line) else { continue };
            let mut bytes = [0; size_of::<SendDescriptor>()];
            let read = stack
                .read(descriptor, &mut bytes)
                .and_then(|()| SendDescriptor::read_from_bytes(&bytes).ok());
            match read.is_some_and(|descriptor| descriptor.payload_count == 0) {
                true => sent.empty += 1,
                false => sent.full += 1,
            }
        }
        sent
    }
}

impl Segments {
    pub fn new(calibration: &Calibration, profile: &Profile) -> Result<Self, CalibrationError> {
        let from = Reader { calibration, system: "eft", base: "eft" };
        Ok(Self {
            data: from.message("tcp_data_cycles")?.beyond(profile.tcp.acknowledgement),
            data_kib: from.message("tcp_received_kib_cycles")?,
            empty: from.message("tcp_empty_segment_cycles")?,
        })
    }

    pub fn sent(&self, profile: &Profile, sent: Sent) -> Work {
        times(profile.tcp.segment, sent.full) + times(self.empty, sent.empty)
    }

    /// What the payload costs of the segments that a turn of this tcp takes, beside what segments without any cost.
    pub fn received(&self, stack: &Stack, tcp: ComponentId, budget: usize) -> Work {
        let of_ip = stack.waiting(tcp).filter(|(from, _)| from.role == Role::Ip);
        let payloads = of_ip.flat_map(|(_, lines)| lines.take(budget)).filter_map(|line| {
            let Some(IpToTransport::Deliver { packet, header_len, .. }) = IpToTransport::decode(&line) else {
                return None;
            };
            let segment = packet.skip(header_len.into());
            let mut header = <[u8; TCP_LEN]>::new_zeroed();
            stack.read(segment, header.as_mut_bytes())?;
            let header_len = usize::from(header[12] >> 4) * 4;
            Some((segment.len as usize).saturating_sub(header_len) as u64)
        });
        let cost = |work: Work, bytes: u64| work + self.data + scaled(self.data_kib, bytes);
        payloads.filter(|bytes| *bytes > 0).fold(Work::default(), cost)
    }
}
