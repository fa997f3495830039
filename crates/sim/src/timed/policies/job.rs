//! What a stack under policies does: streams that send, a web server, or a program that is asked as a trace says, on both tiers.

use eft_cores::sample::Traffic;

use super::placement::Placement;
use super::rates::Rates;
use crate::batch::calibrated::{Ablation, profile};
use crate::batch::run::{Outcome, Span, run_for};
use crate::batch::{Profile, Setting};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Cores;
use crate::timed::check::{Load, as_engines, web_as_engines};
use crate::timed::trace::Replay;
use crate::timed::web::clients::REQUEST_BYTES;
use crate::web::calibrated::{Stack, web};
use crate::web::run::{OfGroup, Outcome as Served};
use crate::web::{Group, Web};

const SPAN: Span = Span { warm_up_ms: 10, measured_ms: 20 };
/// Servers of a core have it for some 30 ms each.
const SPAN_OF_QUANTA: Span = Span { warm_up_ms: 20, measured_ms: 90 };

/// Headers of IP and TCP with timestamps, of a segment.
const HEADERS: u64 = 52;
/// What a connection has of segments without payload that the server sends: SYN, FIN, and the first request's acknowledgement.
const EMPTY_OF_CONNECTION: u64 = 3;

/// What programs are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    Load(Load),
    /// Clients of a web server that ask for files of different lengths, all at once.
    Mix(Vec<Group>),
    /// What a real program was asked for.
    Trace(Replay),
}

impl From<Load> for Offered {
    fn from(load: Load) -> Self {
        Self::Load(load)
    }
}

/// The result of tier 2, what each part of the load got, and what a stack's counters say after a second of it.
pub type InBatches = (Outcome, Rates, Traffic);

#[derive(Clone)]
pub enum Job {
    Bulk(Profile),
    Web(Web),
    /// The program is that of a web server whose answers, connections and requests of each are as many as the trace has on average:
    /// tier 2 has these clients. Tier 1 has those of the trace.
    Trace(Web, Replay),
}

impl Job {
    /// `segments`: whether the card cuts large segments into packets; else tcp sends packets.
    pub fn new(calibration: &Calibration, load: &Offered, segments: bool) -> Result<Self, CalibrationError> {
        let mut job = match load {
            Offered::Load(Load::Bulk) => {
                Self::Bulk(as_engines(&profile(calibration, "eft", Ablation::default())?))
            }
            Offered::Load(Load::Web { file_bytes, clients }) => {
                let web = web(calibration, Stack::Eft, *clients, *file_bytes, Ablation::default())?;
                Self::Web(web_as_engines(&web))
            }
            Offered::Mix(groups) => Self::Web(serving(calibration, groups.clone())?),
            Offered::Trace(replay) => {
                let clients = replay.tally.open_at_once;
                let (requests, answer_bytes) = (replay.mean_requests(), replay.mean_answer());
                let web = serving(calibration, vec![Group { clients, requests, answer_bytes }])?;
                Self::Trace(web, replay.clone())
            }
        };
        let profile = match &mut job {
            Self::Bulk(profile) => profile,
            Self::Web(web) | Self::Trace(web, _) => &mut web.stack,
        };
        if !segments {
            profile.segment_bytes = profile.maximum_segment;
        }
        Ok(job)
    }

    /// A placement in tier 2.
    pub fn in_batches(&self, placement: &Placement, cores: &Cores, seed: u64) -> InBatches {
        let setting: Setting = placement.setting(cores);
        let span = if setting.shares_cores() { SPAN_OF_QUANTA } else { SPAN };
        match self {
            Self::Bulk(profile) => {
                let outcome = run_for(profile, &setting, seed, span);
                (outcome, Rates { kbps: vec![outcome.kbps] }, bulk(profile, &outcome))
            }
            Self::Web(web) | Self::Trace(web, _) => {
                let outcome = crate::web::run::run_for(web, &setting, seed, span);
                let traffic = served(web, &outcome, span.measured_ms);
                (
                    outcome.stack,
                    Rates { kbps: outcome.groups.iter().map(|group| group.kbps).collect() },
                    traffic,
                )
            }
        }
    }
}

/// A web server with these clients, whose files have no headers.
fn serving(calibration: &Calibration, groups: Vec<Group>) -> Result<Web, CalibrationError> {
    let clients = groups.iter().map(|group| group.clients).sum();
    let mut web = web(calibration, Stack::Eft, clients, 0, Ablation::default())?;
    web.groups = groups;
    Ok(web_as_engines(&web))
}

fn bulk(profile: &Profile, outcome: &Outcome) -> Traffic {
    let sent_bytes = outcome.kbps * 125;
    let sent_segments = sent_bytes / profile.maximum_segment;
    let received = sent_bytes / outcome.bytes_per_acknowledgement.max(1);
    Traffic {
        sent_bytes,
        sent_segments,
        received_segments: received,
        received_empty_segments: received,
        ip_sent_bytes: sent_bytes + sent_segments * HEADERS,
        ip_received_bytes: received * HEADERS,
        connections_open: profile.streams as u64,
        ..Traffic::default()
    }
}

fn served(web: &Web, outcome: &Served, ms: u64) -> Traffic {
    let (connections, answers) = (outcome.connections * 1000 / ms, outcome.answers_milli / 1000);
    let sent_bytes = outcome.stack.kbps * 125;
    let empty = connections * EMPTY_OF_CONNECTION;
    let segments = |(got, group): (&OfGroup, &Group)| {
        got.answers_milli / 1000 * group.answer_bytes.div_ceil(web.stack.maximum_segment)
    };
    let sent_segments = outcome.groups.iter().zip(&web.groups).map(segments).sum::<u64>() + empty;
    let received = (sent_bytes / outcome.stack.bytes_per_acknowledgement.max(1)).max(answers);
    Traffic {
        sent_bytes,
        sent_segments,
        sent_empty_segments: empty,
        received_bytes: answers * REQUEST_BYTES,
        received_segments: received,
        received_empty_segments: received - answers,
        accepted_connections: connections,
        closed_connections: connections,
        ip_sent_bytes: sent_bytes + sent_segments * HEADERS,
        ip_received_bytes: answers * REQUEST_BYTES + received * HEADERS,
        connections_open: web.stack.streams as u64,
        ..Traffic::default()
    }
}
