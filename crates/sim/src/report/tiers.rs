//! `eft-sim tiers`: the real engines and the batch model held against each other at random points.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use eft_sim::batch::run::Outcome;
use eft_sim::batch::servers::Server;
use eft_sim::calibration::{Calibration, CalibrationError};
use eft_sim::timed::check::{BUSY_PPM, Load, Point, RATE_PERCENT, orders, point, web_point};
use eft_sim::{multiserver, slower_is_faster, thesis};

use super::drawn::draws;
use super::machine::MachineArguments;
use super::print;

/// A paper whose experiments both tiers can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiments {
    Multiserver,
    SlowerIsFaster,
    Thesis,
}

impl Experiments {
    /// Runs both tiers at the point of a seed.
    fn point(self, calibration: &Calibration, system: &str, seed: u64) -> Result<Point, CalibrationError> {
        Ok(match self {
            Self::Multiserver => web_point(&multiserver::tiers::case(calibration, system, seed)?, seed),
            Self::SlowerIsFaster => point(slower_is_faster::tiers::case(calibration, system, seed)?, seed),
            Self::Thesis => point(thesis::tiers::case(calibration, system, seed)?, seed),
        })
    }
}

#[derive(Args)]
pub struct TiersArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// The paper whose machines and configurations the points are of
    #[arg(long, value_enum, default_value_t = Experiments::SlowerIsFaster)]
    paper: Experiments,
    /// Points of each column: a setting of the cores, and a draw of what was assumed
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    points: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=128))]
    threads: u8,
    #[arg(long)]
    json: bool,
}

const SYSTEMS: [&str; 2] = ["newtos", "eft"];

pub fn run(arguments: &TiersArguments) -> Result<()> {
    let calibration = arguments.machine.e5520()?;
    let many = Many { count: arguments.points, seed: arguments.seed, threads: arguments.threads };
    let all = columns(arguments.paper, &calibration, many)?;
    if arguments.json {
        let of =
            |(system, points): &(&str, Vec<Point>)| (system.to_string(), points.iter().map(json).collect());
        let all: serde_json::Map<String, serde_json::Value> = all.iter().map(of).collect();
        print(&format!("{}\n", serde_json::Value::Object(all)))?;
    } else {
        for (system, points) in &all {
            print(&table(system, points))?;
        }
    }
    let lines: Vec<(String, bool)> = all.iter().map(|(system, points)| summary(system, points)).collect();
    if !arguments.json {
        lines.iter().try_for_each(|(line, _)| print(&format!("{line}\n")))?;
    }
    check(&lines)
}

/// How many points, from which seed on, and how many threads compute them.
#[derive(Clone, Copy)]
pub struct Many {
    pub count: u64,
    pub seed: u64,
    pub threads: u8,
}

/// Each column's line, and whether the tiers agree; nothing for no points.
pub fn lines(paper: Experiments, calibration: &Calibration, many: Many) -> Result<Vec<(String, bool)>> {
    if many.count == 0 {
        return Ok(Vec::new());
    }
    let all = columns(paper, calibration, many)?;
    Ok(all.iter().map(|(system, points)| summary(system, points)).collect())
}

/// Fails unless they agree.
pub fn check(lines: &[(String, bool)]) -> Result<()> {
    if lines.iter().all(|(_, agree)| *agree) { Ok(()) } else { bail!("the tiers do not agree") }
}

/// Each column's points, which are computed side by side; the same for any number of threads.
fn columns(
    paper: Experiments,
    calibration: &Calibration,
    Many { count, seed, threads }: Many,
) -> Result<Vec<(&'static str, Vec<Point>)>> {
    let column = |number: u64| SYSTEMS[(number / count) as usize];
    let mut points = draws(SYSTEMS.len() as u64 * count, threads, |number| {
        Ok(paper.point(calibration, column(number), seed.wrapping_add(number % count))?)
    })?;
    let mut next = || points.drain(..count as usize).collect();
    Ok(SYSTEMS.map(|system| (system, next())).into())
}

