//! `eft sched`: which policy places the components of a stack, to what end, and why it last decided as it did.

use anyhow::Result;
use eft_linux::operator;
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub struct SchedArguments {
    /// The stack's name
    #[arg(long, default_value = "eft", global = true)]
    name: String,
    /// Print JSON: see below
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Change the policy while the stack runs
    Policy {
        /// fixed, adaptive or profile
        #[arg(value_parser = ["fixed", "adaptive", "profile"])]
        policy: String,
        /// throughput, least-power or throughput-per-watt
        #[arg(long, value_parser = ["throughput", "least-power", "throughput-per-watt"])]
        objective: Option<String>,
        /// Share of the best throughput that least-power must keep
        #[arg(long)]
        floor: Option<f64>,
        /// The file of recorded profiles
        #[arg(long)]
        profiles: Option<String>,
    },
    /// The last decisions, with the readings that caused them
    Why,
    /// One sample of everything that the scheduler observes (JSON)
    Sample,
}

pub fn run(arguments: &SchedArguments) -> Result<()> {
    let question = match &arguments.what {
        None => json!({ "op": "sched", "what": "status" }),
        Some(What::Why) => json!({ "op": "sched", "what": "why" }),
        Some(What::Sample) => json!({ "op": "sched", "what": "sample" }),
        Some(What::Policy { policy, objective, floor, profiles }) => json!({
            "op": "sched", "what": "policy", "policy": policy, "objective": objective, "floor": floor,
            "profiles": profiles,
        }),
    };
    let (answer, _) = operator::ask(&arguments.name, &question)?;
    match &arguments.what {
        _ if arguments.json => println!("{answer}"),
        None => print_status(&answer),
        Some(What::Why) => print_why(&answer),
        Some(What::Sample) => println!("{answer}"),
        Some(What::Policy { .. }) => println!("{}", describe(&answer["scheduling"])),
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(s) => s.clone(),
        value => value.to_string(),
    }
}

/// `policy adaptive, objective least-power (floor 0.95), manages 0-1`
fn describe(scheduling: &Value) -> String {
    let floor = match scheduling["objective"].as_str() {
        Some("least-power") => format!(" (floor {})", scheduling["floor"]),
        _ => String::new(),
    };
    let managed = match scheduling["managed"].as_str() {
        None | Some("") => "no managed CPUs".to_string(),
        Some(list) => format!("manages {list}"),
    };
    format!(
        "policy {}, objective {}{floor}, {managed}",
        text(&scheduling["policy"]),
        text(&scheduling["objective"])
    )
}

fn print_status(answer: &Value) {
    println!("{}", describe(&answer["scheduling"]));
    if let Some(trouble) = answer["trouble"].as_str() {
        println!("the last plan was not carried out: {trouble}");
    }
    for (cpu, share) in answer["speeds"].as_object().into_iter().flatten() {
        println!("CPU {cpu} at {share} of its speed");
    }
    let parked: Vec<String> = answer["parked"].as_array().into_iter().flatten().map(text).collect();
    if !parked.is_empty() {
        println!("parked: {}", parked.join(", "));
    }
    if !answer["last"].is_null() {
        println!(
            "{} decisions; last: {} ({})",
            answer["decisions"],
            text(&answer["last"]["reason"]),
            text(&answer["last"]["outcome"])
        );
    }
    if let Some(plan) = answer["state"]["plan"].as_str() {
        println!("plan: {plan}");
    }
    print_power(&answer["state"]["power"]);
    let rows: Vec<Vec<String>> = answer["places"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|p| {
            let mode = match (p["dedicated"] == true, p["alone"] == true) {
                (_, true) => "dedicated",
                (true, false) => "shared (wants to be alone)",
                _ => "shared",
            };
            let cpu = if p["cpu"].is_null() { "any".into() } else { text(&p["cpu"]) };
            vec![text(&p["component"]), cpu, mode.into()]
        })
        .collect();
    super::print_table(&["COMPONENT", "CPU", "MODE"], &rows);
}

/// What the plan is worth, and how far that depends on what the model assumes.
fn print_power(power: &Value) {
    let Some(now) = power["now_w"].as_f64() else { return };
    let figure = |value: &Value| value.as_f64().unwrap_or_default();
    let percent = |value: &Value| figure(value) * 100.0;
    let measured = power["measured_w"].as_f64().map_or(String::new(), |w| format!("measured {w:.1} W; "));
    println!(
        "power: {measured}modelled {now:.1} W, with all managed CPUs at full speed {:.1} W: saves {:.0}%",
        figure(&power["full_w"]),
        percent(&power["saving"])
    );
    for span in power["spans"].as_array().into_iter().flatten() {
        println!(
            "    if the {} is {:.2} to {:.2}: saves {:.0}% to {:.0}%",
            text(&span["assumption"]),
            figure(&span["low"]),
            figure(&span["high"]),
            percent(&span["saving_low"]),
            percent(&span["saving_high"])
        );
    }
}

/// `tcp@1! ip@0 nic0@0, CPU 0 at 0.5, parked 3`; `!` is dedicated.
fn plan(places: &serde_json::Map<String, Value>, plan: &Value) -> String {
    let place = |(name, p): (&String, &Value)| {
        let mark = if p["dedicated"] == true { "!" } else { "" };
        format!("{name}@{}{mark}", if p["cpu"].is_null() { "any".into() } else { text(&p["cpu"]) })
    };
    let mut line = places.iter().map(place).collect::<Vec<_>>().join(" ");
    for (cpu, share) in plan["speeds"].as_object().into_iter().flatten() {
        line += &format!(", CPU {cpu} at {share}");
    }
    for cpu in plan["parked"].as_array().into_iter().flatten() {
        line += &format!(", CPU {cpu} parked");
    }
    line
}

fn print_why(answer: &Value) {
    let decisions = answer["decisions"].as_array().cloned().unwrap_or_default();
    if decisions.is_empty() {
        println!("nothing was decided yet");
    }
    for d in decisions {
        let age = d["age_s"].as_f64().unwrap_or_default();
        println!(
            "#{} {age:.1} s ago, {}: {} -> {}",
            d["number"],
            text(&d["policy"]),
            text(&d["reason"]),
            text(&d["outcome"])
        );
        if let Some(summary) = d["readings"]["summary"].as_str() {
            println!("    {summary}");
        }
        if let Some(places) = d["plan"]["places"].as_object() {
            println!("    plan: {}", plan(places, &d["plan"]));
        }
    }
}
