//! What each kind of work costs, from stretches in which different numbers of all kinds were done.

/// One stretch: how often each kind was done, and what all of it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    pub counts: Vec<f64>,
    pub cost: f64,
}

/// Steps of the descent; each visits every kind once.
const STEPS: usize = 20_000;

/// Costs of one of each kind, none below zero, whose sums differ least from the stretches' costs, by least squares of the
/// relative differences: long stretches do not count for more. A kind that never occurs costs nothing.
pub fn costs(stretches: &[Stretch]) -> Vec<f64> {
    let kinds = stretches.first().map_or(0, |s| s.counts.len());
    let rows: Vec<&Stretch> = stretches.iter().filter(|s| s.cost > 0.0).collect();
    // The normal equations, each row divided by its cost.
    let product = |i: usize, j: usize| -> f64 {
        rows.iter().map(|s| s.counts[i] * s.counts[j] / (s.cost * s.cost)).sum()
    };
    let matrix: Vec<Vec<f64>> = (0..kinds).map(|i| (0..kinds).map(|j| product(i, j)).collect()).collect();
    let right: Vec<f64> = (0..kinds).map(|i| rows.iter().map(|s| s.counts[i] / s.cost).sum()).collect();
    let mut found = vec![0.0; kinds];
    for _ in 0..STEPS {
        for i in 0..kinds {
            if matrix[i][i] > 0.0 {
                let others: f64 = (0..kinds).filter(|j| *j != i).map(|j| matrix[i][j] * found[j]).sum();
                found[i] = ((right[i] - others) / matrix[i][i]).max(0.0);
            }
        }
    }
    found
}

/// The median of how far stretches' costs are from what these costs sum up to, as a share.
pub fn error(stretches: &[Stretch], costs: &[f64]) -> f64 {
    let off = |s: &Stretch| (total(&s.counts, costs) / s.cost - 1.0).abs();
    let mut all: Vec<f64> = stretches.iter().filter(|s| s.cost > 0.0).map(off).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn total(counts: &[f64], costs: &[f64]) -> f64 {
    counts.iter().zip(costs).map(|(count, cost)| count * cost).sum()
}

/// Of the fits that leave out one of the groups each: the least and the most that each kind costs. One group alone has no range.
pub fn ranges(groups: &[Vec<Stretch>]) -> Vec<(f64, f64)> {
    let without = |left_out: usize| -> Vec<f64> {
        let rest = groups.iter().enumerate().filter(|(i, _)| *i != left_out).flat_map(|(_, all)| all.clone());
        costs(&rest.collect::<Vec<_>>())
    };
    let fits: Vec<Vec<f64>> = match groups {
        [one] => vec![costs(one)],
        _ => (0..groups.len()).map(without).collect(),
    };
    let kinds = fits.first().map_or(0, Vec::len);
    let of = |kind: usize| fits.iter().map(move |fit| fit[kind]).filter(|cost| *cost > 0.0);
    (0..kinds)
        .map(|kind| (of(kind).fold(f64::INFINITY, f64::min), of(kind).fold(0.0, f64::max)))
        .map(|(low, high)| if high > 0.0 { (low, high) } else { (0.0, 0.0) })
        .collect()
}

#[cfg(test)]
mod tests;
