//! `eft-sim paper multiserver`: what it runs, and its figures.

use anyhow::Result;
use eft_sim::batch::calibrated::Ablation;
use eft_sim::calibration::Calibration;
use eft_sim::chart::{Series, lines};
use eft_sim::judge::Figures;
use eft_sim::multiserver::claims::claims;
use eft_sim::multiserver::models;
use eft_sim::multiserver::reasons::reason;
use eft_sim::multiserver::runs::{Bench, CONNECTIONS, SIZES, SPEEDS, figures};
use eft_sim::web::calibrated::Stack;

use super::columns::{Both, Draw, Paper, get};
use super::tiers::Experiments;

pub const PAPER: Paper = Paper {
    claims,
    reason,
    both,
    constant: models::constant,
    linear: models::linear,
    ablation: (
        "ablation/slower",
        "without wake-up latency, 1 MB with a driver at 400 MHz, the best speed of tcp and ip over 1600 MHz",
    ),
    tiers: Experiments::Multiserver,
    pictures,
};

fn both(calibration: Calibration, _: Draw, seed: u64) -> Result<Both> {
    let bench = |stack| Bench::new(&calibration, stack, Ablation::default(), seed);
    let linux = bench(Stack::Kernel)?;
    let of = |stack| figures(&bench(stack)?, &linux);
    Ok(Both { newtos: of(Stack::Newtos)?, eft: of(Stack::Eft)? })
}

fn size(file: u64) -> String {
    match file {
        0..1_000 => format!("{file} B"),
        1_000..1_000_000 => format!("{} kB", file / 1_000),
        _ => format!("{} MB", file / 1_000_000),
    }
}

fn pictures(nominal: &Both) -> Vec<(String, String)> {
    let mut all = vec![("figure-2".to_string(), figure_2(nominal))];
    for (system, figures) in [("newtos", &nominal.newtos), ("eft", &nominal.eft)] {
        for (i, file) in SIZES.into_iter().enumerate() {
            let letter = |at: usize| char::from(b'a' + at as u8);
            let title = format!("Figure 3{}: {}, {system}", letter(i), size(file));
            all.push((format!("figure-3{}-{system}", letter(i)), figure_3(figures, &title, file, true)));
            let title = format!("Figure 3{}: {}, {system}", letter(i + 4), size(file));
            all.push((format!("figure-3{}-{system}", letter(i + 4)), figure_3(figures, &title, file, false)));
        }
    }
    all
}

/// Rates over connections; the axis has their logarithm to base 2.
fn figure_2(nominal: &Both) -> String {
    let series = |name: &str, figures: &Figures, stack: &str| Series {
        name: name.into(),
        points: CONNECTIONS
            .map(|count| {
                ((count as f64).log2(), get(figures, format!("figure-2/{stack}/{count}/rate")) / 1000.0)
            })
            .to_vec(),
    };
    let all = [
        series("newtos", &nominal.newtos, "stack"),
        series("eft", &nominal.eft, "stack"),
        series("linux", &nominal.newtos, "linux"),
    ];
    let axes = ["connections, logarithm to base 2", "thousand answers/s"];
    lines("Figure 2: 10 B over connections", axes, &all, Some(0.0))
}

/// The driver's clock across and a line for each of tcp's and ip's, or the reverse.
fn figure_3(figures: &Figures, title: &str, file: u64, driver_across: bool) -> String {
    let is_bits = file == SIZES[SIZES.len() - 1];
    let (what, unit, by) =
        if is_bits { ("mbps", "Gb/s", 1000.0) } else { ("rate", "thousand answers/s", 1000.0) };
    let series = SPEEDS.map(|line| Series {
        name: format!("{} {line} MHz", if driver_across { "tcp, ip" } else { "driver" }),
        points: SPEEDS
            .map(|across| {
                let (tcp_ip, driver) = if driver_across { (line, across) } else { (across, line) };
                (across as f64, get(figures, format!("{file}/{tcp_ip}/{driver}/{what}")) / by)
            })
            .to_vec(),
    });
    let across = if driver_across { "driver's core, MHz" } else { "tcp's and ip's cores, MHz" };
    lines(title, [across, unit], &series, Some(0.0))
}
