//! Samples and their summary.

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Median distance from the median.
    pub spread: f64,
    pub samples: Vec<f64>,
}

impl Samples {
    pub fn new(samples: Vec<f64>) -> Samples {
        let mut all = Samples { samples, ..Samples::default() };
        all.summarise();
        all
    }

    pub fn push(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    /// Fills in the summary; the samples stay in the order in which they were taken.
    pub fn summarise(&mut self) {
        self.median = median(&self.samples);
        self.low = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        self.high = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let distances: Vec<f64> = self.samples.iter().map(|sample| (sample - self.median).abs()).collect();
        self.spread = median(&distances);
        if self.samples.is_empty() {
            (self.low, self.high) = (0.0, 0.0);
        }
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests;
