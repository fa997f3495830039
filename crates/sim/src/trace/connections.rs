//! Makes a trace of captured segments: what a client says until the server answers is a request, and what the server says until the
//! client does again is the answer.

use std::collections::HashMap;

use eft_base::wire::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use super::capture::{CaptureError, End, Segment, segments};
use super::{ANSWER_BYTES_MAX, Deed, Exchange, REQUEST_BYTES_MAX, Step, Trace};

/// A trace, and what of the capture is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    pub trace: Trace,
    /// Segments of connections that the capture does not have from their beginning.
    pub strange_segments: u64,
    /// Requests without an answer, and with more bytes than a trace says.
    pub left_out: u64,
}

/// One direction of a connection.
#[derive(Clone, Copy, Default)]
struct Direction {
    /// The sequence number after all that was seen. `None`: nothing was.
    next: Option<u32>,
}

impl Direction {
    /// How many bytes of a segment are new. What was lost to the capture counts when something after it comes.
    fn new_bytes(&mut self, segment: &Segment) -> u64 {
        let begins = segment.sequence.wrapping_add(u32::from(segment.flags & TCP_SYN != 0));
        let next = self.next.get_or_insert(begins);
        let end = begins.wrapping_add(segment.payload);
        let more = end.wrapping_sub(*next) as i32;
        if more <= 0 || segment.payload == 0 {
            return 0;
        }
        *next = end;
        more as u64
    }
}

struct Connection {
    number: u32,
    asks: Direction,
    answers: Direction,
    /// Where the present request is among the steps.
    present: Option<usize>,
    is_closed: bool,
}

#[derive(Default)]
struct Converter {
    /// By client and server.
    all: HashMap<(End, End), Connection>,
    steps: Vec<Step>,
    opened: u32,
    first_ns: u64,
    last_us: u64,
    strange_segments: u64,
}

impl Converter {
    fn push(&mut self, connection: u32, deed: Deed) -> usize {
        self.steps.push(Step { at_us: self.last_us, connection, deed });
        self.steps.len() - 1
    }

    fn take(&mut self, segment: &Segment) {
        // Copies of several CPUs may be a little out of order.
        self.last_us = self.last_us.max(segment.at_ns.saturating_sub(self.first_ns) / 1000);
        let (asks, answers) = ((segment.from, segment.to), (segment.to, segment.from));
        if segment.flags & (TCP_SYN | TCP_ACK) == TCP_SYN {
            self.open(asks, segment);
        } else if self.all.contains_key(&asks) {
            self.of_client(asks, segment);
        } else if self.all.contains_key(&answers) {
            self.of_server(answers, segment);
        } else {
            self.strange_segments += 1;
        }
    }

    fn open(&mut self, key: (End, End), segment: &Segment) {
        let repeated = self.all.get(&key).is_some_and(|known| !known.is_closed && known.present.is_none());
        if repeated {
            return;
        }
        self.close(key);
        let number = self.opened;
        self.opened += 1;
        let asks = Direction { next: Some(segment.sequence.wrapping_add(1)) };
        let (answers, present) = (Direction::default(), None);
        self.all.insert(key, Connection { number, asks, answers, present, is_closed: false });
        self.push(number, Deed::Open);
    }

    fn of_client(&mut self, key: (End, End), segment: &Segment) {
        let Some(connection) = self.all.get_mut(&key) else { return };
        let bytes = connection.asks.new_bytes(segment);
        let (number, present) = (connection.number, connection.present);
        if bytes > 0 && !connection.is_closed {
            match present.and_then(|at| self.steps.get_mut(at)) {
                Some(Step { deed: Deed::Ask(asked), .. }) if asked.answer_bytes == 0 => {
                    asked.request_bytes += bytes;
                }
                _ => {
                    let asked = Exchange { request_bytes: bytes, answer_bytes: 0 };
                    let at = self.push(number, Deed::Ask(asked));
                    self.all.entry(key).and_modify(|connection| connection.present = Some(at));
                }
            }
        }
        if segment.flags & (TCP_FIN | TCP_RST) != 0 {
            self.close(key);
        }
    }

    fn of_server(&mut self, key: (End, End), segment: &Segment) {
        let Some(connection) = self.all.get_mut(&key) else { return };
        let bytes = connection.answers.new_bytes(segment);
        // What a server says unasked is no answer.
        let present = connection.present.and_then(|at| self.steps.get_mut(at));
        if let Some(Step { deed: Deed::Ask(asked), .. }) = present {
            asked.answer_bytes += bytes;
        }
        if segment.flags & TCP_RST != 0 {
            self.close(key);
        }
    }

    fn close(&mut self, key: (End, End)) {
        let Some(connection) = self.all.get_mut(&key) else { return };
        let number = connection.number;
        if !std::mem::replace(&mut connection.is_closed, true) {
            self.push(number, Deed::Close);
        }
    }
}

fn can_be_told(step: &Step) -> bool {
    match step.deed {
        Deed::Ask(asked) => {
            (1..=REQUEST_BYTES_MAX).contains(&asked.request_bytes)
                && (1..=ANSWER_BYTES_MAX).contains(&asked.answer_bytes)
        }
        Deed::Open | Deed::Close => true,
    }
}

/// Of what `eft capture -w FILE` has written.
pub fn convert(capture: &[u8]) -> Result<Converted, CaptureError> {
    let segments = segments(capture)?;
    let begins = |segment: &&Segment| segment.flags & (TCP_SYN | TCP_ACK) == TCP_SYN;
    let first_ns = segments.iter().find(begins).ok_or(CaptureError::Nothing)?.at_ns;
    let mut converter = Converter { first_ns, ..Converter::default() };
    segments.iter().for_each(|segment| converter.take(segment));
    let (told, left_out): (Vec<Step>, Vec<Step>) = converter.steps.iter().partition(|step| can_be_told(step));
    let trace = Trace { steps: told, length_us: converter.last_us.max(1) };
    // Whatever a capture holds, what is written can be read.
    let trace = Trace::parse(&trace.to_string()).map_err(CaptureError::Untold)?;
    let left_out = left_out.len() as u64;
    Ok(Converted { trace, strange_segments: converter.strange_segments, left_out })
}
