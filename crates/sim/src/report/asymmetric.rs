//! `eft-sim paper asymmetric`: runs, judges, draws.

use std::path::{Path, PathBuf};

use clap::Args;
use eft_sim::asymmetric::analytic::figure_4;
use eft_sim::asymmetric::calibration::Calibration;
use eft_sim::asymmetric::claims::{self, Claim, Verdict};
use eft_sim::asymmetric::draw::{Series, bars, lines};
use eft_sim::asymmetric::mixes::{self, MIXES, Scenario};
use eft_sim::asymmetric::reasons::reason;
use eft_sim::asymmetric::runs::{self, Extent, Figures};
use eft_vcpu::options::Policy;
use serde_json::json;

use crate::table;

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
    /// Draw the paper's figures again, as SVG into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

struct Judged {
    claim: Claim,
    ours: Option<f64>,
    verdict: Verdict,
    share: f64,
}

pub fn run(arguments: &AsymmetricArguments) -> Result<(), String> {
    let calibration = Calibration::read()?;
    let extent = Extent {
        placements: arguments.placements,
        seconds: arguments.seconds,
        seed: arguments.seed,
        every_point: true,
        threads: usize::from(arguments.threads),
    };
    let nominal = figures(&calibration, extent)?;
    // The same twice, to the bit: one placement of everything is enough to see it.
    let once = Extent { placements: 1, ..extent };
    if figures(&calibration, once)? != figures(&calibration, Extent { threads: 1, ..once })? {
        return Err("two runs with one seed differ; the simulator is broken".into());
    }
    let mut draws = Vec::new();
    for draw in 0..arguments.draws {
        let drawn = calibration.draw(arguments.seed.wrapping_add(1000 + draw));
        draws.push(figures(&drawn, Extent { seed: extent.seed + draw, every_point: false, ..once })?);
    }
    let judge = |claim: Claim| {
        let (verdict, share) = claim.verdict(&nominal, &draws);
        Judged { ours: (claim.ours)(&nominal), verdict, share, claim }
    };
    let judged: Vec<Judged> = claims::claims().into_iter().map(judge).collect();
    if let Some(dir) = &arguments.figures {
        draw(dir, &nominal, &calibration, once)?;
    }
    let flat = claims::constant(&nominal);
    let by_constant = judged.iter().filter(|j| j.claim.holds(&flat)).count();
    report(arguments, &judged, by_constant, &nominal)?;
    check(&judged)
}

