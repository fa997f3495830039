//! What an engine is given and gives, by kind, as a recording has it.

use eft_messages::filter::IpToFilter;
use eft_messages::nic::NicToIp;
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};
use eft_record::recording::{Call, Input, RecordedEvent, RecordedOutput};

/// A kind of work of a component, by the name of its parameter in a calibration file.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub what: &'static str,
    count: fn(&Call) -> u64,
    /// Of how many of these its cost is.
    pub unit: u64,
}

impl Kind {
    const fn of(name: &'static str, what: &'static str, count: fn(&Call) -> u64) -> Kind {
        Kind { name, what, count, unit: 1 }
    }

    /// How much of it a call is: messages, or bytes.
    pub fn count(&self, call: &Call) -> u64 {
        (self.count)(call)
    }
}

// Buffers given back belong to the cost of what was in them, and the end of a turn to that of the turn's messages.
const TCP: &[Kind] = &[
    Kind::of("tcp_segment_cycles", "a segment with payload, to ip", |c| sent(c).0),
    Kind::of("tcp_empty_segment_cycles", "a segment without payload, to ip", |c| sent(c).1),
    Kind::of("tcp_acknowledgement_cycles", "a received segment without payload", |c| tcp(c, Came::Empty)),
    Kind::of("tcp_data_cycles", "a received segment with payload", |c| tcp(c, Came::Data)),
    Kind { unit: 1024, ..Kind::of("tcp_received_kib_cycles", "1024 received bytes", received_bytes) },
    Kind::of("tcp_sent_cycles", "a receipt of ip", |c| tcp(c, Came::Receipt)),
    Kind::of("write_cycles", "a page of a program that changed", writes),
    Kind::of("handshake_cycles", "a received segment that begins or ends a connection", |c| {
        tcp(c, Came::Handshake)
    }),
    Kind::of("tcp_other_cycles", "a request of sockets, a deadline", |c| tcp(c, Came::Other)),
];

const IP: &[Kind] = &[
    Kind::of("ip_segment_cycles", "a packet of a transport", |c| ip(c, Came::Segment)),
    Kind::of("ip_acknowledgement_cycles", "a frame of a driver", |c| ip(c, Came::Frame)),
    Kind::of("ip_sent_cycles", "a receipt of a driver", |c| ip(c, Came::Receipt)),
    Kind::of("ip_verdict_cycles", "a message of the filter", |c| ip(c, Came::Verdict)),
    Kind::of("ip_other_cycles", "a question for a route, a deadline", |c| ip(c, Came::Other)),
];

const FILTER: &[Kind] = &[
    Kind::of("filter_question_cycles", "a question of ip", |c| filter(c, Came::Question)),
    Kind::of("filter_other_cycles", "another message of ip, a deadline", |c| filter(c, Came::Other)),
];

/// The kinds of a component's work; none: it is not told apart.
pub fn of(component: ComponentId) -> &'static [Kind] {
    match component.role {
        Role::Tcp => TCP,
        Role::Ip => IP,
        Role::Filter => FILTER,
        _ => &[],
    }
}

/// Whether a call brings a neighbour's message, as servers count them.
pub fn is_message(call: &Call) -> bool {
    matches!(call.input, Input::Message(..))
}

/// What a message brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Segment,
    Empty,
    Data,
    Handshake,
    Frame,
    Receipt,
    Verdict,
    Question,
    Other,
    GivenBack,
}

/// 1 if a call brings this. `of_message`: what a message is, if it is one of its edge.
fn brings(call: &Call, kind: Came, of_message: fn(ComponentId, &Encoded, &Call) -> Option<Came>) -> u64 {
    let came = match &call.input {
        Input::Message(from, line) => of_message(*from, line, call).unwrap_or(Came::Other),
        Input::Expire | Input::Reborn(_) | Input::Event(RecordedEvent::Configure { .. }) => Came::Other,
        _ => return 0,
    };
    u64::from(came == kind)
}

fn tcp(call: &Call, kind: Came) -> u64 {
    brings(call, kind, |from, line, call| {
        if from.role != Role::Ip {
            return None;
        }
        Some(match IpToTransport::decode(line)? {
            IpToTransport::Sent { .. } => Came::Receipt,
            IpToTransport::Deliver { header_len, .. } => segment(call, usize::from(header_len)),
            _ => Came::Other,
        })
    })
}

fn ip(call: &Call, kind: Came) -> u64 {
    brings(call, kind, |from, line, _| {
        Some(match from.role {
            Role::Tcp | Role::Udp => match TransportToIp::decode(line)? {
                TransportToIp::Send { .. } => Came::Segment,
                TransportToIp::Done { .. } => Came::GivenBack,
                _ => Came::Other,
            },
            Role::Nic => match NicToIp::decode(line)? {
                NicToIp::Received { .. } => Came::Frame,
                NicToIp::Sent { .. } => Came::Receipt,
                NicToIp::Link { .. } => Came::Other,
            },
            Role::Filter => Came::Verdict,
            _ => Came::Other,
        })
    })
}

fn filter(call: &Call, kind: Came) -> u64 {
    brings(call, kind, |_, line, _| {
        Some(match IpToFilter::decode(line)? {
            IpToFilter::Ask { .. } => Came::Question,
            _ => Came::Other,
        })
    })
}

const SYN_FIN_RST: u8 = 7;

/// The delivered packet, whose headers a peer may have made up.
fn segment(call: &Call, header_len: usize) -> Came {
    let segment = call.memory.first().and_then(|(_, bytes)| bytes.get(header_len..)).unwrap_or_default();
    let (Some(offset), Some(flags)) = (segment.get(12), segment.get(13)) else { return Came::Other };
    let payload = segment.len().saturating_sub(usize::from(offset >> 4) * 4);
    match (flags & SYN_FIN_RST != 0, payload) {
        (true, _) => Came::Handshake,
        (false, 0) => Came::Empty,
        (false, _) => Came::Data,
    }
}

fn received_bytes(call: &Call) -> u64 {
    if tcp(call, Came::Data) == 0 {
        return 0;
    }
    call.memory.first().map_or(0, |(_, bytes)| bytes.len() as u64)
}

fn writes(call: &Call) -> u64 {
    u64::from(matches!(call.input, Input::Event(RecordedEvent::Dirty { .. })))
}

/// Segments that a call sends, with payload and without.
fn sent(call: &Call) -> (u64, u64) {
    let payloads = call.outputs.iter().filter_map(|output| match output {
        RecordedOutput::Message { to, shown, payload, .. } if to.role == Role::Ip && !shown.is_empty() => {
            Some(payload.0)
        }
        _ => None,
    });
    payloads
        .fold((0, 0), |(full, empty), bytes| if bytes > 0 { (full + 1, empty) } else { (full, empty + 1) })
}

#[cfg(test)]
mod tests;
