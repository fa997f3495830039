//! Null models, which show how many claims distinguish anything.

use crate::judge::Figures;

/// Payload of a 10 Gb/s wire, Mb/s.
const WIRE_MBPS: f64 = 9_493.0;

/// Every configuration is like three cores at 1600 MHz.
pub fn constant(nominal: &Figures) -> Figures {
    with(nominal, |_, at_1600| at_1600)
}

/// The rate is in proportion to the clocks' sum, up to the wire's, and utilisation is always the same.
pub fn linear(nominal: &Figures) -> Figures {
    with(nominal, |name, at_1600| {
        let parts: Vec<&str> = name.split('/').collect();
        let mhz = |i: usize| parts.get(i).and_then(|part| part.parse::<f64>().ok()).unwrap_or(0.0);
        let sum = match (parts.first(), parts.last()) {
            (Some(&"c1"), Some(&"mbps")) => mhz(1) + 2.0 * mhz(2),
            (Some(&"c2"), Some(&"mbps")) => mhz(1) + mhz(2),
            (Some(&"one"), Some(&"mbps")) => mhz(1),
            (Some(&"search"), Some(&"others")) => return mhz(1),
            (Some(&"chip"), _) => return 80.0 * mhz(1) / 2267.0,
            _ => return at_1600,
        };
        (at_1600 * sum / 4800.0).min(WIRE_MBPS)
    })
}

fn with(nominal: &Figures, value: impl Fn(&str, f64) -> f64) -> Figures {
    let at_1600 = |name: &str| {
        let kind = name.rsplit('/').next().unwrap_or_default();
        let reference = match (name.split('/').next(), kind) {
            (Some("search"), "others") => return 1600.0,
            (Some("chip"), _) => "chip/1600/watts".to_string(),
            (Some("die"), _) => "die/8/cores".to_string(),
            _ => format!("c1/1600/1600/{kind}"),
        };
        nominal.get(&reference).copied().unwrap_or(f64::NAN)
    };
    nominal.keys().map(|name| (name.clone(), value(name, at_1600(name)))).collect()
}
