//! The throughput around a fault as a picture (SVG): each time it came a thin line, their median a thick one.

use std::fmt::Write;

use super::pulse::{AFTER, BEFORE};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 30.0;
/// Milliseconds whose throughput is one point.
const STEP: f64 = 5.0;

/// Windows of milliseconds since the fault, and Gb/s.
pub fn draw(title: &str, windows: &[&[(f64, f64)]]) -> String {
    let (from, to) = (-(BEFORE.as_millis() as f64), AFTER.as_millis() as f64);
    let lines: Vec<Vec<f64>> = windows.iter().map(|window| steps(window, from, to)).collect();
    let most = lines.iter().flatten().copied().fold(0.1, f64::max);
    let x = |ms: f64| LEFT + (ms - from) / (to - from) * (WIDTH - LEFT - 12.0);
    let y = |rate: f64| HEIGHT - BOTTOM - rate / most * (HEIGHT - BOTTOM - TOP);
    let path = |line: &[f64]| {
        let point =
            |(i, rate): (usize, &f64)| format!("{:.1},{:.1}", x(from + (i as f64 + 0.5) * STEP), y(*rate));
        line.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
    };
    let mut all = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">{title}</text>\n"
    );
    let (zero, ground) = (x(0.0), y(0.0));
    let _ =
        writeln!(all, "<line x1=\"{zero}\" y1=\"{TOP}\" x2=\"{zero}\" y2=\"{ground}\" stroke=\"#c0392b\"/>");
    let _ = writeln!(
        all,
        "<line x1=\"{LEFT}\" y1=\"{ground}\" x2=\"{WIDTH}\" y2=\"{ground}\" stroke=\"black\"/>"
    );
    for line in &lines {
        let _ = writeln!(
            all,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#2c6fbb\" stroke-opacity=\"0.25\"/>",
            path(line)
        );
    }
    let _ = writeln!(
        all,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1a3f6b\" stroke-width=\"2\"/>",
        path(&median(&lines))
    );
    for ms in (from as i64..=to as i64).step_by(100) {
        let _ = writeln!(
            all,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{ms}</text>",
            x(ms as f64),
            ground + 16.0
        );
    }
    for rate in [0.0, most / 2.0, most] {
        let _ = writeln!(
            all,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{rate:.1}</text>",
            LEFT - 6.0,
            y(rate) + 4.0
        );
    }
    let _ = writeln!(
        all,
        "<text x=\"{LEFT}\" y=\"{}\">Gb/s over ms since the fault; thick: median</text>\n</svg>",
        HEIGHT - 6.0
    );
    all
}

/// The mean rate of each step.
fn steps(window: &[(f64, f64)], from: f64, to: f64) -> Vec<f64> {
    let count = ((to - from) / STEP) as usize;
    let mean = |i: usize| {
        let begin = from + i as f64 * STEP;
        let within =
            window.iter().filter(|(ms, _)| (begin..begin + STEP).contains(ms)).map(|(_, rate)| *rate);
        let all: Vec<f64> = within.collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    (0..count).map(mean).collect()
}

fn median(lines: &[Vec<f64>]) -> Vec<f64> {
    let count = lines.first().map_or(0, Vec::len);
    let at = |i: usize| crate::samples::Samples::new(lines.iter().map(|line| line[i]).collect()).median;
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests;
