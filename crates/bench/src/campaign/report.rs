//! The campaign's tables, aims and files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use eft_linux::inject::KINDS;
use serde_json::{Value, json};

use super::blame::Blame;
use super::checksums::Checksums;
use super::judge::{Outcome, Trial};
use super::picture;
use crate::figure::{Aim, Figure};
use eft_text::print_table;

/// The quick campaign takes less than this, as an aim.
const QUICK: f64 = 10.0;

/// `quick`: how long the whole quick campaign took. `remarks` stand below the tables.
pub fn print(
    trials: &[Trial],
    quick: Option<Duration>,
    remarks: Vec<String>,
    folder: Option<&Path>,
    as_json: bool,
) -> Result<()> {
    if let Some(folder) = folder {
        write(trials, folder)?;
    }
    let rows = rows(trials);
    let totals = format!(
        "{} faults, {} of them effective",
        trials.iter().filter(|t| t.struck).count(),
        trials.iter().filter(|t| t.is_effective()).count(),
    );
    let mut notes = vec![totals];
    notes.extend(payloads(trials));
    notes.extend(pauses(trials));
    notes.extend(blames(trials));
    notes.extend(remarks);
    if !as_json {
        let heading = [
            "COMPONENT",
            "KIND",
            "FAULTS",
            "EFFECTIVE",
            "TRANSPARENT",
            "LOST",
            "RESTART",
            "DAMAGED",
            "OTHERS DIED",
        ];
        print_table(&heading, &rows);
    }
    if as_json {
        let table = |row: &Vec<String>| -> Value { json!(row) };
        notes.push(json!({ "rows": rows.iter().map(table).collect::<Vec<_>>() }).to_string());
    }
    let mut figures = figures(trials);
    figures.extend(quick.map(|took| {
        let minutes = took.as_secs_f64() / 60.0;
        Figure::new("the quick campaign", "min", vec![minutes]).aim(Aim::AtMost(QUICK))
    }));
    crate::report::print("campaign", &figures, &notes, as_json)
}

/// The components that were struck, in the order in which they first were.
fn roles(trials: &[Trial]) -> Vec<&str> {
    let mut roles: Vec<&str> = Vec::new();
    for trial in trials {
        if !roles.contains(&trial.role()) {
            roles.push(trial.role());
        }
    }
    roles
}

/// What came of flips in pools and rings, by who verifies.
fn payloads(trials: &[Trial]) -> Option<String> {
    let of = |(checksums, name): (Checksums, &str)| {
        let all = || trials.iter().filter(move |t| t.struck && t.hits_payload() && t.checksums == checksums);
        let (flips, hit) = (all().count(), all().filter(|t| t.damaged > 0).count());
        let bytes: u64 = all().map(|t| t.damaged).sum();
        let found = all().filter(|t| t.found_wrong > 0).count();
        (flips > 0).then(|| {
            format!("{hit} of {flips} damaged {bytes} bytes {name}, {found} were found by a checksum")
        })
    };
    let both = [
        (Checksums::Device, "with the device's checksums"),
        (Checksums::Software, "with the stack's own (plain-tap)"),
    ];
    let all: Vec<String> = both.into_iter().filter_map(of).collect();
    (!all.is_empty())
        .then(|| format!("flips in pools and rings, apart: {}{}", all.join("; "), after_damage(trials)))
}

/// What programs did that got damaged bytes.
fn after_damage(trials: &[Trial]) -> String {
    let hit = || trials.iter().filter(|t| t.damages_payload());
    let (ends, waits) = (hit().map(Trial::lost_total).sum::<u64>(), hit().filter(|t| t.helped > 0).count());
    if ends == 0 && waits == 0 {
        return String::new();
    }
    format!("; {ends} connections ended with such bytes, and in {waits} faults a program went on waiting")
}

fn rows(trials: &[Trial]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for component in roles(trials) {
        let of = |checksums, own: &'static str| {
            KINDS.iter().map(move |(name, kind, _)| (name, *kind, checksums, own))
        };
        for (name, kind, checksums, own) in
            of(Checksums::Device, "").chain(of(Checksums::Software, ", own checksums"))
        {
            let is_of = |t: &&Trial| t.role() == component && t.kind == kind && t.checksums == checksums;
            let all: Vec<&Trial> = trials.iter().filter(is_of).filter(|t| t.struck).collect();
            if all.is_empty() {
                continue;
            }
            let count = |f: &dyn Fn(&Trial) -> bool| all.iter().filter(|t| f(t)).count().to_string();
            let with = |outcome| count(&|t: &Trial| t.outcome == outcome);
            rows.push(vec![
                component.to_string(),
                format!("{name}{own}"),
                all.len().to_string(),
                count(&Trial::is_effective),
                with(Outcome::Transparent),
                with(Outcome::Lost),
                with(Outcome::RestartNeeded),
                with(Outcome::Damaged),
                all.iter().map(|t| t.others_died).sum::<u64>().to_string(),
            ]);
        }
    }
    rows
}

/// Percent of the connections that were open at the faults and lived on.
fn living(trials: &[&Trial], spared: u64) -> Vec<f64> {
    let open: u64 = trials.iter().map(|t| t.established).sum();
    let lost: u64 = trials.iter().map(|t| t.lost_by_the_stack().saturating_sub(spared)).sum();
    if open == 0 { Vec::new() } else { vec![100.0 * (1.0 - lost as f64 / open as f64).max(0.0)] }
}