fn figures(calibration: &Calibration, extent: Extent) -> Result<Figures, String> {
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
) -> Result<(), String> {
    if arguments.json {
        let claim = |j: &Judged| {
            json!({ "claim": j.claim.id, "says": j.claim.says, "paper": j.claim.rule.paper(), "ours": j.ours,
                    "deviation_percent": j.ours.map(|o| j.claim.rule.deviation(o)), "verdict": j.verdict.name(),
                    "share_of_draws": j.share, "fitted": j.claim.fitted, "reason": reason_of(j) })
        };
        let all = json!({ "claims": judged.iter().map(claim).collect::<Vec<_>>(), "constant_model_passes": by_constant, "figures": nominal });
        return table::print(&(serde_json::to_string_pretty(&all).map_err(|e| e.to_string())? + "\n"));
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
    table::print(&table::columns(&rows))?;
    for (claim, why) in judged.iter().filter_map(|j| Some((&j.claim.id, reason_of(j)?))) {
        table::print(&format!("{claim}: {why}\n"))?;
    }
    let count = |verdict| judged.iter().filter(|j| j.verdict == verdict).count();
    let spread =
        nominal.iter().filter(|(name, _)| name.ends_with("/spread")).map(|(_, v)| *v).fold(0.0, f64::max);
    table::print(&format!(
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

/// Of what was held out, nine in ten orders and six in ten numbers are to be reproduced.
fn check(judged: &[Judged]) -> Result<(), String> {
    let share = |numbers: bool| {
        let of = judged.iter().filter(|j| !j.claim.fitted && j.claim.rule.is_number() == numbers);
        let good = of.clone().filter(|j| j.verdict == Verdict::Reproduced).count();
        (good, of.count())
    };
    let ((orders, of_orders), (numbers, of_numbers)) = (share(false), share(true));
    if orders * 10 >= of_orders * 9 && numbers * 10 >= of_numbers * 6 {
        return Ok(());
    }
    Err(format!(
        "of the claims held out {orders} of {of_orders} orders (aim 90%) and {numbers} of {of_numbers} numbers (aim 60%) are reproduced"
    ))
}

fn draw(dir: &Path, figures: &Figures, calibration: &Calibration, extent: Extent) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{} cannot be made ({error})", dir.display()))?;
    let write = |name: &str, svg: String| {
        let path = dir.join(name);
        std::fs::write(&path, svg).map_err(|error| format!("{} cannot be written ({error})", path.display()))
    };
    let get = |name: String| figures.get(&name).copied().unwrap_or(f64::NAN);
    let programs: Vec<&str> = runs::SINGLE.iter().chain(&runs::PARALLEL).copied().collect();
    let of = |key: &str, name: &str| get(format!("fig2/{name}/{key}"));
    let keys = ["measured", "from-fast", "from-slow"];
    let rows: Vec<(String, Vec<f64>)> = programs
        .iter()
        .map(|name| (name.to_string(), keys.iter().map(|key| of(key, name)).collect()))
        .collect();
    write("figure-2.svg", bars("Figure 2: speed-ups, measured and predicted", &keys, &rows, 1.0))?;
    figure_4_charts(&write)?;
    let scale = |name: &str, way: &str| {
        let at = |count: usize| get(format!("scale/{name}/{way}/{count}/vm0"));
        runs::COUNTS.iter().map(|count| (*count as f64, at(*count) / at(0))).collect::<Vec<_>>()
    };
    let series: Vec<Series> = runs::PARALLEL
        .iter()
        .map(|name| Series { name: name.to_string(), points: scale(name, "pinned") })
        .collect();
    write("figure-6.svg", lines("Figure 6: pinned, speed-up over all slow", "fast cores", &series, None))?;
    for (scenario, file) in [
        (Scenario::Single, "figure-7.svg"),
        (Scenario::Multi, "figure-8.svg"),
        (Scenario::Overcommitted, "figure-10.svg"),
    ] {
        write(file, speed_ups(scenario, figures))?;
    }
    if let Some(mix) = mixes::find("1H-1M-1L") {
        for (policy, file) in
            [(Policy::AmpFair(100), "figure-9-amp-fair.svg"), (Policy::AmpVm, "figure-9-amp-vm.svg")]
        {
            let usage = runs::breakdown(calibration, mix, policy, extent)?;
            let fast = |vm: &Vec<(u32, u32)>| {
                vm.iter().enumerate().map(|(s, (fast, _))| (s as f64, f64::from(*fast) / 1000.0)).collect()
            };
            let series: Vec<Series> = mix
                .vms
                .iter()
                .zip(&usage)
                .map(|((name, ..), vm)| Series { name: name.to_string(), points: fast(vm) })
                .collect();
            write(
                file,
                lines(
                    &format!("Figure 9: fast cores used in 1H-1M-1L under {policy}"),
                    "seconds",
                    &series,
                    Some(0.0),
                ),
            )?;
        }
    }
    let partial: Vec<(String, Vec<f64>)> = runs::PARTIAL
        .iter()
        .flat_map(|mix| {
            let ways = ["amp-vm", "amp-fair:20", "amp-fair:40", "amp-fair:60", "amp-fair:80"];
            ways.map(|way| {
                (
                    format!("{mix} {way}"),
                    ["mean", "most", "least"].map(|key| get(format!("mix/{mix}/{way}/{key}"))).to_vec(),
                )
            })
        })
        .collect();
    write(
        "figure-11.svg",
        bars("Figure 11: speed-ups with partially fair policies", &["mean", "most", "least"], &partial, 1.0),
    )?;
    for name in runs::SCALING {
        let ways = ["pinned", "credit", "amp-fair", "amp-vm", "amp-vcpu"];
        let series: Vec<Series> =
            ways.iter().map(|way| Series { name: way.to_string(), points: scale(name, way) }).collect();
        write(
            &format!("figure-12-{name}.svg"),
            lines(&format!("Figure 12: {name}, one VM"), "fast cores", &series, None),
        )?;
    }
    for mix in MIXES.iter().filter(|mix| mix.scenario == Scenario::Multi) {
        let at =
            |way: &str, count: usize, vm: usize| get(format!("scales/{}/{way}/{count}/vm{vm}", mix.name));
        let ratio = |of: &dyn Fn(usize, usize) -> f64| -> Vec<Series> {
            let points = |vm| runs::COUNTS.iter().map(|count| (*count as f64, of(*count, vm))).collect();
            mix.vms
                .iter()
                .enumerate()
                .map(|(vm, (name, ..))| Series { name: name.to_string(), points: points(vm) })
                .collect()
        };
        for way in ["pinned", "amp-vm"] {
            let series = ratio(&|count, vm| at(way, count, vm) / at(way, 0, vm));
            write(
                &format!("figure-13-{}-{way}.svg", mix.name),
                lines(&format!("Figure 13: {} under {way}", mix.name), "fast cores", &series, None),
            )?;
        }
        let series = ratio(&|count, vm| at("amp-vm", count, vm) / at("amp-fair", count, vm));
        write(
            &format!("figure-14-{}.svg", mix.name),
            lines(&format!("Figure 14: {}, amp-vm over amp-fair", mix.name), "fast cores", &series, None),
        )?;
    }
    Ok(())
}

fn figure_4_charts(write: &impl Fn(&str, String) -> Result<(), String>) -> Result<(), String> {
    let points = |fair: f64, of: fn(f64, f64) -> f64| {
        (0..=10).map(|i| 1.0 + f64::from(i) / 10.0).map(|x| (x, of(fair, x))).collect()
    };
    let series = |of: fn(f64, f64) -> f64| -> Vec<Series> {
        [("max throughput", 0.0), ("50% fair", 0.5), ("100% fair", 1.0)]
            .map(|(name, fair)| Series { name: name.into(), points: points(fair, of) })
            .into()
    };
    let x = "fast core efficiency of the second VM";
    write(
        "figure-4-throughput.svg",
        lines("Figure 4: throughput over two slow cores", x, &series(|f, e| figure_4(f, e).throughput), None),
    )?;
    write(
        "figure-4-slowdown.svg",
        lines("Figure 4: largest slowdown", x, &series(|f, e| figure_4(f, e).slowdown), Some(0.0)),
    )
}

fn speed_ups(scenario: Scenario, figures: &Figures) -> String {
    let ways = ["all-slow", "credit", "amp-vm", "amp-vcpu", "all-fast"];
    let mut rows = Vec::new();
    for mix in MIXES.iter().filter(|mix| mix.scenario == scenario) {
        for key in ["high", "medium", "low", "mean"] {
            let values: Vec<f64> = ways
                .iter()
                .filter_map(|way| figures.get(&format!("mix/{}/{way}/{key}", mix.name)).copied())
                .collect();
            if values.len() == ways.len() {
                rows.push((format!("{} {key}", mix.name), values));
            }
        }
    }
    bars(&format!("Speed-ups over amp-fair, {}", scenario.name()), &ways, &rows, 1.0)
}
