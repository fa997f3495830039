//! `eft cpu`: every CPU, as a table or as JSON.

use std::time::{Duration, Instant};

use anyhow::Result;
use eft_host::actuators::held::{self, Held, Status};
use eft_host::sensors::{self, Tree, rates};
use eft_machine::{Cpu, CpuId, KiloHertz, Machine, Share, SpeedSet};

use super::{Context, columns, print};

pub fn run(context: &Context, interval_ms: u64) -> Result<()> {
    let machine = observe(context, Duration::from_millis(interval_ms.min(60_000)))?;
    if context.json {
        return context.print_json(&machine);
    }
    print(&table(&machine))
}

/// The machine over an interval, with eft's own settings.
pub fn observe(context: &Context, interval: Duration) -> Result<Machine> {
    let tree = &context.host.tree;
    let (held, status) = (held::load(&context.host.dir), held::load_status(&context.host.dir));
    let (begin, before, burned_before) = (Instant::now(), rates::read(tree), burned_ns(&held, &status));
    let mut machine = sensors::observe(tree)?;
    if tree.is_live() {
        std::thread::sleep(interval);
    }
    let (after, burned_after, elapsed) = (rates::read(tree), burned_ns(&held, &status), begin.elapsed());
    rates::fill(&mut machine, &before, &after, elapsed);
    machine.managed = context.host.managed.clone();
    machine.parked = held.parked();
    for cpu in &mut machine.cpus {
        cpu.managed = machine.managed.contains(cpu.cpu);
        cpu.parked = machine.parked.contains(cpu.cpu);
        cpu.speed_set = held.speeds.get(&cpu.cpu).map(|speed| SpeedSet {
            share: speed.share,
            back_end: speed.back_end.name().into(),
            phase: speed.phase.clone(),
        });
    }
    subtract_burners(&mut machine, &held, &burned_before, &burned_after, elapsed.as_secs_f64());
    Ok(machine)
}

/// CPU time of each burner so far, in the order of the held speeds.
fn burned_ns(held: &Held, status: &Status) -> Vec<u64> {
    let burned = |cpu: &CpuId| {
        let (holder, tid) = (held.holder?, status.burners.get(cpu)?);
        let text = Tree::live().text(&format!("proc/{}/task/{tid}/schedstat", holder.tid))?;
        text.split_whitespace().next()?.parse().ok()
    };
    held.speeds.keys().map(|cpu| burned(cpu).unwrap_or(0)).collect()
}

/// A burner's time is not load: the rest of the core counts as the whole.
fn subtract_burners(machine: &mut Machine, held: &Held, before: &[u64], after: &[u64], seconds: f64) {
    for ((cpu, before), after) in held.speeds.keys().zip(before).zip(after) {
        let burned = after.saturating_sub(*before) as f64 / 1e9 / seconds.max(1e-9);
        let Some(cpu) = machine.cpus.iter_mut().find(|found| found.cpu == *cpu) else {
            continue;
        };
        if let Some(load) = cpu.load.as_mut().filter(|_| burned < 1.0) {
            *load = Share((load.0 - burned) / (1.0 - burned)).within();
        }
    }
}

fn table(machine: &Machine) -> String {
    let mut text = String::new();
    let kind = if machine.virtual_machine { " (virtual machine)" } else { "" };
    text += &format!("{}{kind}\n", machine.model.as_deref().unwrap_or("unknown processor"));
    let classes = machine.cpus.iter().find_map(|cpu| cpu.class_from.clone());
    text += &format!("core classes: {}\n", classes.map_or("all equal".into(), |from| format!("from {from}")));
    text += &format!(
        "online {}   offline {}   managed {}   parked {}\n\n",
        or_none(&machine.online.to_string()),
        or_none(&machine.offline.to_string()),
        or_none(&machine.managed.to_string()),
        or_none(&machine.parked.to_string())
    );
    let heading = "CPU STATE CLASS PKG DIE CLU CORE THREADS LLC NODE CAP NOW MIN-MAX BOOST GOVERNOR DRIVER THROTTLED IRQ/S LOAD SET";
    let mut rows = vec![heading.split(' ').map(String::from).collect()];
    rows.extend(machine.cpus.iter().map(row));
    text += &columns(&rows);
    text += &idle_states(machine);
    text += &p_states(machine);
    text
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".into() } else { text.into() }
}

