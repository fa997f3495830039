//! The screen of `eft top`: readable at 80×24, more with more room.

use eft_machine::Share;
use std::collections::VecDeque;

use eft_cores::sample::Hint;
use eft_cores::throughput::ByteRate;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table, Wrap};
use serde_json::Value;

use super::view::{ComponentRow, CpuRow, View};

/// Samples that the sparklines keep: minutes, at the usual interval.
const REMEMBERED: usize = 300;
/// CPUs that are listed before the rest is summed up.
const CPUS_MAX: usize = 6;

/// What the sparklines show.
#[derive(Default)]
pub struct History {
    throughput: VecDeque<u64>,
    power: VecDeque<u64>,
}

impl History {
    pub fn add(&mut self, view: &View) {
        let push = |to: &mut VecDeque<u64>, value: f64| {
            if to.len() == REMEMBERED {
                to.pop_front();
            }
            to.push_back(value as u64);
        };
        push(&mut self.throughput, (view.received + view.sent).0 * 8.0 / 1000.0);
        if let Some(watts) = view.power {
            push(&mut self.power, watts.0 * 1000.0);
        }
    }
}

pub fn draw(frame: &mut Frame, view: &View, history: &History) {
    let cpus = view.cpus.len().min(CPUS_MAX) as u16 + 1;
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(cpus),
        Constraint::Length(view.components.len() as u16 + 1),
        Constraint::Length(3),
        Constraint::Length(3),
        Constraint::Min(2),
    ])
    .split(frame.area());
    frame.render_widget(Line::styled(title(view), bold()), areas[0]);
    frame.render_widget(cpu_table(&view.cpus, frame.area().width.into()), areas[1]);
    frame.render_widget(component_table(&view.components), areas[2]);
    frame.render_widget(Paragraph::new(traffic(view)), areas[3]);
    frame.render_widget(Paragraph::new(decision(&view.scheduling)).wrap(Wrap { trim: true }), areas[4]);
    sparklines(frame, areas[5], view, history);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn title(view: &View) -> String {
    let s = &view.scheduling["scheduling"];
    let text = |key: &str| s[key].as_str().unwrap_or("-").to_string();
    match s.is_null() {
        true => format!("eft top - {} - no scheduler - q ends", view.stack),
        false => {
            format!("eft top - {} - policy {}, {} - q ends", view.stack, text("policy"), text("objective"))
        }
    }
}

/// Columns before the last one of the CPUs' table, with the gaps.
const BEFORE_RUNS: usize = 4 + 7 + 6 + 8 + 5 + 6 + 6;

/// The names that fit, and how many do not.
fn fitting(names: &[&str], room: usize) -> String {
    let shown = |count: usize| match names.len() - count {
        0 => names.join(" "),
        more => [&names[..count], &[&format!("+{more}")]].concat().join(" "),
    };
    match names.len() {
        0 => "-".into(),
        all => (0..=all).rev().map(shown).find(|text| text.chars().count() <= room).unwrap_or_default(),
    }
}

/// A name, with its end left out if it has no room.
fn shortened(name: &str, room: usize) -> String {
    match name.chars().count() <= room {
        true => name.into(),
        false => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// A column of figures: aligned on the right, header and all.
fn right(text: impl Into<String>) -> Cell<'static> {
    Cell::from(Text::from(text.into()).alignment(Alignment::Right))
}

fn percent(share: Share) -> String {
    format!("{:.0}%", share.percent())
}

fn cpu_table(cpus: &[CpuRow], width: usize) -> Table<'_> {
    let row = |c: &CpuRow| {
        let state = match (c.online, c.parked, c.managed) {
            (_, true, _) => "parked",
            (false, ..) => "offline",
            (_, _, true) => "managed",
            _ => "online",
        };
        let applications = c.applications.then_some("applications");
        let runs: Vec<&str> = c.runs.iter().map(String::as_str).chain(applications).collect();
        let runs = fitting(&runs, width.saturating_sub(BEFORE_RUNS));
        Row::new([
            right(c.cpu.to_string()),
            Cell::from(c.class.clone()),
            right(percent(c.speed)),
            Cell::from(state),
            right(percent(c.busy)),
            right(percent(c.stolen)),
            Cell::from(runs),
        ])
    };
    let widths = [
        Constraint::Length(4),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(5),
        Constraint::Length(6),
        Constraint::Min(20),
    ];
    let [cpu, class, speed, state, busy, stolen, runs] =
        ["CPU", "CLASS", "SPEED", "STATE", "BUSY", "STOLEN", "RUNS"];
    let (class, state, runs) = (class.into(), state.into(), runs.into());
    let header = [right(cpu), class, right(speed), state, right(busy), right(stolen), runs];
    let header = Row::new(header).style(bold());
    let shown = cpus.iter().take(if cpus.len() > CPUS_MAX { CPUS_MAX - 1 } else { CPUS_MAX });
    let mut rows: Vec<Row> = shown.map(row).collect();
    if cpus.len() > CPUS_MAX {
        let rest = &cpus[CPUS_MAX - 1..];
        let busy = Share(rest.iter().map(|c| c.busy).sum::<Share>().0 / rest.len() as f64);
        let more = format!("and {} more", rest.len());
        let none = || Cell::from("");
        rows.push(Row::new([
            right("..."),
            none(),
            none(),
            none(),
            right(percent(busy)),
            none(),
            Cell::from(more),
        ]));
    }
    Table::new(rows, widths).header(header)
}

