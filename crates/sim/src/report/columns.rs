//! A report on a paper in two columns, NewtOS' stack and eft's on the paper's machines, on the fitted stack of slower-is-faster.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use eft_sim::calibration::Calibration;
use eft_sim::judge::{Claim, Figures};
use eft_sim::slower_is_faster::fit;

use super::drawn::{ablation, draws, twice};
use super::judged::{self, Column, Judged, Totals};
use super::machine::MachineArguments;
use super::print;
use super::tiers::{self, Experiments, Many};

#[derive(Args)]
pub struct PaperArguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Draws of the parameters that were assumed
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

/// Whether what is assumed is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    Nominal,
    Drawn,
}

/// Both columns.
#[derive(PartialEq)]
pub struct Both {
    pub newtos: Figures,
    pub eft: Figures,
}

/// A paper: what makes its figures, judges them and draws them.
pub struct Paper {
    pub claims: fn() -> Vec<Claim>,
    pub reason: fn(&str) -> Option<&'static str>,
    /// From the fitted calibration, of a draw or not, and a seed.
    pub both: fn(Calibration, Draw, u64) -> Result<Both>,
    pub constant: fn(&Figures) -> Figures,
    pub linear: fn(&Figures) -> Figures,
    /// Figures that an ablation is judged by, and what it takes away.
    pub ablation: (&'static str, &'static str),
    /// Which both tiers do.
    pub tiers: Experiments,
    /// File names and pictures.
    pub pictures: fn(&Both) -> Vec<(String, String)>,
}

pub fn run(paper: &Paper, arguments: &PaperArguments) -> Result<()> {
    let calibration = arguments.machine.e5520()?;
    // The machine and the stack are those of slower-is-faster, and fitted to that paper alone.
    let fitted = fit::fit(&calibration, arguments.seed)?;
    let of_nominal = || (paper.both)(fitted.clone(), Draw::Nominal, arguments.seed);
    let nominal = twice(arguments.threads, of_nominal)?;
    let draws = draws(arguments.draws, arguments.threads, |draw| {
        let seed = arguments.seed.wrapping_add(1000 + draw);
        (paper.both)(fit::fit_draw(&calibration.draw(seed), &fitted, seed)?, Draw::Drawn, seed)
    })?;
    let (newtos, eft): (Vec<Figures>, Vec<Figures>) = draws.into_iter().map(|b| (b.newtos, b.eft)).unzip();
    let judge = |nominal: &Figures, draws: &[Figures]| -> Vec<Judged> {
        (paper.claims)().into_iter().map(|claim| Judged::new(claim, nominal, draws)).collect()
    };
    let judged = [judge(&nominal.newtos, &newtos), judge(&nominal.eft, &eft)];
    let columns = [
        Column { name: "newtos", judged: &judged[0], reason: paper.reason },
        Column { name: "eft", judged: &judged[1], reason: |_| None },
    ];
    let pass = |model: Figures| judged[0].iter().filter(|j| j.claim.holds(&model)).count();
    let totals = Totals {
        constant: pass((paper.constant)(&nominal.newtos)),
        linear: pass((paper.linear)(&nominal.newtos)),
        draws: arguments.draws,
    };
    let many = Many { count: arguments.points, seed: arguments.seed, threads: arguments.threads };
    let tiers = tiers::lines(paper.tiers, &calibration, many)?;
    let (name, what) = paper.ablation;
    let ablation = ablation(name, what, &nominal.newtos, &newtos);
    if arguments.json {
        let extra = serde_json::json!({ "newtos": nominal.newtos, "eft": nominal.eft });
        print(&judged::json(&columns, &totals, extra)?)?;
    } else {
        print(&judged::text(&columns, &totals))?;
        print(&format!("ablation: {}\n", ablation.text))?;
        tiers.iter().try_for_each(|(line, _)| print(&format!("{line}\n")))?;
    }
    if let Some(dir) = &arguments.figures {
        draw(dir, (paper.pictures)(&nominal))?;
    }
    if !ablation.breaks {
        bail!("an ablation does not break what it should: {}", ablation.text);
    }
    judged::check(&judged[0])?;
    tiers::check(&tiers)
}

fn draw(dir: &Path, pictures: Vec<(String, String)>) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| anyhow!("{} cannot be made ({error})", dir.display()))?;
    pictures.into_iter().try_for_each(|(name, svg)| {
        let path = dir.join(format!("{name}.svg"));
        std::fs::write(&path, svg).map_err(|error| anyhow!("{} cannot be written ({error})", path.display()))
    })
}

/// A figure by its name; what is not there is no number.
pub fn get(figures: &Figures, name: String) -> f64 {
    figures.get(&name).copied().unwrap_or(f64::NAN)
}
