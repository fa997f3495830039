//! `eft addr`, `eft route` and `eft neigh`: addresses, routes and neighbours of a running stack, in the words of `ip`.

mod words;

use anyhow::Result;
use eft_control::network::Change;
use eft_linux::operator;
use serde_json::{Value, json};
use words::Asked;

#[derive(clap::Args, Debug)]
pub struct NetworkArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Only IPv4
    #[arg(short = '4')]
    four: bool,
    /// Only IPv6
    #[arg(short = '6', conflicts_with = "four")]
    six: bool,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
    /// What to do, as `ip` has it: see below
    #[arg(allow_hyphen_values = true)]
    words: Vec<String>,
}

impl NetworkArguments {
    /// Whether an address's version is asked for.
    fn wants(&self, address: &str) -> bool {
        let six = address.contains(':');
        !(self.four && six || self.six && !six)
    }

    fn ipv6(&self) -> Option<bool> {
        (self.four || self.six).then_some(self.six)
    }
}

pub fn addr(arguments: &NetworkArguments) -> Result<()> {
    let asked = words::address(&arguments.words)?;
    if let Asked::Change(Change::AddAddress { address, .. }) = &asked {
        operator::check_free(&arguments.stack.name, address.address)?;
    }
    let (answer, shown) = ask(arguments, asked)?;
    if shown.is_some() || arguments.json {
        show_addresses(arguments, &answer, shown.flatten().as_deref());
    }
    Ok(())
}

pub fn route(arguments: &NetworkArguments) -> Result<()> {
    let asked = words::route(&arguments.words, arguments.ipv6())?;
    let (answer, shown) = ask(arguments, asked)?;
    if shown.is_some() || arguments.json {
        show_routes(arguments, &answer, shown.flatten().as_deref());
    }
    Ok(())
}

pub fn neigh(arguments: &NetworkArguments) -> Result<()> {
    let asked = words::neighbour(&arguments.words)?;
    let (answer, shown) = ask(arguments, asked)?;
    let Some(device) = shown.or(arguments.json.then_some(None)) else { return Ok(()) };
    let (known, _) = operator::ask(&arguments.stack.name, &json!({ "op": "neighbours" }))?;
    let wanted = |n: &&Value| {
        let version = arguments.wants(n["address"].as_str().unwrap_or_default());
        version && device.as_ref().is_none_or(|name| n["interface"] == *name)
    };
    let configured: Vec<&Value> = list(&answer["neighbours"]).filter(wanted).collect();
    let known = list(&known["found"]).filter(wanted);
    if arguments.json {
        let found: Vec<&Value> = known.filter(|n| n["state"] != "permanent").collect();
        println!("{}", json!({ "neighbours": configured, "found": found }));
        return Ok(());
    }
    let seconds = |n: &Value, key: &str| n[key].as_u64().map_or("-".into(), |ms| format!("{} s", ms / 1000));
    let row = |n: &Value| {
        let named = ["address", "mac", "interface", "state"].map(|key| cell(&n[key]));
        [&named[..], &[seconds(n, "confirmed_ms"), seconds(n, "used_ms")]].concat()
    };
    let columns = ["ADDRESS", "MAC", "DEVICE", "STATE", "CONFIRMED", "USED"];
    super::print_table(&columns, &known.map(row).collect::<Vec<_>>());
    Ok(())
}

/// The stack's answer, and of which device something is to be shown, if it is.
fn ask(arguments: &NetworkArguments, asked: Asked) -> Result<(Value, Option<Option<String>>)> {
    let (request, shown) = match asked {
        Asked::Show { device } => (json!({ "op": "network" }), Some(device)),
        Asked::Change(change) => (json!({ "op": "network", "change": change }), None),
    };
    let (answer, _) = operator::ask(&arguments.stack.name, &request)?;
    for gone in list(&answer["gone"]) {
        let (to, by) = (destination(gone), cell(&gone["gateway"]));
        eprintln!("eft: the route to {to} by {by} went with the address: its gateway cannot be reached");
    }
    Ok((answer, shown))
}