/// Columns for a component's name: all that 80 have left.
const NAME: usize = 12;

fn component_table(components: &[ComponentRow]) -> Table<'_> {
    let row = |c: &ComponentRow| {
        let place = match (c.cpu, c.dedicated) {
            (None, _) => "any".to_string(),
            (Some(cpu), true) => format!("{cpu} alone"),
            (Some(cpu), false) => cpu.to_string(),
        };
        let queue = match c.queue_capacity {
            0 => "-".into(),
            capacity => format!("{}/{capacity}", c.queue_high),
        };
        // The scheduler does not sample itself.
        let is_seen = c.busy + c.polling + c.waiting + c.ready + c.sleeping > Share::NONE;
        let share = |of: Share| right(if is_seen { percent(of) } else { "-".into() });
        let state = match c.hint {
            Hint::ReceiverBehind if c.state == "running" => "behind",
            Hint::Starved if c.state == "running" => "starved",
            _ => &c.state,
        };
        Row::new([
            Cell::from(shortened(&c.name, NAME)),
            Cell::from(state.to_string()),
            right(c.restarts.to_string()),
            Cell::from(place),
            share(c.busy),
            share(c.polling + c.waiting),
            share(c.ready),
            share(c.sleeping),
            right(if is_seen { format!("{:.0}", c.wake_ups_per_s) } else { "-".into() }),
            right(queue),
        ])
    };
    let widths = [
        Constraint::Length(NAME as u16),
        Constraint::Length(8),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(5),
        Constraint::Length(5),
        Constraint::Length(5),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(9),
    ];
    let header = [
        "COMPONENT".into(),
        "STATE".into(),
        right("DEATHS"),
        "CPU".into(),
        right("BUSY"),
        right("POLL"),
        right("READY"),
        right("SLEEP"),
        right("WAKES/S"),
        right("QUEUE"),
    ];
    Table::new(components.iter().map(row), widths).header(Row::new(header).style(bold()))
}

fn rate(rate: ByteRate) -> String {
    let bits = rate.0 * 8.0;
    match bits {
        b if b >= 1e9 => format!("{:.2} Gb/s", b / 1e9),
        b if b >= 1e6 => format!("{:.1} Mb/s", b / 1e6),
        b => format!("{:.1} kb/s", b / 1e3),
    }
}

fn traffic(view: &View) -> Vec<Line<'static>> {
    let i = &view.indicators;
    let life = match i.mean_lifetime_s {
        0.0 => "-".into(),
        s => format!("{s:.2} s"),
    };
    let lines = [
        format!(
            "in {}   out {}   {} overhead of headers",
            rate(view.received),
            rate(view.sent),
            percent(Share(i.overhead_per_byte)),
        ),
        format!(
            "{:.0} segments/s of {:.0} B   {} of those sent are empty",
            i.segments_per_s,
            i.mean_segment_bytes,
            percent(i.empty_share),
        ),
        format!(
            "{} connections   {:.1}/s   {:.0} segments each   mean life {life}",
            view.connections_open, i.connections_per_s, i.segments_per_connection,
        ),
    ];
    lines.map(Line::from).to_vec()
}

fn decision(scheduling: &Value) -> String {
    let last = &scheduling["last"];
    let trouble = scheduling["trouble"].as_str().map_or(String::new(), |t| format!(" TROUBLE: {t}"));
    match last["reason"].as_str() {
        None if scheduling.is_null() => String::new(),
        None => format!("nothing was decided yet{trouble}"),
        Some(reason) => {
            let seen = last["readings"]["summary"].as_str().map_or(String::new(), |s| format!(" [{s}]"));
            format!(
                "#{} {reason} -> {}{seen}{trouble}",
                last["number"],
                last["outcome"].as_str().unwrap_or("-")
            )
        }
    }
}

fn sparklines(frame: &mut Frame, area: Rect, view: &View, history: &History) {
    let parts = match view.power {
        Some(_) => Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).split(area),
        None => Layout::vertical([Constraint::Percentage(100)]).split(area),
    };
    let kilobits = |value: u64| rate(ByteRate(value as f64 * 1000.0 / 8.0));
    spark(frame, parts[0], "throughput", &history.throughput, kilobits);
    if let Some(area) = parts.get(1) {
        let what = if view.power_is_modelled { "power, modelled" } else { "power" };
        spark(frame, *area, what, &history.power, |value| format!("{:.1} W", value as f64 / 1000.0));
    }
}

fn peak(values: &VecDeque<u64>) -> u64 {
    values.iter().copied().max().unwrap_or(0)
}

/// The latest on the right; as many samples as there are columns.
fn spark(frame: &mut Frame, area: Rect, what: &str, values: &VecDeque<u64>, unit: impl Fn(u64) -> String) {
    let [label, graph] = Layout::horizontal([Constraint::Length(17), Constraint::Min(10)]).areas(area);
    let told = [
        what.to_string(),
        format!("now {}", unit(values.back().copied().unwrap_or(0))),
        format!("top {}", unit(peak(values))),
    ];
    frame.render_widget(Paragraph::new(told.map(Line::from).to_vec()), label);
    let room = graph.width as usize;
    let shown: Vec<u64> = values.iter().copied().skip(values.len().saturating_sub(room)).collect();
    frame.render_widget(Sparkline::default().data(shown), graph);
}

#[cfg(test)]
mod tests;
