//! `eft vm watch`: which guests there are.

use anyhow::Result;
use clap::Args;
use eft_host::guests::discover::{Guest, Role, discover};
use eft_host::guests::{kernel, session};
use eft_host::sensors::Tree;
use eft_host::sensors::tasks;
use serde_json::json;

use super::{Common, Deciding, settings};
use crate::commands::cpu;

#[derive(Args)]
pub struct WatchArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    deciding: Deciding,
    /// Repeat at this interval, until interrupted
    #[arg(long, value_name = "SECONDS")]
    every: Option<f64>,
}

pub fn run(arguments: &WatchArguments) -> Result<()> {
    let pause = arguments.every.map(|value| super::seconds(value, "--every")).transpose()?;
    loop {
        show(arguments)?;
        let Some(pause) = pause else { return Ok(()) };
        std::thread::sleep(pause);
    }
}

fn show(arguments: &WatchArguments) -> Result<()> {
    let settings = settings(&arguments.common, &arguments.deciding)?;
    let tree = Tree::live();
    let (guests, notes) = discover(&tree, &settings.wanted, &[]);
    let (host, sets, _) = session::host::host(&tree, &settings.cpu_state_dir, settings.cpus.as_ref())?;
    let features = kernel::features(&tree);
    if arguments.common.json {
        let groups: Vec<_> = host
            .groups
            .iter()
            .zip(&sets)
            .map(|(group, cpus)| json!({ "class": host.classes[usize::from(group.class)].name, "cpus": cpus, "cache": group.cache, "node": group.node }))
            .collect();
        let all = json!({ "guests": guests, "classes": host.classes, "groups": groups, "kernel": features, "notes": notes });
        return cpu::print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    notes.iter().for_each(|note| eprintln!("eft: {note}"));
    for (index, class) in host.classes.iter().enumerate() {
        let cpus: Vec<String> = host.of_class(index).map(|group| sets[group].to_string()).collect();
        let speed = class.speed.share();
        cpu::print(&format!("{} cores: CPU {} (speed {speed:.2})\n", class.name, cpus.join(" | ")))?;
    }
    for feature in features.iter().filter(|feature| feature.is_on) {
        cpu::print(&format!("the kernel has {}: {}\n", feature.name, feature.what))?;
    }
    if guests.is_empty() {
        return cpu::print("no guests\n");
    }
    let mut rows = vec![["GUEST", "BY", "STATE", "ROLE", "TID", "CPUS", "THREAD"].map(String::from).to_vec()];
    guests.iter().for_each(|guest| rows.extend(rows_of(&tree, guest)));
    cpu::print(&cpu::columns(&rows))
}

fn rows_of(tree: &Tree, guest: &Guest) -> Vec<Vec<String>> {
    let state = if guest.is_paused { "paused" } else { "running" };
    let row = |thread: &eft_host::guests::discover::Thread| {
        let role = match thread.role {
            Role::Vcpu(index) => format!("vcpu {index}"),
            Role::Io => "io".into(),
            Role::Vhost => "vhost".into(),
            Role::Emulator => "emulator".into(),
        };
        let mask =
            tasks::affinity(tree, thread.process, thread.id.tid).map_or("-".into(), |mask| mask.to_string());
        let plain: String = thread.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        vec![guest.name.clone(), guest.by.into(), state.into(), role, thread.id.tid.to_string(), mask, plain]
    };
    guest.threads.iter().map(row).collect()
}
