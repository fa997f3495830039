//! Figures 2 to 5 of slower-is-faster, drawn again from the model's.

use std::path::Path;

use anyhow::{Result, anyhow};
use eft_sim::chart::{Series, bars, lines};
use eft_sim::judge::Figures;
use eft_sim::slower_is_faster::runs::SHARED;

const SEARCHED: [(u32, u32); 8] =
    [(200, 200), (400, 200), (600, 200), (800, 400), (1000, 400), (1200, 600), (1400, 600), (1600, 600)];
/// Every core at this clock is all of the resources, MHz.
const FULL_MHZ: f64 = 1600.0;

pub fn draw(dir: &Path, newtos: &Figures, eft: &Figures) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| anyhow!("{} cannot be made ({error})", dir.display()))?;
    for (system, figures) in [("newtos", newtos), ("eft", eft)] {
        for (name, svg) in all(system, figures) {
            let path = dir.join(format!("{name}-{system}.svg"));
            std::fs::write(&path, svg)
                .map_err(|error| anyhow!("{} cannot be written ({error})", path.display()))?;
        }
    }
    Ok(())
}

fn all(system: &str, figures: &Figures) -> Vec<(&'static str, String)> {
    let get = |name: String| figures.get(&name).copied().unwrap_or(f64::NAN);
    let rates = SEARCHED.map(|(tcp, others)| {
        let resources = f64::from(tcp + 2 * others) / (3.0 * FULL_MHZ) * 100.0;
        (resources, get(format!("c1/{tcp}/{others}/mbps")) / 1000.0)
    });
    let of_all = vec![
        (rates[0].0, get("c1/1600/1600/mbps".into()) / 1000.0),
        (100.0, get("c1/1600/1600/mbps".into()) / 1000.0),
    ];
    let figure_2 = lines(
        &format!("Figure 2: rate over resources, {system}"),
        ["resources, % of three cores at 1600 MHz", "Gb/s"],
        &[
            Series { name: "best settings".into(), points: rates.to_vec() },
            Series { name: "all at 1600 MHz".into(), points: of_all },
        ],
        Some(0.0),
    );
    let busy = |title: &str, sets: Vec<(String, String)>| {
        let rows: Vec<(String, Vec<f64>)> = sets
            .into_iter()
            .map(|(label, name)| {
                (label, ["tcp", "ip", "driver"].map(|s| get(format!("{name}/{s}"))).to_vec())
            })
            .collect();
        bars(&format!("{title}, {system}"), "utilisation, %", &["tcp", "ip", "driver"], &rows, 100.0)
    };
    let dedicated = SEARCHED.map(|(t, o)| (format!("{t} {o} {o}"), format!("c1/{t}/{o}"))).to_vec();
    let threaded = SHARED.map(|(t, s, _)| (format!("{t} {s}"), format!("c2/{t}/{s}"))).to_vec();
    let compared: Vec<(String, Vec<f64>)> = SHARED
        .iter()
        .map(|(tcp, shared, own)| {
            let rate = |name: String| get(name) / 1000.0;
            let values = vec![rate(format!("c1/{tcp}/{own}/mbps")), rate(format!("c2/{tcp}/{shared}/mbps"))];
            (format!("{tcp}, {own} or {shared}"), values)
        })
        .collect();
    let title = format!("Figure 5: cores and threads, {system}");
    vec![
        ("figure-2", figure_2),
        ("figure-3", busy("Figure 3: configuration #1", dedicated)),
        ("figure-4", busy("Figure 4: configuration #2", threaded)),
        ("figure-5", bars(&title, "Gb/s", &["#1: three cores", "#2: two cores"], &compared, 0.0)),
    ]
}
