//! `eft-sim paper thesis`: what it runs, and its figures.

use anyhow::Result;
use eft_sim::calibration::Calibration;
use eft_sim::chart::bars;
use eft_sim::judge::Figures;
use eft_sim::thesis::claims::claims;
use eft_sim::thesis::models;
use eft_sim::thesis::reasons::reason;
use eft_sim::thesis::runs::{Machines, OPTERON, Stack, XEON, figures};

use super::columns::{Both, Draw, Paper, get};
use super::tiers::Experiments;

pub const PAPER: Paper = Paper {
    claims,
    reason,
    both,
    constant: models::constant,
    linear: models::linear,
    ablation: (
        "ablation/filter",
        "without the cost of empty polls, all at full speed over all but ip slowed",
    ),
    tiers: Experiments::Thesis,
    pictures,
};

fn both(calibration: Calibration, draw: Draw, seed: u64) -> Result<Both> {
    let machines = Machines::of(calibration, (draw == Draw::Drawn).then_some(seed))?;
    let of = |stack| figures(&machines, stack, seed);
    Ok(Both { newtos: of(Stack::Newtos)?, eft: of(Stack::Eft)? })
}

const CONSOLIDATED: [&str; 8] = [
    "1900x1900x1900x1900",
    "posix, shared",
    "ip, shared",
    "posix 800, shared; ip 1300, driver 800",
    "tcp+ip",
    "ip+driver",
    "tcp+driver",
    "tcp+ip+driver",
];

fn pictures(nominal: &Both) -> Vec<(String, String)> {
    let both = [("newtos", &nominal.newtos), ("eft", &nominal.eft)];
    let mut all: Vec<(String, String)> = Vec::new();
    let opteron = OPTERON.map(|mhz| (label(["posix", "tcp", "ip", "driver"], mhz), tuple(mhz)));
    let xeon = XEON.map(|mhz| (label(["posix", "tcp", "filter", "ip", "driver"], mhz), tuple(mhz)));
    let named = |names: &[&str]| names.iter().map(|n| (n.to_string(), n.to_string())).collect::<Vec<_>>();
    let filtered = [&xeon[..], &named(&["boosted"])].concat();
    let threads = [&xeon[..1], &named(&["threads", "tcp+ip"])].concat();
    for (figure, title, machine, names) in [
        ("figure-4.3", "Figures 4.1 and 4.3: clocks on the Opteron, MHz", "opteron", opteron.to_vec()),
        ("figure-4.5", "Figures 4.4 and 4.5: shared cores", "opteron", named(&CONSOLIDATED)),
        ("figure-4.7", "Figures 4.6 and 4.7: clocks on the Xeon, MHz", "xeon", filtered),
        ("figure-4.8", "Figure 4.8: hardware threads", "xeon", threads),
    ] {
        let rates =
            |name: String| both.map(|(_, f)| get(f, format!("{machine}/{name}/mbps")) / 1000.0).to_vec();
        let rows: Vec<(String, Vec<f64>)> =
            names.into_iter().map(|(label, name)| (label, rates(name))).collect();
        all.push((figure.into(), bars(title, "Gb/s", &["newtos", "eft"], &rows, 0.0)));
    }
    for (system, figures) in both {
        all.push((format!("figure-4.2-{system}"), figure_4_2(system, figures)));
    }
    all
}

fn tuple<const N: usize>(mhz: [u64; N]) -> String {
    mhz.map(|mhz| mhz.to_string()).join("x")
}

/// Short enough for an axis: who is slower than the fastest, or who is not.
fn label<const N: usize>(servers: [&str; N], mhz: [u64; N]) -> String {
    let (fastest, slowest) = (mhz.into_iter().max().unwrap_or(0), mhz.into_iter().min().unwrap_or(0));
    let at = |clock: u64| {
        let those = servers.iter().zip(mhz).filter(|(_, mhz)| *mhz == clock);
        those.map(|(server, _)| *server).collect::<Vec<_>>()
    };
    let (fast, slow) = (at(fastest), at(slowest));
    match (fast.len(), slow.len()) {
        (all, _) if all == N => format!("all {fastest}"),
        (_, 1) => format!("{} {slowest}", slow[0]),
        (1 | 2, others) if others + fast.len() == N => {
            format!("not {} {slowest}", fast.join("+"))
        }
        _ => tuple(mhz),
    }
}

/// Utilisation for each of ip's clocks.
fn figure_4_2(system: &str, figures: &Figures) -> String {
    let row = |ip: u64| {
        let name = format!("opteron/1900x1900x{ip}x1900");
        let of = |server: &str| get(figures, format!("{name}/{server}"));
        (ip.to_string(), ["posix", "tcp", "ip", "driver"].map(of).to_vec())
    };
    let rows = [1900, 1700, 1500, 1300, 1000, 800].map(row);
    let title = format!("Figure 4.2: utilisation over ip's clock, {system}");
    bars(&title, "utilisation, %", &["posix", "tcp", "ip", "driver"], &rows, 100.0)
}