fn row(cpu: &Cpu) -> Vec<String> {
    let number = |value: Option<u32>| value.map_or("-".into(), |value| value.to_string());
    let mhz = |clock: Option<KiloHertz>| clock.map_or("-".into(), |clock| clock.mhz().to_string());
    let frequency = cpu.frequency.clone().unwrap_or_default();
    let range = match (frequency.min, frequency.max) {
        (None, None) => "-".into(),
        (low, high) => format!("{}-{}", mhz(low), mhz(high)),
    };
    let cache = cpu.last_level_cache.as_ref().map_or("-".into(), |cache| {
        let size = cache.size_kib.map_or("?".into(), |kib| {
            if kib < 1024 { format!("{kib}K") } else { format!("{}M", kib / 1024) }
        });
        format!("L{} {size} [{}]", cache.level, cache.shared)
    });
    let set = cpu.speed_set.as_ref().map_or("-".into(), |set| {
        let phase = set.phase.as_ref().map_or(String::new(), |phase| format!(" {phase}"));
        format!("{:.3} {}{phase}", set.share, set.back_end)
    });
    let throttled = cpu.throttle.as_ref().map_or("-".into(), |throttle| {
        format!(
            "{}/{}",
            throttle.core_events,
            throttle.package_events.map_or("-".into(), |events| events.to_string())
        )
    });
    vec![
        cpu.cpu.to_string(),
        state(cpu).into(),
        cpu.class.name().into(),
        number(cpu.package),
        number(cpu.die),
        number(cpu.cluster),
        number(cpu.core),
        cpu.siblings.to_string(),
        cache,
        number(cpu.numa_node),
        number(cpu.capacity),
        mhz(frequency.now),
        range,
        frequency.boost.map_or("-", |on| if on { "on" } else { "off" }).into(),
        frequency.governor.unwrap_or_else(|| "-".into()),
        frequency.driver.unwrap_or_else(|| "-".into()),
        throttled,
        cpu.interrupts_per_s.map_or("-".into(), |rate| format!("{rate:.0}")),
        cpu.load.map_or("-".into(), |load| format!("{:.0}%", load.percent())),
        set,
    ]
}

fn state(cpu: &Cpu) -> &'static str {
    match (cpu.online, cpu.parked, cpu.isolated) {
        (false, true, _) => "parked, offline",
        (false, ..) => "offline",
        (_, true, _) => "parked",
        (_, _, true) => "isolated",
        _ => "online",
    }
}

/// Once for each group of CPUs with the same states.
fn idle_states(machine: &Machine) -> String {
    let driver = machine.idle_driver.as_deref().unwrap_or("none");
    let governor = machine.idle_governor.as_deref().unwrap_or("none");
    let mut text = format!("\nidle states (driver {driver}, governor {governor})\n");
    let mut seen: Vec<(String, Vec<CpuId>)> = Vec::new();
    for cpu in machine.cpus.iter().filter(|cpu| !cpu.idle_states.is_empty()) {
        let states: Vec<String> = cpu
            .idle_states
            .iter()
            .map(|state| {
                let residency = state.target_residency.map_or("-".into(), |time| time.0.to_string());
                let off = if state.disabled { " (disabled)" } else { "" };
                format!("{}{off}: exit {}, residency {residency} us", state.name, state.exit_latency)
            })
            .collect();
        let key = states.join("; ");
        match seen.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cpus)) => cpus.push(cpu.cpu),
            None => seen.push((key, vec![cpu.cpu])),
        }
    }
    for (states, cpus) in &seen {
        text += &format!("  CPU {}: {states}\n", cpus.iter().copied().collect::<eft_machine::CpuSet>());
    }
    if seen.is_empty() { text + "  none that the kernel knows\n" } else { text }
}

fn p_states(machine: &Machine) -> String {
    let mut text = String::from("\nP-states\n");
    for cpu in machine.cpus.iter().filter(|cpu| !cpu.p_states.is_empty()) {
        let states: Vec<String> = cpu
            .p_states
            .iter()
            .map(|state| {
                let power = state.power.map_or(String::new(), |power| format!(" {power}"));
                let latency = state.latency.map_or(String::new(), |latency| format!(" {latency}"));
                format!("{}{power}{latency}", state.frequency)
            })
            .collect();
        let doubt = if cpu.p_states[0].uncertain { ", depends on what cannot be read" } else { "" };
        text += &format!("  CPU {} ({:?}{doubt}): {}\n", cpu.cpu, cpu.p_states[0].source, states.join(", "));
    }
    if machine.cpus.iter().all(|cpu| cpu.p_states.is_empty()) {
        text + "  none: neither cpufreq nor ACPI tables list any\n"
    } else {
        text
    }
}
