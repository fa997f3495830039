//! `eft vm run`: schedules until it is ended.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use eft_host::actuators::holder::EndSignals;
use eft_host::clock;
use eft_host::guests::session::Session;
use eft_host::guests::session::view::View;
use eft_host::sensors::Tree;

use super::{Common, Deciding, Metrics, settings, show};
use crate::commands::top::metrics::{listen, serve_at};

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    deciding: Deciding,
    #[command(flatten)]
    metrics: Metrics,
    /// End after this many seconds
    #[arg(long)]
    seconds: Option<f64>,
}

/// From one status to the next.
const PUBLISH: Duration = Duration::from_secs(1);

pub fn run(arguments: &RunArguments) -> Result<()> {
    let limit = arguments.seconds.map(|value| super::seconds(value, "--seconds")).transpose()?;
    let settings = settings(&arguments.common, &arguments.deciding)?;
    let status = arguments.common.state_dir.join("status.json");
    let scrapes = arguments.metrics.metrics.map(listen).transpose()?;
    // Before the first change, so that no signal ends this process before everything is restored.
    let signals = EndSignals::block()?;
    let mut session = Session::open(&Tree::live(), settings)?;
    let shared = Arc::new(Mutex::new(session.view()));
    if let Some(listener) = scrapes {
        let shared = shared.clone();
        let page = move || Ok(show::page(&shared.lock().unwrap_or_else(|e| e.into_inner())));
        std::thread::spawn(move || serve_at(&listener, None, page));
    }
    crate::commands::cpu::print("ready\n")?;
    let end = limit.map(|limit| clock::now() + limit);
    let mut ended = false;
    while !ended && end.is_none_or(|end| clock::now() < end) {
        session.take_notes().iter().for_each(|line| eprintln!("eft: {line}"));
        let until = clock::now() + PUBLISH;
        session.run(end.map_or(until, |end| end.min(until)), || {
            ended = signals.arrived();
            ended
        });
        let view = session.view();
        publish(&status, &view);
        *shared.lock().unwrap_or_else(|e| e.into_inner()) = view;
    }
    let _ = std::fs::remove_file(&status);
    let view = session.view();
    session.restore().iter().for_each(|note| eprintln!("eft: {note}"));
    if arguments.common.json { show::print_json(&view) } else { show::print(&view) }
}

/// Whole or not at all. A status that cannot be written is missed by `eft vm top` alone.
fn publish(path: &Path, view: &View) {
    let next = path.with_extension("new");
    if let Ok(text) = serde_json::to_vec(view)
        && std::fs::write(&next, text).is_ok()
    {
        let _ = std::fs::rename(&next, path);
    }
}
