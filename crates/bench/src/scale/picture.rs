//! The curves as a picture (SVG): instructions over connections, both in powers of ten.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 64.0;
const COLOURS: [&str; 3] = ["#1a3f6b", "#c0392b", "#2e7d32"];

/// Curves with their names; each point is a number of connections and the instructions of a unit of work.
pub fn draw(curves: &[(&str, Vec<(usize, f64)>)]) -> String {
    let points = || curves.iter().flat_map(|(_, curve)| curve);
    let across = decades(points().map(|(connections, _)| *connections as f64));
    let up = decades(points().map(|(_, instructions)| *instructions));
    let x = |v: f64| LEFT + share(v, across) * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - share(v, up) * (HEIGHT - BOTTOM - TOP);
    let mut all = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let (ground, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for power in up.0..=up.1 {
        let at = y(10f64.powi(power));
        let label = 10u64.pow(power as u32);
        let _ = writeln!(
            all,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"
        );
        let _ = writeln!(
            all,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for power in across.0..=across.1 {
        let (at, label) = (x(10f64.powi(power)), 10u64.pow(power as u32));
        let _ = writeln!(
            all,
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            ground + 16.0
        );
    }
    for (i, (name, curve)) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let line: Vec<String> =
            curve.iter().map(|(n, v)| format!("{:.1},{:.1}", x(*n as f64), y(*v))).collect();
        let line = line.join(" ");
        let _ = writeln!(
            all,
            "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        let at = 18.0 + i as f64 * 15.0;
        let _ = writeln!(all, "<text x=\"{LEFT}\" y=\"{at}\" fill=\"{colour}\">{name}</text>");
    }
    let _ = writeln!(
        all,
        "<text x=\"{LEFT}\" y=\"{}\">instructions, over connections</text>\n</svg>",
        HEIGHT - 8.0
    );
    all
}

/// The powers of ten around all values; at least one decade.
fn decades(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let logs: Vec<f64> = values.filter(|v| *v >= 1.0).map(f64::log10).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(0.0, f64::max);
    let low = if low.is_finite() { low.floor() as i32 } else { 0 };
    (low, (high.ceil() as i32).max(low + 1))
}

fn share(value: f64, (low, high): (i32, i32)) -> f64 {
    (value.max(1.0).log10() - low as f64) / (high - low) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_lies_within_the_picture() {
        let curves = [("flat", vec![(10, 700.0), (1000, 700.0), (100_000, 701.0)]), ("none", vec![])];
        let picture = draw(&curves);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
        assert_eq!(decades([10.0, 100_000.0].into_iter()), (1, 5));
        assert_eq!(decades([].into_iter()), (0, 1));
        assert!(!draw(&[]).contains("NaN"));
    }
}
