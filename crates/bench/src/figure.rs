//! Medians with their intervals, beside a baseline of the same run, and whether an aim is reached.

use crate::samples::Samples;

/// What a figure should be. A benchmark whose figure misses its aim by the median exits 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn holds(self, value: f64) -> bool {
        match self {
            Aim::AtMost(most) => value <= most,
            Aim::AtLeast(least) => value >= least,
        }
    }

    pub fn text(self) -> String {
        match self {
            Aim::AtMost(most) => format!("at most {most}"),
            Aim::AtLeast(least) => format!("at least {least}"),
        }
    }
}

/// One figure of a report.
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub samples: Vec<f64>,
    /// The name of the baseline, and its samples of the same rounds.
    pub baseline: Option<(&'static str, Vec<f64>)>,
    pub aim: Option<Aim>,
}

impl Figure {
    pub fn new(what: impl Into<String>, unit: &'static str, samples: Vec<f64>) -> Figure {
        Figure { what: what.into(), unit, samples, baseline: None, aim: None }
    }

    pub fn beside(mut self, name: &'static str, samples: Vec<f64>) -> Figure {
        self.baseline = Some((name, samples));
        self
    }

    pub fn aim(mut self, aim: Aim) -> Figure {
        self.aim = Some(aim);
        self
    }

    pub fn median(&self) -> f64 {
        Samples::new(self.samples.clone()).median
    }

    /// What the aim is compared with: with a baseline the ratio of each round, since a shared machine's speed varies
    /// between rounds; else the samples themselves.
    pub fn judged(&self) -> Vec<f64> {
        match &self.baseline {
            Some((_, baseline)) => {
                self.samples.iter().zip(baseline).map(|(own, other)| own / other).collect()
            }
            None => self.samples.clone(),
        }
    }

    pub fn is_missed(&self) -> bool {
        // A NaN must not count as success.
        self.aim.is_some_and(|aim| !aim.holds(Samples::new(self.judged()).median))
    }

    /// The whole interval says yes or no, or only the median does.
    pub fn verdict(&self) -> &'static str {
        let Some(aim) = self.aim else { return "-" };
        let interval = Interval::of(&self.judged());
        match (self.is_missed(), aim.holds(interval.low), aim.holds(interval.high)) {
            (false, true, true) => "yes",
            (false, ..) => "by the median",
            (true, false, false) => "no",
            (true, ..) => "not by the median",
        }
    }
}

/// Of the median, without an assumption about the distribution: between two of the ordered samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// With fewer than six samples even the smallest and the largest cover less than 95%.
    pub coverage: f64,
}

impl Interval {
    pub fn of(samples: &[f64]) -> Interval {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
            return Interval { low: 0.0, high: 0.0, coverage: 0.0 };
        };
        // A median lies outside of the k-th from each end with the chance of fewer than k heads in `count` throws.
        let mut interval = Interval { low: *first, high: *last, coverage: coverage(count, 1) };
        let mut k = 2;
        while 2 * k <= count && coverage(count, k) >= 0.95 {
            interval = Interval { low: sorted[k - 1], high: sorted[count - k], coverage: coverage(count, k) };
            k += 1;
        }
        interval
    }
}

fn coverage(count: usize, k: usize) -> f64 {
    let mut heads = 0.5f64.powi(count.min(1000) as i32);
    let mut fewer = 0.0;
    for i in 0..k {
        fewer += heads;
        heads *= (count - i) as f64 / (i + 1) as f64;
    }
    1.0 - 2.0 * fewer
}

#[cfg(test)]
mod tests;
