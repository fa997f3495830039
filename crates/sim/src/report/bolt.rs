//! `eft-sim paper bolt`: runs, judges, draws.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use eft_sim::bolt::claims::claims;
use eft_sim::bolt::reasons::reason;
use eft_sim::bolt::runs::{Machines, figures, parts, simple};
use eft_sim::chart::{Stack, stacks};
use eft_sim::judge::Figures;

use super::judged::{self, Column, Judged, Totals};
use super::print;

#[derive(Args)]
pub struct BoltArguments {
    /// Draws of the parameters that were assumed
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    draws: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draw the paper's figures again, as SVG into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &BoltArguments) -> Result<()> {
    let machines = Machines::nominal()?;
    let nominal = figures(&machines)?;
    let draws = draws(&machines, arguments)?;
    if nominal != figures(&Machines::nominal()?)? || draws != self::draws(&machines, arguments)? {
        bail!("two runs with one seed differ; the simulator is broken");
    }
    let judged: Vec<Judged> =
        claims().into_iter().map(|claim| Judged::new(claim, &nominal, &draws)).collect();
    let pass = |model: Figures| judged.iter().filter(|j| j.claim.holds(&model)).count();
    let totals = Totals {
        constant: pass(simple(&nominal, false)),
        linear: pass(simple(&nominal, true)),
        draws: arguments.draws,
    };
    let columns = [Column { name: "model", judged: &judged, reason }];
    let ablations = ablations(&nominal);
    if arguments.json {
        print(&judged::json(&columns, &totals, serde_json::json!(nominal))?)?;
    } else {
        print(&judged::text(&columns, &totals))?;
        ablations.iter().try_for_each(|(text, _)| print(&format!("ablation: {text}\n")))?;
        print(&traced(&nominal))?;
    }
    if let Some(dir) = &arguments.figures {
        draw(dir, &machines)?;
    }
    if let Some((text, _)) = ablations.iter().find(|(_, breaks)| !breaks) {
        bail!("an ablation does not break what it should: {text}");
    }
    judged::check(&judged)
}

fn draws(machines: &Machines, arguments: &BoltArguments) -> Result<Vec<Figures>> {
    (0..arguments.draws)
        .map(|draw| Ok(figures(&machines.draw(arguments.seed.wrapping_add(1000 + draw)))?))
        .collect()
}

fn get(figures: &Figures, name: &str) -> f64 {
    figures.get(name).copied().unwrap_or(f64::NAN)
}

/// Each ablation of what makes a set fast, and whether it makes the set slower, as it should.
fn ablations(nominal: &Figures) -> Vec<(String, bool)> {
    let judge = |(name, what, operation, least): (&str, &str, &str, f64)| {
        let with = get(nominal, &format!("i5/{operation}/set/3/ms"));
        let without = get(nominal, &format!("{name}/{operation}/set/3/ms"));
        let text = format!("without {what}, three {operation} at once: {with:.3} ms becomes {without:.3}");
        (text, without >= with * least)
    };
    [
        ("without-concurrency", "concurrency", "offline", 1.5),
        ("without-concurrency", "concurrency", "online", 1.5),
        ("without-sharing", "steps that a set does once", "offline", 1.05),
        ("without-sharing", "steps that a set does once", "online", 1.001),
    ]
    .map(judge)
    .into()
}

/// The second machine: what its trace of one operation says of three, and what three took.
fn traced(nominal: &Figures) -> String {
    let mut rows = vec![
        ["TRACED", "ONE", "THREE", "MEASURED", "OFF", "BOLT, ONE", "BOLT, THREE AT ONCE"]
            .map(String::from)
            .to_vec(),
    ];
    for operation in ["offline", "online"] {
        let ms = |name: &str| get(nominal, &format!("traced/{operation}/{name}/ms"));
        let (three, measured) = (ms("native/3"), ms("measured/3"));
        let mut row = vec![operation.to_string()];
        row.extend([ms("native/1"), three, measured].map(|ms| format!("{ms:.1} ms")));
        row.push(format!("{:+.0}%", (three / measured - 1.0) * 100.0));
        row.extend([ms("bolt/1"), ms("set/3")].map(|ms| format!("{ms:.1} ms")));
        rows.push(row);
    }
    eft_text::columns(&rows)
}

const DRAWN: [(&str, &[(&str, &str)]); 2] =
    [("", &[("i5", "i5-2500K"), ("exynos", "Exynos 5410")]), ("-traced", &[("traced", "traced VM")])];

/// Figures 1 and 2: the parts of an operation, natively and with Bolt.
fn draw(dir: &Path, machines: &Machines) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| anyhow!("{} cannot be made ({error})", dir.display()))?;
    for (figure, operation) in [(1, "offline"), (2, "online")] {
        for (which, shown) in DRAWN {
            let mut bars: Vec<Stack> = Vec::new();
            for (machine, name) in shown {
                let all = parts(machines, machine, operation)?;
                let of = |is_bolt: bool| {
                    let parts = all.iter().filter(|(_, kept, _)| *kept || !is_bolt);
                    parts.map(|(name, _, ms)| (name.clone(), *ms)).collect()
                };
                bars.push(Stack { name: format!("{name}, native"), parts: of(false) });
                bars.push(Stack { name: format!("{name}, Bolt"), parts: of(true) });
            }
            let svg = stacks(&format!("Figure {figure}: one CPU {operation}"), "ms", &bars);
            let path = dir.join(format!("figure-{figure}{which}.svg"));
            std::fs::write(&path, svg)
                .map_err(|error| anyhow!("{} cannot be written ({error})", path.display()))?;
        }
    }
    Ok(())
}
