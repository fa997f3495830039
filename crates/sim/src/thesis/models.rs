//! Null models, which show how many claims distinguish anything.

use crate::judge::Figures;

/// Every configuration is like the one at full speed.
pub fn constant(nominal: &Figures) -> Figures {
    with(nominal, |_, full| full)
}

/// Rates are in proportion to the clocks' sum, and shares are always the same; what shares cores is at full speed.
pub fn linear(nominal: &Figures) -> Figures {
    with(nominal, |name, full| {
        let (machine, rest) = name.split_once('/').unwrap_or_default();
        let (clocks, what) = rest.rsplit_once('/').unwrap_or_default();
        let mhz: Option<Vec<f64>> = clocks.split('x').map(|mhz| mhz.parse().ok()).collect();
        match mhz {
            Some(mhz) if what == "mbps" => {
                let highest = if machine == "opteron" { 1900.0 } else { 2267.0 };
                full * mhz.iter().sum::<f64>() / (highest * mhz.len() as f64)
            }
            _ => full,
        }
    })
}

fn with(nominal: &Figures, value: impl Fn(&str, f64) -> f64) -> Figures {
    let full = |name: &str| {
        let what = name.rsplit('/').next().unwrap_or_default();
        let like = match name.split('/').next() {
            Some("opteron") => format!("opteron/1900x1900x1900x1900/{what}"),
            Some("ablation") => return 1.0,
            _ => format!("xeon/2267x2267x2267x2267x2267/{what}"),
        };
        nominal.get(&like).copied().unwrap_or(f64::NAN)
    };
    nominal.keys().map(|name| (name.clone(), value(name, full(name)))).collect()
}
