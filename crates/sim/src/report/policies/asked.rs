//! The loads of the command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use eft_base::random::Random;
use eft_sim::timed::check::Load;
use eft_sim::timed::policies::Offered;
use eft_sim::timed::trace::Replay;
use eft_sim::timed::trace::replay::{FACTOR_MILLI_MAX, MILLI};
use eft_sim::trace::Trace;

use crate::report::file;

/// Of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    One(Load),
    /// A web server with clients and files from the seed.
    Drawn,
    /// A trace, so many thousandths as fast as it was recorded.
    Trace {
        file: PathBuf,
        factor_milli: u64,
    },
}

const CLIENTS_MAX: usize = 128;
const BYTES: RangeInclusive<u64> = 10..=1_000_000;

impl FromStr for Asked {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NONE: &str = "none of bulk, web:BYTES, web:BYTES:CLIENTS (10 to 1000000, 1 to 128), drawn, trace:FILE and trace:FILE:FACTOR \
                            (0.001 to 1000000)";
        if text == "bulk" || text == "drawn" {
            return Ok(if text == "bulk" { Self::One(Load::Bulk) } else { Self::Drawn });
        }
        if let Some(trace) = text.strip_prefix("trace:") {
            return of_trace(trace).ok_or(NONE);
        }
        let numbers = text.strip_prefix("web:").ok_or(NONE)?;
        let (bytes, clients) = numbers.split_once(':').unwrap_or((numbers, "8"));
        let file_bytes = bytes.parse().ok().filter(|bytes| BYTES.contains(bytes)).ok_or(NONE)?;
        let clients = clients.parse().ok().filter(|count| (1..=CLIENTS_MAX).contains(count)).ok_or(NONE)?;
        Ok(Self::One(Load::Web { file_bytes, clients }))
    }
}

/// A factor is what follows the last colon, if it is a number.
fn of_trace(text: &str) -> Option<Asked> {
    let factor = text.rsplit_once(':').and_then(|(file, factor)| Some((file, factor.parse::<f64>().ok()?)));
    let (file, factor) = factor.unwrap_or((text, 1.0));
    let factor_milli = (factor * MILLI as f64).round() as u64;
    let is_sane = !file.is_empty() && (1..=FACTOR_MILLI_MAX).contains(&factor_milli);
    is_sane.then(|| Asked::Trace { file: file.into(), factor_milli })
}

/// Longest trace that is read.
const TRACE_MB_MAX: u64 = 64;

impl Asked {
    pub fn offered(&self, seed: u64) -> Result<Offered> {
        match self {
            Self::One(load) => Ok((*load).into()),
            Self::Drawn => Ok(drawn(seed).into()),
            Self::Trace { file, factor_milli } => {
                let text = file::text(file, "a trace", TRACE_MB_MAX)?;
                let shown = || file.display().to_string();
                let trace = Trace::parse(&text).with_context(shown)?;
                Ok(Offered::Trace(Replay::new(trace, *factor_milli).with_context(shown)?))
            }
        }
    }
}

fn drawn(seed: u64) -> Load {
    let mut random = Random::new(seed);
    // Each size as likely as twice or half of it.
    let mut drawn = |low: f64, high: f64| low * (high / low).powf(random.below(1_000_001) as f64 / 1e6);
    let file_bytes = drawn(*BYTES.start() as f64, *BYTES.end() as f64) as u64;
    Load::Web { file_bytes, clients: drawn(1.0, CLIENTS_MAX as f64) as usize }
}

/// Above the table.
pub fn told(load: &Offered) -> String {
    match load {
        Offered::Load(Load::Bulk) => String::new(),
        Offered::Load(Load::Web { file_bytes, clients }) => {
            format!("a web server: {clients} clients, files of {file_bytes} bytes\n")
        }
        Offered::Trace(replay) => format!(
            "a trace: {} connections at once, answers of {} bytes on average; it offers {} answers/s, {:.0} Mbit/s, and begins \
             again every {:.1} ms\n",
            replay.tally.open_at_once,
            replay.mean_answer(),
            replay.answers_per_second(),
            replay.offered_kbps() as f64 / 1000.0,
            replay.length_ps() as f64 / 1e9,
        ),
    }
}

#[cfg(test)]
mod tests;
