//! `eft vm top`, and how what is known is shown: table, JSON, Prometheus.

use anyhow::{Result, anyhow, bail};
use eft_machine::Share;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use eft_host::guests::session::STATE_DIR;
use eft_host::guests::session::view::{VcpuView, View};
use eft_host::sensors::Tree;
use eft_host::sensors::tasks::{self, TaskId};

use super::Metrics;
use crate::commands::cpu;
use crate::commands::top::metrics::{Metric, listen, serve_at};

#[derive(Args)]
pub struct TopArguments {
    /// Where `eft vm run` keeps its status
    #[arg(long, value_name = "DIR", default_value = STATE_DIR)]
    state_dir: PathBuf,
    #[arg(long)]
    json: bool,
    /// How often to show it, once a second; 0: until interrupted. Default: 0 on a terminal, else 1
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    metrics: Metrics,
}

/// A status that is older than this was left behind.
const STALE: Duration = Duration::from_secs(10);

pub fn run(arguments: &TopArguments) -> Result<()> {
    let path = arguments.state_dir.join("status.json");
    if let Some(address) = arguments.metrics.metrics {
        // A wrong directory is told now; while 'eft vm run' is started again later, scrapers are.
        read(&path)?;
        serve_at(&listen(address)?, None, || Ok(page(&read(&path)?)));
        return Ok(());
    }
    let is_live = std::io::stdout().is_terminal() && !arguments.json;
    let count = arguments.count.unwrap_or(if is_live { 0 } else { 1 });
    let mut shown = 0;
    loop {
        let view = read(&path)?;
        if arguments.json {
            print_json(&view)?
        } else if is_live && count != 1 {
            let rows = ratatui::crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows));
            // From the upper left corner, on an empty screen.
            cpu::print(&format!("\x1b[H\x1b[J{}", fitted(&view, rows)))?
        } else {
            print(&view)?
        }
        shown += 1;
        if shown == count {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn read(path: &Path) -> Result<View> {
    let is_fresh = std::fs::metadata(path)
        .and_then(|data| data.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age < STALE));
    if !is_fresh {
        bail!("no 'eft vm run' publishes in {}", path.parent().unwrap_or(path).display());
    }
    let text = std::fs::read(path).map_err(|error| anyhow!("{} cannot be read ({error})", path.display()))?;
    let view: View =
        serde_json::from_slice(&text).map_err(|error| anyhow!("{} is damaged ({error})", path.display()))?;
    let ended = |by: &TaskId| tasks::leader(&Tree::live(), by.tid).is_none_or(|task| task.id != *by);
    match view.by.filter(ended) {
        Some(by) => bail!(
            "the 'eft vm run' of process {} has ended without putting its threads back; 'eft vm restore' does",
            by.tid
        ),
        None => Ok(view),
    }
}

pub fn print_json(view: &View) -> Result<()> {
    cpu::print(&(serde_json::to_string_pretty(view)? + "\n"))
}

pub fn print(view: &View) -> Result<()> {
    cpu::print(&table(view, true))
}

/// The part of the table that fits into `rows`, the last of which is the cursor's: without vCPUs if they do not fit.
fn fitted(view: &View, rows: usize) -> String {
    let room = rows.saturating_sub(1).max(1);
    let all = table(view, true);
    if all.lines().count() <= room {
        return all;
    }
    let guests = table(view, false);
    let first = guests.lines().take(room - 1).chain(["vCPUs do not fit this window; --count 1 shows all"]);
    first.map(|line| format!("{line}\n")).collect()
}

/// Fits 80 columns, whatever names and numbers there are.
fn table(view: &View, with_vcpus: bool) -> String {
    let mut text = format!("policy {}", view.policy);
    if view.even > Share::NONE && view.even < Share::ALL {
        text += &format!(" ({:.0}% of the fast time evenly)", view.even.percent());
    }
    text.push('\n');
    for class in &view.classes {
        text +=
            &format!("  {:6} {:.2} of the fastest, CPU {}\n", cut(&class.name, 6), class.speed, class.cpus);
    }
    if view.vcpus.is_empty() {
        return text + "no guests\n";
    }
    let head =
        ["GUEST", "TID", "ON", "IPC", "UTIL", "WAIT", "SCORE", "DEALT", "FAST", "MOVES", "CACHE", "SLOWER"];
    text += &line(head.map(String::from));
    for of_guest in view.vcpus.chunk_by(|a, b| a.guest == b.guest) {
        text += &line(guest_row(of_guest));
        of_guest.iter().filter(|_| with_vcpus).for_each(|vcpu| text += &line(row(vcpu)));
    }
    text
}

/// Cells with their widths, 80 columns in all. Of the second and third column the text begins, of numbers it ends together.
fn line(cells: [String; 12]) -> String {
    const WIDTHS: [usize; 12] = [13, 8, 7, 4, 6, 6, 6, 6, 5, 6, 6, 7];
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        match column {
            0..3 => text += &format!("{:width$}", cut(cell, width - 1)),
            _ => text += &format!("{cell:>width$}"),
        }
    }
    text.trim_end().to_string() + "\n"
}

