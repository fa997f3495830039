//! `eft top`: a live view of a stack, on a terminal, as JSON, or for Prometheus.

mod draw;
pub mod metrics;
mod view;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use view::{Source, View};

#[derive(clap::Args, Debug)]
pub struct TopArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// One line of JSON each interval, instead of a screen
    #[arg(long)]
    json: bool,
    /// Serve the same to Prometheus at this address, instead of a screen
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "json")]
    metrics: Option<SocketAddr>,
    /// Seconds between two samples
    #[arg(long, default_value_t = 1.0)]
    interval: f64,
    /// End after this many samples
    #[arg(long)]
    count: Option<u64>,
}

pub fn run(arguments: &TopArguments) -> Result<()> {
    if !(0.05..=3600.0).contains(&arguments.interval) {
        bail!("--interval {}: from 0.05 to 3600 seconds", arguments.interval);
    }
    let interval = Duration::from_secs_f64(arguments.interval);
    let mut source = Source::open(&arguments.stack.name)?;
    if let Some(address) = arguments.metrics {
        return metrics::serve(source, address, arguments.count);
    }
    if arguments.json {
        return stream(&mut source, interval, arguments.count);
    }
    if !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal: use --json");
    }
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let outcome = screen(&mut terminal, &mut source, interval, arguments.count);
    ratatui::restore();
    outcome
}

fn stream(source: &mut Source, interval: Duration, count: Option<u64>) -> Result<()> {
    let mut views = 0;
    while count.is_none_or(|count| views < count) {
        std::thread::sleep(interval);
        let line = serde_json::to_string(&source.view()?)?;
        let mut out = std::io::stdout();
        // The reader has closed the pipe.
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return Ok(());
        }
        views += 1;
    }
    Ok(())
}

fn screen(
    terminal: &mut ratatui::DefaultTerminal,
    source: &mut Source,
    interval: Duration,
    count: Option<u64>,
) -> Result<()> {
    let mut history = draw::History::default();
    let mut views = 0;
    let mut view: View = source.view()?;
    loop {
        history.add(&view);
        terminal.draw(|frame| draw::draw(frame, &view, &history))?;
        views += 1;
        if count.is_some_and(|count| views >= count) || wants_to_leave(interval)? {
            return Ok(());
        }
        view = source.view()?;
    }
}

/// Waits for the next sample, or a key that ends the view.
fn wants_to_leave(interval: Duration) -> Result<bool> {
    let until = Instant::now() + interval;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        if !event::poll(left)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) => return Ok(true),
            Event::Key(key)
                if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) =>
            {
                return Ok(true);
            }
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}
