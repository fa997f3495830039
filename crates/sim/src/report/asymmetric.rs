//! `eft-sim paper asymmetric`: runs, judges, draws.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use eft_sim::asymmetric::analytic::figure_4;
use eft_sim::asymmetric::calibration::Calibration;
use eft_sim::asymmetric::claims;
use eft_sim::asymmetric::fit::{Fitted, fit};
use eft_sim::asymmetric::reasons::reason;
use eft_sim::asymmetric::runs::{self, Extent, Figures};
use eft_sim::judge::Verdict;
use serde_json::json;

use super::figures::draw;
use super::judged::{Judged, check};
use super::print;

#[derive(Args)]
pub struct AsymmetricArguments {
    /// Initial placements of each result
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1000))]
    placements: u64,
    /// Draws of the parameters that were assumed or fitted
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    draws: u64,
    /// Seconds that a program takes under amp-fair alone
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=128))]
    threads: u8,
    /// Fit what may be fitted to the numbers in the text on Figures 7 and 8 instead, and print it for calibration.toml
    #[arg(long, conflicts_with_all = ["figures", "json"])]
    fit: bool,
    /// Draw the paper's figures again, as SVG into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &AsymmetricArguments) -> Result<()> {
    let calibration = Calibration::read()?;
    let extent = Extent {
        placements: arguments.placements,
        seconds: arguments.seconds,
        seed: arguments.seed,
        every_point: true,
        threads: usize::from(arguments.threads),
    };
    if arguments.fit {
        return print_fit(&fit(&calibration, extent)?);
    }
    let nominal = figures(&calibration, extent)?;
    // The same twice, to the bit: one placement of everything is enough to see it.
    let once = Extent { placements: 1, ..extent };
    if figures(&calibration, once)? != figures(&calibration, Extent { threads: 1, ..once })? {
        bail!("two runs with one seed differ; the simulator is broken");
    }
    let mut draws = Vec::new();
    for draw in 0..arguments.draws {
        let drawn = calibration.draw(arguments.seed.wrapping_add(1000 + draw));
        draws.push(figures(&drawn, Extent { seed: extent.seed + draw, every_point: false, ..once })?);
    }
    let judged: Vec<Judged> =
        claims::claims().into_iter().map(|claim| Judged::new(claim, &nominal, &draws)).collect();
    if let Some(dir) = &arguments.figures {
        draw(dir, &nominal, &calibration, once)?;
    }
    let flat = claims::constant(&nominal);
    let by_constant = judged.iter().filter(|j| j.claim.holds(&flat)).count();
    report(arguments, &judged, by_constant, &nominal)?;
    check(&judged)
}

fn print_fit(fitted: &Fitted) -> Result<()> {
    for (program, parameter, value) in &fitted.values {
        print(&format!("{program}: {parameter} {value}\n"))?;
    }
    for (name, ours, paper) in &fitted.numbers {
        print(&format!("{name}: {ours:.3}, fitted to {paper}\n"))?;
    }
    Ok(())
}

fn figures(calibration: &Calibration, extent: Extent) -> Result<Figures> {
    let mut all = runs::figures(calibration, extent)?;
    for (name, fair) in [("max", 0.0), ("half", 0.5), ("fair", 1.0)] {
        for efficiency in [1.0, 2.0] {
            let point = figure_4(fair, efficiency);
            all.insert(format!("fig4/{name}/{efficiency}/throughput"), point.throughput);
            all.insert(format!("fig4/{name}/{efficiency}/slowdown"), point.slowdown);
        }
    }
    Ok(all)
}

fn report(
    arguments: &AsymmetricArguments,
    judged: &[Judged],
    by_constant: usize,
    nominal: &Figures,
) -> Result<()> {
    if arguments.json {
        let claim = |j: &Judged| {
            json!({ "claim": j.claim.id, "says": j.claim.says, "paper": j.claim.rule.paper(), "ours": j.ours,
                    "deviation_percent": j.ours.map(|o| j.claim.rule.deviation(o)), "verdict": j.verdict.name(),
                    "share_of_draws": j.share, "fitted": j.claim.fitted, "reason": reason_of(j) })
        };
        let all = json!({ "claims": judged.iter().map(claim).collect::<Vec<_>>(), "constant_model_passes": by_constant, "figures": nominal });
        return print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    let mut rows =
        vec![["CLAIM", "SAYS", "PAPER", "OURS", "OFF", "DRAWS", "VERDICT"].map(String::from).to_vec()];
    for j in judged {
        rows.push(vec![
            j.claim.id.into(),
            j.claim.says.into(),
            j.claim.rule.paper(),
            j.ours.map_or("-".into(), |ours| format!("{ours:.3}")),
            j.ours.map_or("-".into(), |ours| format!("{:+.0}%", j.claim.rule.deviation(ours))),
            format!("{:.0}%", j.share * 100.0),
            format!("{}{}", j.verdict.name(), if j.claim.fitted { " (may be fitted)" } else { "" }),
        ]);
    }
    print(&eft_text::columns(&rows))?;
    for (claim, why) in judged.iter().filter_map(|j| Some((&j.claim.id, reason_of(j)?))) {
        print(&format!("{claim}: {why}\n"))?;
    }
    let count = |verdict| judged.iter().filter(|j| j.verdict == verdict).count();
    let spread =
        nominal.iter().filter(|(name, _)| name.ends_with("/spread")).map(|(_, v)| *v).fold(0.0, f64::max);
    print(&format!(
        "{} reproduced, {} fragile, {} missed; a model in which all ways are alike would pass {by_constant}\n\
         {} placements each (means of mixes differ by at most {spread:.3} between them), {} draws; two runs are identical\n",
        count(Verdict::Reproduced),
        count(Verdict::Fragile),
        count(Verdict::Missed),
        arguments.placements,
        arguments.draws,
    ))
}

/// Why a claim is not reproduced.
fn reason_of(judged: &Judged) -> Option<&'static str> {
    if judged.verdict == Verdict::Reproduced { None } else { reason(judged.claim.id) }
}
