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
use eft_sim::web::Group;

use crate::report::file;

/// Of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    One(Load),
    /// A web server with clients and files from the seed.
    Drawn,
    /// Several groups of clients of a web server from the seed, all at once.
    Mix,
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
        const NONE: &str = "none of bulk, web:BYTES, web:BYTES:CLIENTS (10 to 1000000, 1 to 128), drawn, mix, trace:FILE and trace:FILE:FACTOR \
                            (0.001 to 1000000)";
        match text {
            "bulk" => return Ok(Self::One(Load::Bulk)),
            "drawn" => return Ok(Self::Drawn),
            "mix" => return Ok(Self::Mix),
            _ => {}
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
            Self::Mix => Ok(Offered::Mix(mix(seed))),
            Self::Trace { file, factor_milli } => {
                let text = file::text(file, "a trace", TRACE_MB_MAX)?;
                let shown = || file.display().to_string();
                let trace = Trace::parse(&text).with_context(shown)?;
                Ok(Offered::Trace(Replay::new(trace, *factor_milli).with_context(shown)?))
            }
        }
    }
}

/// Each number as likely as twice or half of it.
fn about_any(random: &mut Random, low: u64, high: u64) -> u64 {
    let (low, high) = (low as f64, high as f64);
    (low * (high / low).powf(random.below(1_000_001) as f64 / 1e6)) as u64
}

fn drawn(seed: u64) -> Load {
    let mut random = Random::new(seed);
    let file_bytes = about_any(&mut random, *BYTES.start(), *BYTES.end());
    Load::Web { file_bytes, clients: about_any(&mut random, 1, CLIENTS_MAX as u64) as usize }
}

/// Groups of a mix; answers of up to 10 MB, which are as much as a stream without end.
const GROUPS: RangeInclusive<u64> = 2..=4;
const ANSWER_BYTES: RangeInclusive<u64> = 100..=10_000_000;
const REQUESTS_MAX: u64 = 1000;

fn mix(seed: u64) -> Vec<Group> {
    let mut random = Random::new(seed);
    let groups = GROUPS.start() + random.below(GROUPS.end() - GROUPS.start() + 1);
    let group = |_| Group {
        answer_bytes: about_any(&mut random, *ANSWER_BYTES.start(), *ANSWER_BYTES.end()),
        clients: about_any(&mut random, 1, CLIENTS_MAX as u64 / groups) as usize,
        requests: about_any(&mut random, 1, REQUESTS_MAX),
    };
    (0..groups).map(group).collect()
}

/// Above the table.
pub fn told(load: &Offered) -> String {
    match load {
        Offered::Load(Load::Bulk) => String::new(),
        Offered::Load(Load::Web { file_bytes, clients }) => {
            format!("a web server: {clients} clients, files of {file_bytes} bytes\n")
        }
        Offered::Mix(groups) => {
            let of = |group: &Group| {
                let Group { clients, answer_bytes, requests } = group;
                format!(
                    "  {clients} clients, answers of {answer_bytes} bytes, {requests} requests of a connection\n"
                )
            };
            format!(
                "a web server with clients of {} kinds at once:\n{}",
                groups.len(),
                groups.iter().map(of).collect::<String>()
            )
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