/// Crashes after which bulk data may pause for less than the aim; a hang is found only after a while.
fn is_crash(trial: &&Trial) -> bool {
    trial.struck && trial.kind.is_deadly() && trial.kind.name() != "loop"
}

/// How long bulk data paused at crashes of each component: the median, and the longest.
fn pauses(trials: &[Trial]) -> Option<String> {
    let crashes: Vec<&Trial> = trials.iter().filter(is_crash).collect();
    let of = |component: &&str| {
        let mut all: Vec<f64> = crashes.iter().filter(|t| t.role() == *component).map(|t| t.pause).collect();
        all.sort_by(f64::total_cmp);
        let longest = all.last().copied().unwrap_or_default();
        format!("{component} {:.1} and {longest:.1}", all[all.len() / 2])
    };
    let struck: Vec<&str> =
        roles(trials).into_iter().filter(|role| crashes.iter().any(|t| t.role() == *role)).collect();
    let all: Vec<String> = struck.iter().map(of).collect();
    (!all.is_empty())
        .then(|| format!("pauses of bulk data at a crash, median and longest, ms: {}", all.join(", ")))
}

/// What became of failures, if there are any.
fn blames(trials: &[Trial]) -> Option<String> {
    let all = || trials.iter().filter_map(|t| t.blame);
    let count = |f: fn(&Blame) -> bool| all().filter(f).count();
    (all().count() > 0).then(|| {
        format!(
            "{} failures, {} of them while an input ran that the server names; inputs blamed: {}; successors recorded: {}",
            all().count(),
            count(|b| b.ran),
            count(|b| b.named),
            count(|b| b.recorded == Some(true)),
        )
    })
}

/// Each failure must be as useful to who looks for its cause as it can be.
fn failures(trials: &[Trial]) -> Vec<Figure> {
    let all: Vec<Blame> = trials.iter().filter(|t| t.struck).filter_map(|t| t.blame).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let figure = |what, f: fn(&Blame) -> bool| {
        let count = all.iter().filter(|b| f(b)).count() as f64;
        Figure::new(what, "failures", vec![count]).aim(Aim::AtMost(0.0))
    };
    vec![
        figure("failures that blame another input", Blame::is_wrong),
        figure("failures with no recorded successor", |b| b.recorded == Some(false)),
    ]
}

fn figures(trials: &[Trial]) -> Vec<Figure> {
    let struck = || trials.iter().filter(|t| t.struck);
    if struck().count() == 0 {
        return Vec::new();
    }
    let sum = |f: &dyn Fn(&Trial) -> u64| vec![struck().map(f).sum::<u64>() as f64];
    let mut figures = vec![
        Figure::new("faults that needed a restart", "faults", sum(&|t| t.needed_restart() as u64))
            .aim(Aim::AtMost(0.0)),
        Figure::new("deaths of other components", "deaths", sum(&|t| t.others_died)).aim(Aim::AtMost(0.0)),
        Figure::new("damaged bytes", "bytes", sum(&|t| if t.hits_payload() { 0 } else { t.damaged }))
            .aim(Aim::AtMost(0.0)),
    ];
    let mut add = |what: &str, trials: Vec<&Trial>, spared, least| {
        let samples = living(&trials, spared);
        if !samples.is_empty() {
            figures.push(Figure::new(what, "%", samples).aim(Aim::AtLeast(least)));
        }
    };
    let of_tcp = |t: &&Trial| t.role() == "tcp";
    add("connections that live on, not of tcp", struck().filter(|t| !of_tcp(t)).collect(), 0, 100.0);
    add(
        "connections that live on, of tcp",
        struck().filter(|t| of_tcp(t) && !t.hits_own_state()).collect(),
        0,
        99.9,
    );
    add(
        "other connections, flips in tcp's state",
        struck().filter(|t| of_tcp(t) && t.hits_own_state()).collect(),
        1,
        99.0,
    );
    let deadly = || trials.iter().filter(is_crash);
    if deadly().count() > 0 {
        let pauses = deadly().map(|t| t.pause).collect();
        let holes = deadly().map(|t| t.holes as f64).sum();
        figures.push(
            Figure::new(
                "segments that came to tcp with a hole before them at crashes",
                "segments",
                vec![holes],
            )
            .aim(Aim::AtMost(0.0)),
        );
        figures.push(Figure::new("pause of bulk data at a crash", "ms", pauses).aim(Aim::AtMost(20.0)));
        let (all, late) = deadly().fold((0, 0), |sum, t| (sum.0 + t.answers.0, sum.1 + t.answers.1));
        let share = 100.0 * (1.0 - late as f64 / (all as f64).max(1.0));
        figures.push(
            Figure::new("answers within 50 ms around a crash", "%", vec![share]).aim(Aim::AtLeast(99.0)),
        );
    }
    figures.extend(failures(trials));
    figures
}

fn write(trials: &[Trial], folder: &Path) -> Result<()> {
    let all: Vec<Value> = trials.iter().map(Trial::to_json).collect();
    let mut files = vec![("faults.json".to_string(), json!(all).to_string())];
    for component in roles(trials) {
        for kind in ["kill", "loop"] {
            let windows: Vec<_> = trials
                .iter()
                .filter(|t| t.role() == component && t.kind.name() == kind && t.struck)
                .map(|t| t.window.as_slice())
                .collect();
            if !windows.is_empty() {
                let title = format!("{component}: {kind}, {} times", windows.len());
                files.push((format!("{component}-{kind}.svg"), picture::draw(&title, &windows)));
            }
        }
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
