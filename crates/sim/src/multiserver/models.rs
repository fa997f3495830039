//! Null models, which show how many claims distinguish anything.

use crate::judge::Figures;

/// Every configuration is like all cores at 1600 MHz, and every number of connections like eight, on every stack.
pub fn constant(nominal: &Figures) -> Figures {
    with(nominal, |_, reference| reference)
}

/// Rates, and answers per joule, are in proportion to the clocks' sum, or to connections.
pub fn linear(nominal: &Figures) -> Figures {
    with(nominal, |name, reference| {
        let parts: Vec<&str> = name.split('/').collect();
        let number = |i: usize| parts.get(i).and_then(|part| part.parse::<f64>().ok()).unwrap_or(0.0);
        match parts.as_slice() {
            ["figure-2", ..] => reference * number(2) / 8.0,
            [.., "rate" | "mbps" | "per-joule"] => reference * (2.0 * number(1) + number(2)) / 4800.0,
            _ => reference,
        }
    })
}

fn with(nominal: &Figures, value: impl Fn(&str, f64) -> f64) -> Figures {
    let reference = |name: &str| {
        let like = match name.split('/').collect::<Vec<_>>().as_slice() {
            ["figure-2", ..] => "figure-2/linux/8/rate".to_string(),
            [file, .., what] => format!("{file}/1600/1600/{what}"),
            _ => name.to_string(),
        };
        nominal.get(&like).copied().unwrap_or(f64::NAN)
    };
    nominal.keys().map(|name| (name.clone(), value(name, reference(name)))).collect()
}
