//! What the peer knows of a connection, and what it has seen of it on the wire, without the numbers that a host chooses.

use crate::observation::{Observation, digest};
use crate::packet::{Tcp, each_option};
use crate::program::{ACK, FIN, RST, SYN};

/// No program sends more.
const STREAM_MAX: usize = 1 << 20;

#[derive(Default)]
pub struct Connection {
    /// The host's port and its initial sequence number, by its last SYN.
    pub host: Option<(u16, u32)>,
    /// The SYN's or its answer's options, in words.
    greeting: Option<String>,
    /// The last of the host's timestamps.
    pub time: Option<u32>,
    /// The last packet, which an ICMP error quotes.
    pub last: Vec<u8>,
    stream: Vec<Option<u8>>,
    /// Where the host's stream ends, if it says so.
    end: Option<usize>,
    reset: bool,
    acknowledged: Option<u32>,
    window: u16,
    datagrams: Vec<String>,
}

impl Connection {
    /// How many bytes of the host's stream have come without a gap.
    fn contiguous(&self) -> usize {
        self.stream.iter().take_while(|byte| byte.is_some()).count()
    }

    /// The sequence number after everything that came.
    pub fn everything(&self) -> u32 {
        let (_, initial) = self.host.unwrap_or_default();
        let data = self.contiguous();
        let end = u32::from(self.end == Some(data));
        initial.wrapping_add(1 + data as u32 + end)
    }

    /// A segment of the host; `initial` is the peer's sequence number of its SYN.
    pub fn segment(&mut self, port: u16, segment: &Tcp, initial: u32) {
        if segment.has(RST) {
            self.reset = true;
            return;
        }
        if segment.has(SYN) && self.host != Some((port, segment.sequence)) {
            // Another connection: nothing of the one before is of it.
            *self = Connection { last: std::mem::take(&mut self.last), ..Connection::default() };
            self.host = Some((port, segment.sequence));
            self.greeting = Some(greeting(segment));
        }
        if let Some((_, time)) = each_option(&segment.options).into_iter().find(|(kind, _)| *kind == 8) {
            self.time = time.get(..4).map(|own| u32::from_be_bytes(own.try_into().expect("4 bytes")));
        }
        if let Some(number) = segment.acknowledged() {
            let relative = number.wrapping_sub(initial);
            if self.acknowledged.is_none_or(|before| relative.wrapping_sub(before) as i32 >= 0) {
                self.acknowledged = Some(relative);
                self.window = segment.window;
            }
        }
        self.take_data(segment);
    }

    fn take_data(&mut self, segment: &Tcp) {
        let Some((_, initial)) = self.host else { return };
        let at =
            segment.sequence.wrapping_add(u32::from(segment.has(SYN))).wrapping_sub(initial.wrapping_add(1))
                as usize;
        let end = at.saturating_add(segment.data.len());
        if end > STREAM_MAX {
            return;
        }
        if self.stream.len() < end {
            self.stream.resize(end, None);
        }
        self.stream[at..end].iter_mut().zip(&segment.data).for_each(|(to, byte)| *to = Some(*byte));
        if segment.has(FIN) {
            self.end = Some(end);
        }
    }

    pub fn datagram(&mut self, data: &[u8]) {
        self.datagrams.push(digest(data));
    }

    /// What the host has acknowledged, from the SYN of the peer on.
    pub fn acknowledged(&self) -> Option<u32> {
        self.acknowledged
    }

    /// Whether the host has greeted.
    pub fn is_known(&self) -> bool {
        self.host.is_some()
    }

    /// Writes down what was seen; what may be delayed only after some time.
    pub fn observe(&self, name: &str, settled: bool, into: &mut Observation) {
        let mut note = |what: &str, value: String| {
            into.insert(format!("{name} {what}"), value);
        };
        if let Some(greeting) = &self.greeting {
            note("greeting", greeting.clone());
        }
        if self.reset {
            note("reset", "yes".into());
        }
        if !self.datagrams.is_empty() {
            note("datagrams", self.datagrams.join(", "));
        }
        let data: Vec<u8> = self.stream.iter().map_while(|byte| *byte).collect();
        if !data.is_empty() {
            note("data", digest(&data));
        }
        if let Some(end) = self.end {
            note("end", format!("after {end} bytes"));
        }
        if settled && self.is_known() && !self.reset {
            if let Some(number) = self.acknowledged {
                note("acknowledged", number.to_string());
            }
            note("window", if self.window == 0 { "closed".into() } else { "open".into() });
        }
    }
}

fn greeting(segment: &Tcp) -> String {
    let mut words = vec![if segment.has(ACK) { "SYN-ACK".to_string() } else { "SYN".to_string() }];
    let mut options: Vec<String> = each_option(&segment.options)
        .into_iter()
        .map(|(kind, body)| match kind {
            2 => format!("mss {}", body.iter().fold(0, |sum, byte| sum * 256 + u32::from(*byte))),
            // The shift is a host's own choice.
            3 => "scale".into(),
            4 => "sack".into(),
            8 => "timestamps".into(),
            other => format!("option {other}"),
        })
        .collect();
    options.sort();
    words.extend(options);
    words.join(" ")
}
