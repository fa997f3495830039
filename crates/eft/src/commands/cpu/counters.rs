//! `eft cpu counters`: instructions, cycles, cache misses of a thread or of CPUs over an interval.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use eft_host::sensors::counters::{Counters, Counts, Target};
use eft_machine::CpuSet;

use super::{Context, columns, print};

#[derive(Args)]
pub struct CountersArguments {
    /// A thread id
    #[arg(long, value_name = "TID", conflicts_with = "cpus")]
    thread: Option<i32>,
    /// CPUs; all that are online if neither is named
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// How long to count, ms
    #[arg(long = "for", value_name = "MS", default_value_t = 1000)]
    duration_ms: u64,
}

pub fn run(context: &Context, arguments: &CountersArguments) -> Result<()> {
    let tree = &context.host.tree;
    if !tree.is_live() {
        bail!("a recorded machine counts nothing");
    }
    let targets = match (arguments.thread, &arguments.cpus) {
        (Some(thread), _) => vec![Target::Thread(thread)],
        (None, Some(cpus)) => cpus.iter().map(Target::Cpu).collect(),
        (None, None) => eft_host::sensors::topology::cpu_sets(tree)?.online.iter().map(Target::Cpu).collect(),
    };
    let mut counters =
        targets.iter().map(|target| Counters::open(tree, *target)).collect::<Result<Vec<Counters>, _>>()?;
    std::thread::sleep(Duration::from_millis(arguments.duration_ms));
    let counts: Vec<Vec<Counts>> = counters.iter_mut().map(Counters::read).collect::<Result<_, _>>()?;
    let counts = counts.concat();
    if context.json {
        return context.print_json(&counts);
    }
    let mut rows =
        vec!["CPU TYPE INSTRUCTIONS CYCLES IPC CACHE-MISSES COUNTED".split(' ').map(String::from).collect()];
    rows.extend(counts.iter().map(|count| {
        vec![
            count.cpu.map_or("-".into(), |cpu| cpu.to_string()),
            count.core_type.clone(),
            count.instructions.to_string(),
            count.cycles.to_string(),
            count.instructions_per_cycle().map_or("-".into(), |ipc| format!("{ipc:.2}")),
            count.cache_misses.to_string(),
            format!("{:.0}%", count.running_share.percent()),
        ]
    }));
    print(&columns(&rows))
}
