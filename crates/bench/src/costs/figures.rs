//! What a message of a load costs, by its replay and on a live stack.

use super::replayed::{OfLoad, Replayed};
use super::times::Times;
use crate::figure::Figure;

/// What a message of each load costs, whatever its kind.
pub fn figures(replayed: &Replayed, times: Option<&Times>, clock_mhz: f64) -> Vec<Figure> {
    let of = |load: &OfLoad| {
        let (first, last) = load.misses();
        let name = |what: &str| format!("{}, {}: {what}", replayed.component, load.load);
        let mut figures = vec![
            Figure::new(name("instructions of a message"), "", vec![load.instructions()]),
            Figure::new(name("misses of the first level"), "", vec![first]),
            Figure::new(name("misses of the last level"), "", vec![last]),
            Figure::new(name("cycles of the replay"), "", vec![load.native_ns() * clock_mhz / 1000.0]),
        ];
        let samples = times.map_or(Vec::new(), |times| times.of_messages(&load.load, replayed.component));
        if !samples.is_empty() {
            let cycles = samples.iter().map(|ns| ns * clock_mhz / 1000.0).collect();
            figures.push(Figure::new(name("cycles of the live server"), "", cycles));
        }
        figures
    };
    replayed.loads.iter().flat_map(of).collect()
}