fn show_addresses(arguments: &NetworkArguments, answer: &Value, device: Option<&str>) {
    let there = |i: &&Value| device.is_none_or(|name| i["interface"] == name);
    let addresses = |i: &Value| -> Vec<String> {
        let all = list(&i["addresses"]).filter_map(Value::as_str).map(String::from);
        all.filter(|a| arguments.wants(a)).collect()
    };
    let learnt = |interface: &str| -> Vec<&Value> {
        let all = list(&answer["learnt"]["addresses"]).filter(|a| a["interface"] == interface);
        all.filter(|a| arguments.wants(a["address"].as_str().unwrap_or_default())).collect()
    };
    if arguments.json {
        let all = list(&answer["interfaces"]).filter(there).map(|i| {
            let mut i = i.clone();
            i["addresses"] = json!(addresses(&i));
            i["learnt"] = json!(learnt(i["interface"].as_str().unwrap_or_default()));
            i
        });
        println!("{}", json!({ "interfaces": all.collect::<Vec<_>>() }));
        return;
    }
    let rows = list(&answer["interfaces"]).filter(there).map(|i| {
        let shown = addresses(i).join(" ");
        vec![cell(&i["interface"]), cell(&i["mac"]), cell(&i["mtu"]), shown]
    });
    super::print_table(&["DEVICE", "MAC", "MTU", "ADDRESSES"], &rows.collect::<Vec<_>>());
    let names = list(&answer["interfaces"]).filter(there).filter_map(|i| i["interface"].as_str());
    let row = |a: &Value| {
        let named = ["address", "interface", "source"].map(|key| cell(&a[key]));
        [&named[..], &[lifetime(&a["valid_s"]), lifetime(&a["preferred_s"])]].concat()
    };
    let rows: Vec<_> = names.flat_map(learnt).map(row).collect();
    if !rows.is_empty() {
        println!();
        super::print_table(&["ADDRESS", "DEVICE", "FROM", "VALID", "PREFERRED"], &rows);
    }
}

/// What is left of a lifetime.
fn lifetime(seconds: &Value) -> String {
    seconds.as_u64().map_or("for ever".into(), |s| format!("{s} s"))
}

fn show_routes(arguments: &NetworkArguments, answer: &Value, device: Option<&str>) {
    let own = list(&answer["interfaces"]).flat_map(|i| {
        let addresses = list(&i["addresses"]).filter_map(|a| a.as_str()?.parse().ok());
        addresses.map(|a: eft_base::Cidr| {
            json!({ "destination": a.network(), "gateway": null, "interface": i["interface"], "metric": 0,
                    "of": a.address })
        })
    });
    let learnt = list(&answer["learnt"]["routes"]).cloned();
    let all = list(&answer["routes"]).cloned().chain(learnt).chain(own).filter(|r| {
        let version = arguments.wants(r["destination"].as_str().unwrap_or_default());
        version && device.is_none_or(|name| r["interface"] == name)
    });
    if arguments.json {
        println!("{}", json!({ "routes": all.collect::<Vec<_>>() }));
        return;
    }
    let rows = all.map(|r| {
        let named = ["gateway", "interface", "metric", "mtu", "advmss", "initcwnd"].map(|key| cell(&r[key]));
        [&[destination(&r)], &named[..], &[origin(&r)]].concat()
    });
    let columns = ["DESTINATION", "VIA", "DEVICE", "METRIC", "MTU", "ADVMSS", "INITCWND", "FROM"];
    super::print_table(&columns, &rows.collect::<Vec<_>>());
}

fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

/// Where a route comes from.
fn origin(route: &Value) -> String {
    match (&route["source"], &route["of"]) {
        (Value::String(source), _) => format!("{source}, {}", lifetime(&route["valid_s"])),
        (_, Value::Null) => "configured".into(),
        (_, of) => format!("address {}", cell(of)),
    }
}

fn destination(route: &Value) -> String {
    match route["destination"].as_str() {
        Some("0.0.0.0/0") => "default".into(),
        // Of IPv6, beside which the other stands.
        Some("::/0") => "default (IPv6)".into(),
        other => other.unwrap_or("-").into(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}
