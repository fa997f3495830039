//! The paper's figures, drawn again from the model's.

use std::path::Path;

use anyhow::{Result, anyhow};
use eft_sim::asymmetric::analytic::figure_4;
use eft_sim::asymmetric::calibration::Calibration;
use eft_sim::asymmetric::mixes::{self, MIXES, Scenario};
use eft_sim::asymmetric::runs::{self, Extent, Figures};
use eft_sim::chart::{Series, areas, bars, lines};
use eft_vcpu::options::Policy;

const OVER_SLOW: [&str; 2] = ["fast cores", "speed-up over all slow"];

/// All figures of the paper that show results, into a folder.
pub fn draw(dir: &Path, figures: &Figures, calibration: &Calibration, extent: Extent) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| anyhow!("{} cannot be made ({error})", dir.display()))?;
    let write = |name: &str, svg: String| {
        let path = dir.join(name);
        std::fs::write(&path, svg).map_err(|error| anyhow!("{} cannot be written ({error})", path.display()))
    };
    let get = |name: String| figures.get(&name).copied().unwrap_or(f64::NAN);
    let programs: Vec<&str> = runs::SINGLE.iter().chain(&runs::PARALLEL).copied().collect();
    let of = |key: &str, name: &str| get(format!("fig2/{name}/{key}"));
    let keys = ["measured", "from-fast", "from-slow"];
    let rows: Vec<(String, Vec<f64>)> = programs
        .iter()
        .map(|name| (name.to_string(), keys.iter().map(|key| of(key, name)).collect()))
        .collect();
    write(
        "figure-2.svg",
        bars("Figure 2: speed-ups, measured and predicted", "all fast over all slow", &keys, &rows, 1.0),
    )?;
    figure_4_charts(&write)?;
    let scale = |name: &str, way: &str| {
        let at = |count: usize| get(format!("scale/{name}/{way}/{count}/vm0"));
        runs::COUNTS.iter().map(|count| (*count as f64, at(*count) / at(0))).collect::<Vec<_>>()
    };
    let series: Vec<Series> = runs::PARALLEL
        .iter()
        .map(|name| Series { name: name.to_string(), points: scale(name, "pinned") })
        .collect();
    write("figure-6.svg", lines("Figure 6: pinned", OVER_SLOW, &series, None))?;
    for (scenario, file) in [
        (Scenario::Single, "figure-7.svg"),
        (Scenario::Multi, "figure-8.svg"),
        (Scenario::Overcommitted, "figure-10.svg"),
    ] {
        write(file, speed_ups(scenario, figures))?;
    }
    figure_9(&write, calibration, extent)?;
    let partial: Vec<(String, Vec<f64>)> = runs::PARTIAL
        .iter()
        .flat_map(|mix| {
            let ways = ["amp-vm", "amp-fair:20", "amp-fair:40", "amp-fair:60", "amp-fair:80"];
            ways.map(|way| {
                let even = way.strip_prefix("amp-fair:").map_or("0", |percent| percent);
                (
                    format!("{mix}, R = {even}"),
                    ["mean", "most", "least"].map(|key| get(format!("mix/{mix}/{way}/{key}"))).to_vec(),
                )
            })
        })
        .collect();
    write(
        "figure-11.svg",
        bars(
            "Figure 11: partially fair policies",
            "speed-up over amp-fair",
            &["mean", "most", "least"],
            &partial,
            1.0,
        ),
    )?;
    for name in runs::SCALING {
        let ways = ["pinned", "credit", "amp-fair", "amp-vm", "amp-vcpu"];
        let series: Vec<Series> =
            ways.iter().map(|way| Series { name: way.to_string(), points: scale(name, way) }).collect();
        write(
            &format!("figure-12-{name}.svg"),
            lines(&format!("Figure 12: {name}, one VM"), OVER_SLOW, &series, None),
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
                lines(&format!("Figure 13: {} under {way}", mix.name), OVER_SLOW, &series, None),
            )?;
        }
        let series = ratio(&|count, vm| at("amp-vm", count, vm) / at("amp-fair", count, vm));
        write(
            &format!("figure-14-{}.svg", mix.name),
            lines(
                &format!("Figure 14: {}, amp-vm", mix.name),
                ["fast cores", "speed-up over amp-fair"],
                &series,
                None,
            ),
        )?;
    }
    Ok(())
}

/// Fast and slow core time of each VM of a mix, second by second.
fn figure_9(
    write: &impl Fn(&str, String) -> Result<()>,
    calibration: &Calibration,
    extent: Extent,
) -> Result<()> {
    let Some(mix) = mixes::find("1H-1M-1L") else { return Ok(()) };
    for policy in [Policy::AmpFair(100), Policy::AmpVm] {
        let usage = runs::breakdown(calibration, mix, policy, extent)?;
        let end = usage.iter().map(Vec::len).max().unwrap_or(0);
        for ((name, vcpus, _), vm) in mix.vms.iter().zip(&usage) {
            let of = |pick: fn(&(u32, u32)) -> u32| -> Vec<(f64, f64)> {
                let at = |second| vm.get(second).map_or(0.0, |used| f64::from(pick(used)) / 1000.0);
                (0..end).map(|second| (second as f64, at(second))).collect()
            };
            let series = [
                Series { name: "fast".into(), points: of(|used| used.0) },
                Series { name: "slow".into(), points: of(|used| used.1) },
            ];
            let title = format!("Figure 9: {name} of 1H-1M-1L under {policy}");
            let chart = areas(&title, ["seconds", "cores used"], &series, *vcpus as f64);
            write(&format!("figure-9-{policy}-{name}.svg"), chart)?;
        }
    }
    Ok(())
}

fn figure_4_charts(write: &impl Fn(&str, String) -> Result<()>) -> Result<()> {
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
        lines(
            "Figure 4: throughput",
            [x, "over two slow cores"],
            &series(|f, e| figure_4(f, e).throughput),
            None,
        ),
    )?;
    write(
        "figure-4-slowdown.svg",
        lines(
            "Figure 4: largest slowdown",
            [x, "part lost against 100% fair"],
            &series(|f, e| figure_4(f, e).slowdown),
            Some(0.0),
        ),
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
    bars(scenario.title(), "speed-up over amp-fair", &ways, &rows, 1.0)
}