/// At most `width` characters, none of which does anything to a terminal.
fn cut(text: &str, width: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { '?' } else { c });
    match text.chars().count() > width {
        true => plain.take(width - 1).chain(['~']).collect(),
        false => plain.collect(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// In at most five characters.
fn count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{}k", number / 1000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

/// A guest's vCPUs together: what they use and get in all, the mean score, the largest slowdown.
fn guest_row(vcpus: &[VcpuView]) -> [String; 12] {
    let sum = |of: fn(&VcpuView) -> f64| vcpus.iter().map(of).sum::<f64>();
    let ran = sum(|v| v.ran_s.iter().sum());
    let fast = sum(|v| v.ran_s.first().copied().unwrap_or(0.0));
    let slower = vcpus.iter().map(|v| v.slowdown.0).fold(f64::NEG_INFINITY, f64::max);
    [
        vcpus[0].guest.clone(),
        format!("{} vCPU", vcpus.len()),
        if vcpus[0].is_paused { "paused".into() } else { String::new() },
        String::new(),
        percent(sum(|v| v.utilisation.0)),
        percent(sum(|v| v.waiting.0)),
        format!("{:.2}", sum(|v| v.score) / vcpus.len() as f64),
        percent(sum(|v| v.dealt.first().copied().unwrap_or(0.0))),
        percent(if ran > 0.0 { fast / ran } else { 0.0 }),
        count(vcpus.iter().map(|v| v.moves).sum()),
        count(vcpus.iter().map(|v| v.cache_moves).sum()),
        percent(slower),
    ]
}

fn row(vcpu: &VcpuView) -> [String; 12] {
    let on = match (&vcpu.class, vcpu.is_left_alone, vcpu.is_active) {
        (_, true, _) => "others".into(),
        (_, _, false) => "asleep".into(),
        (Some(class), ..) => class.clone(),
        (None, ..) => "-".into(),
    };
    [
        format!("  {}", vcpu.role),
        vcpu.tid.to_string(),
        on,
        vcpu.ipc.map_or("-".into(), |ipc| format!("{ipc:.1}")),
        percent(vcpu.utilisation.0),
        percent(vcpu.waiting.0),
        format!("{:.2}", vcpu.score),
        percent(vcpu.dealt.first().copied().unwrap_or(0.0)),
        percent(vcpu.fast_share.0),
        count(vcpu.moves),
        count(vcpu.cache_moves),
        percent(vcpu.slowdown.0),
    ]
}

/// What a scrape is answered with.
pub fn page(view: &View) -> String {
    let mut out = String::new();
    let gauges: [(&'static str, &str, fn(&VcpuView) -> Option<f64>); 7] = [
        ("eft_vcpu_ipc", "Instructions a cycle, as the score uses it.", |v| v.ipc),
        ("eft_vcpu_utilisation_ratio", "Part of the last window in which it ran.", |v| Some(v.utilisation.0)),
        ("eft_vcpu_waiting_ratio", "Part of the last window in which it waited for a core.", |v| {
            Some(v.waiting.0)
        }),
        ("eft_vcpu_score", "Fast core efficiency.", |v| Some(v.score)),
        ("eft_vcpu_fast_ratio", "Part of its run time on the fastest cores.", |v| Some(v.fast_share.0)),
        ("eft_vcpu_fast_dealt_cores", "Fast core time dealt to it.", |v| v.dealt.first().copied()),
        ("eft_vcpu_slowdown_ratio", "Less done than under amp-fair, by prediction.", |v| Some(v.slowdown.0)),
    ];
    for (name, help, of) in gauges {
        let mut metric = Metric::new(&mut out, name, "gauge", help);
        for (vcpu, value) in view.vcpus.iter().filter_map(|vcpu| Some((vcpu, of(vcpu)?))) {
            metric
                .put(&[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &vcpu.tid.to_string())], value);
        }
    }
    let counters: [(&'static str, &str, fn(&VcpuView) -> f64); 2] = [
        ("eft_vcpu_moves_total", "Moves to another group of cores.", |v| v.moves as f64),
        ("eft_vcpu_cache_moves_total", "Moves that left a last-level cache.", |v| v.cache_moves as f64),
    ];
    for (name, help, of) in counters {
        let mut metric = Metric::new(&mut out, name, "counter", help);
        for vcpu in &view.vcpus {
            metric.put(
                &[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &vcpu.tid.to_string())],
                of(vcpu),
            );
        }
    }
    let mut time = Metric::new(&mut out, "eft_vcpu_seconds_total", "counter", "Run time by core class.");
    for vcpu in &view.vcpus {
        for (class, seconds) in view.classes.iter().zip(&vcpu.ran_s) {
            let tid = vcpu.tid.to_string();
            time.put(
                &[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &tid), ("class", &class.name)],
                *seconds,
            );
        }
    }
    out
}

#[cfg(test)]
mod tests;
