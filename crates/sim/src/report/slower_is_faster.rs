//! `eft-sim paper slower-is-faster`: runs, fits, judges, draws.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use eft_sim::batch::calibrated::Ablation;
use eft_sim::calibration::Calibration;
use eft_sim::judge::Figures;
use eft_sim::slower_is_faster::claims::claims;
use eft_sim::slower_is_faster::reasons::reason;
use eft_sim::slower_is_faster::runs::{ABLATIONS, Bench, ablations as ablations_of, figures};
use eft_sim::slower_is_faster::{fit, models};

use super::drawn::{Broken, ablation, draws, twice};
use super::judged::{self, Column, Judged, Totals};
use super::machine::MachineArguments;
use super::print;
use super::tiers::{self, Experiments, Many};

#[derive(Args)]
pub struct SlowerArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Draws of the parameters that were assumed; each is fitted to the fit points
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    draws: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=128))]
    threads: u8,
    /// Points at which the tiers are held against each other, of each column
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    points: u64,
    /// Draw the paper's figures again, as SVG into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

/// Both columns.
#[derive(Clone, PartialEq)]
struct Both {
    newtos: Figures,
    eft: Figures,
}

fn both(calibration: &Calibration, seed: u64) -> Result<Both> {
    let of = |system: &str| Bench::new(calibration, system, Ablation::default(), seed);
    let bench = of("newtos")?;
    let mut newtos = figures(&bench);
    newtos.extend(ablations_of(calibration, &bench)?);
    Ok(Both { newtos, eft: figures(&of("eft")?) })
}

pub fn run(arguments: &SlowerArguments) -> Result<()> {
    let calibration = arguments.machine.e5520()?;
    let (fitted, nominal) = twice(arguments.threads, || {
        let fitted = fit::fit(&calibration, arguments.seed)?;
        let nominal = both(&fitted, arguments.seed)?;
        Ok((fitted, nominal))
    })?;
    // Each draw is fitted anew.
    let draws = draws(arguments.draws, arguments.threads, |draw| {
        let seed = arguments.seed.wrapping_add(1000 + draw);
        both(&fit::fit_draw(&calibration.draw(seed), &fitted, seed)?, seed)
    })?;
    let column = |pick: fn(&Both) -> &Figures| -> Vec<Judged> {
        let all: Vec<Figures> = draws.iter().map(|both| pick(both).clone()).collect();
        claims().into_iter().map(|claim| Judged::new(claim, pick(&nominal), &all)).collect()
    };
    let (newtos, eft) = (column(|both| &both.newtos), column(|both| &both.eft));
    let columns = [
        Column { name: "newtos", judged: &newtos, reason },
        Column { name: "eft", judged: &eft, reason: |_| None },
    ];
    let pass = |model: Figures| newtos.iter().filter(|j| j.claim.holds(&model)).count();
    let totals = Totals {
        constant: pass(models::constant(&nominal.newtos)),
        linear: pass(models::linear(&nominal.newtos)),
        draws: arguments.draws,
    };
    let of_newtos: Vec<Figures> = draws.iter().map(|both| both.newtos.clone()).collect();
    let judge = |(name, what): (&str, &str)| ablation(name, what, &nominal.newtos, &of_newtos);
    let ablations: Vec<Broken> =
        ABLATIONS.map(|(name, ..)| name).into_iter().zip(WITHOUT).map(judge).collect();
    let many = Many { count: arguments.points, seed: arguments.seed, threads: arguments.threads };
    let tiers = tiers::lines(Experiments::SlowerIsFaster, &calibration, many)?;
    if arguments.json {
        let extra = serde_json::json!({ "newtos": nominal.newtos, "eft": nominal.eft });
        print(&judged::json(&columns, &totals, extra)?)?;
    } else {
        print(&judged::text(&columns, &totals))?;
        for (name, value) in fit::values(&fitted)? {
            print(&format!("fitted: {name} = {value}\n"))?;
        }
        for ablation in &ablations {
            print(&format!("ablation: {}\n", ablation.text))?;
        }
        tiers.iter().try_for_each(|(line, _)| print(&format!("{line}\n")))?;
    }
    if let Some(dir) = &arguments.figures {
        super::slower_figures::draw(dir, &nominal.newtos, &nominal.eft)?;
    }
    if let Some(broken) = ablations.iter().find(|a| !a.breaks) {
        bail!("an ablation does not break what it should: {}", broken.text);
    }
    judged::check(&newtos)?;
    tiers::check(&tiers)
}

/// What is taken away, and what that is to remove.
const WITHOUT: [&str; 2] = [
    "without wake-up latency, ip and driver at 600 MHz over all at 1600 MHz",
    "without memory stalls, two threads at 400 MHz over two cores at 200 MHz",
];