/// One line, and whether they agree everywhere.
fn summary(system: &str, points: &[Point]) -> (String, bool) {
    let agree = points.iter().filter(|point| point.agrees()).count();
    let rates = points.iter().filter(|point| point.rate_off().abs() <= RATE_PERCENT as f64).count();
    let (apart, differ) = orders(points, RATE_PERCENT);
    let worst = points.iter().map(|point| point.rate_off().abs()).fold(0.0, f64::max);
    let line = format!(
        "tiers, {system}: at {agree} of {} points they agree ({rates} in the rate within {RATE_PERCENT}%, at worst {worst:.0}%; utilisation within {} points); of {apart} pairs further apart {differ} are ordered differently",
        points.len(),
        BUSY_PPM / 10_000,
    );
    (line, agree == points.len() && differ == 0)
}

/// The servers that do something, in the order of the tables.
fn servers(point: &Point) -> impl Iterator<Item = Server> {
    let all = [Server::Front, Server::Tcp, Server::Filter, Server::Ip, Server::Driver];
    let is_filtered = point.is_filtered;
    all.into_iter().filter(move |server| is_filtered || *server != Server::Filter)
}

/// Of a web server clients and bytes of their files.
fn load(load: Load) -> String {
    match load {
        Load::Bulk => "bulk".into(),
        Load::Web { file_bytes, clients } => format!("{clients}x{file_bytes}"),
    }
}

fn busy(point: &Point, outcome: &Outcome) -> String {
    let of = |server: Server| format!("{:.0}", outcome.busy_ppm[server as usize] as f64 / 10_000.0);
    servers(point).map(of).collect::<Vec<_>>().join(" ")
}

/// The servers' clocks.
fn clocks(point: &Point) -> String {
    let seat = |server: Server| point.setting.seats[server as usize];
    let mhz = servers(point).map(|server| (seat(server).clock.effective_khz() / 1000).to_string());
    mhz.collect::<Vec<_>>().join("x") + together(point)
}

/// How servers share cores, if they do.
fn together(point: &Point) -> &'static str {
    match point.setting.shares_cores() {
        true => " shared",
        false if point.setting.seats.iter().any(|seat| seat.thread > 0) => " threads",
        false => "",
    }
}

fn table(system: &str, points: &[Point]) -> String {
    let head = [
        "SEED", "MACHINE", "LOAD", "MHZ", "ENGINES", "BATCHES", "OFF", "BUSY", "BUSY", "SEGMENT", "SEGMENT",
        "",
    ];
    let mut rows: Vec<Vec<String>> = vec![head.map(String::from).to_vec()];
    for p in points {
        let mbps = |outcome: &Outcome| format!("{} Mb/s", outcome.kbps / 1000);
        rows.push(vec![
            p.seed.to_string(),
            p.machine.into(),
            load(p.load),
            clocks(p),
            mbps(&p.engines),
            mbps(&p.batches),
            format!("{:+.0}%", p.rate_off()),
            busy(p, &p.engines),
            busy(p, &p.batches),
            p.engines.bytes_per_segment.to_string(),
            p.batches.bytes_per_segment.to_string(),
            if p.agrees() { "agree" } else { "differ" }.into(),
        ]);
    }
    format!(
        "{system}: front server, tcp, the filter if there is one, ip, driver; engines, then batches\n{}",
        eft_text::columns(&rows)
    )
}

fn json(point: &Point) -> serde_json::Value {
    let of = |outcome: &Outcome| {
        serde_json::json!({ "kbps": outcome.kbps, "busy_ppm": outcome.busy_ppm, "sleeps_per_ms": outcome.sleeps_per_ms,
                            "messages_per_ms": outcome.messages_per_ms, "batch_milli": outcome.batch_milli,
                            "bytes_per_segment": outcome.bytes_per_segment,
                            "bytes_per_acknowledgement": outcome.bytes_per_acknowledgement })
    };
    serde_json::json!({ "seed": point.seed, "machine": point.machine, "load": load(point.load), "mhz": clocks(point),
                        "engines": of(&point.engines), "batches": of(&point.batches), "agree": point.agrees() })
}
