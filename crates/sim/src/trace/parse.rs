//! Reads a trace, line by line.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{
    ANSWER_BYTES_MAX, Deed, Exchange, HEAD, LENGTH_US_MAX, OPEN_MAX, REQUEST_BYTES_MAX, STEPS_MAX, Step,
    Trace,
};

/// The first error of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TraceError {
    /// Counted from 1.
    pub line: usize,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("a trace begins with the line `{HEAD}`")]
    NoHead,
    #[error(
        "a line is `TIME CONNECTION open`, `TIME CONNECTION REQUEST ANSWER`, `TIME CONNECTION close` or `TIME end`, with single spaces"
    )]
    Fields,
    #[error("a time is a number of microseconds, up to {LENGTH_US_MAX}")]
    Time,
    #[error("the time is before the line above")]
    Backwards,
    #[error("a connection is a number, up to {}", u32::MAX)]
    Connection,
    #[error("a request is a number of bytes, 1 to {REQUEST_BYTES_MAX}")]
    Request,
    #[error("an answer is a number of bytes, 1 to {ANSWER_BYTES_MAX}")]
    Answer,
    #[error("connection {0} is open already")]
    OpenAlready(u32),
    #[error("connection {0} is not open")]
    NotOpen(u32),
    #[error("more than {OPEN_MAX} connections are open at once")]
    TooManyOpen,
    #[error("a trace has at most {STEPS_MAX} lines of connections")]
    TooLong,
    #[error("the trace ends without `TIME end`: it was cut short")]
    NoEnd,
    #[error("something follows the end")]
    AfterEnd,
    #[error("the trace ends at time 0")]
    NoLength,
    #[error("nothing is asked in the whole trace")]
    NoRequest,
}

/// Digits alone: Rust's own numbers may begin with a plus sign.
fn number(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_digits && range.contains(number))
}

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    open: BTreeSet<u32>,
    last_us: u64,
    asks: usize,
    length_us: Option<u64>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), Why> {
        if self.length_us.is_some() {
            return Err(Why::AfterEnd);
        }
        let fields: Vec<&str> = line.splitn(5, ' ').collect();
        let [time, rest @ ..] = fields.as_slice() else { return Err(Why::Fields) };
        let at_us = number(time, 0..=LENGTH_US_MAX).ok_or(Why::Time)?;
        if at_us < self.last_us {
            return Err(Why::Backwards);
        }
        self.last_us = at_us;
        match *rest {
            ["end"] => self.end(at_us),
            [connection, "open"] => self.step(at_us, connection, Deed::Open),
            [connection, "close"] => self.step(at_us, connection, Deed::Close),
            [connection, request, answer] => {
                let request_bytes = number(request, 1..=REQUEST_BYTES_MAX).ok_or(Why::Request)?;
                let answer_bytes = number(answer, 1..=ANSWER_BYTES_MAX).ok_or(Why::Answer)?;
                self.step(at_us, connection, Deed::Ask(Exchange { request_bytes, answer_bytes }))
            }
            _ => Err(Why::Fields),
        }
    }

    fn step(&mut self, at_us: u64, connection: &str, deed: Deed) -> Result<(), Why> {
        let connection = number(connection, 0..=u32::MAX.into()).ok_or(Why::Connection)? as u32;
        match deed {
            Deed::Open if !self.open.insert(connection) => return Err(Why::OpenAlready(connection)),
            Deed::Open if self.open.len() > OPEN_MAX => return Err(Why::TooManyOpen),
            Deed::Open => {}
            Deed::Close if self.open.remove(&connection) => {}
            Deed::Ask(_) if self.open.contains(&connection) => self.asks += 1,
            Deed::Ask(_) | Deed::Close => return Err(Why::NotOpen(connection)),
        }
        if self.steps.len() == STEPS_MAX {
            return Err(Why::TooLong);
        }
        self.steps.push(Step { at_us, connection, deed });
        Ok(())
    }

    fn end(&mut self, at_us: u64) -> Result<(), Why> {
        if at_us == 0 {
            return Err(Why::NoLength);
        }
        if self.asks == 0 {
            return Err(Why::NoRequest);
        }
        self.length_us = Some(at_us);
        Ok(())
    }
}

impl Trace {
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut reader = Reader::default();
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        if lines.next().is_none_or(|(_, line)| line != HEAD) {
            return Err(TraceError { line: 1, why: Why::NoHead });
        }
        let mut last = 1;
        for (line, text) in lines {
            last = line;
            if !text.starts_with('#') {
                reader.line(text).map_err(|why| TraceError { line, why })?;
            }
        }
        let length_us = reader.length_us.ok_or(TraceError { line: last, why: Why::NoEnd })?;
        Ok(Self { steps: reader.steps, length_us })
    }
}
