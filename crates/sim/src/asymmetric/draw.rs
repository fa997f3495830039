//! Charts as SVG: lines over a number, and bars in groups.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 70.0;
const TOP: f64 = 34.0;
/// Room for the names of the series.
const RIGHT: f64 = 140.0;
const COLOURS: [&str; 8] =
    ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#7f7f7f", "#8c564b"];

pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, from: Option<f64>) -> Self {
        let high = values.clone().fold(f64::MIN, f64::max);
        let low = from.unwrap_or_else(|| values.fold(f64::MAX, f64::min));
        if high > low { Self { low, high } } else { Self { low, high: low + 1.0 } }
    }

    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn frame(title: &str, y: &Scale) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escape(title)
    );
    for step in 0..=5 {
        let value = y.low + (y.high - y.low) * f64::from(step) / 5.0;
        let at = up(y, value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
            WIDTH - RIGHT
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    svg
}

fn up(y: &Scale, value: f64) -> f64 {
    HEIGHT - BOTTOM - y.part(value) * (HEIGHT - BOTTOM - TOP)
}

fn legend(svg: &mut String, names: impl Iterator<Item = String>) {
    for (i, name) in names.enumerate() {
        let at = TOP + 16.0 * i as f64;
        let x = WIDTH - RIGHT + 10.0;
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{at:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\">{}</text>", x + 15.0, at + 9.0, escape(&name));
    }
}

/// One line a series.
pub fn lines(title: &str, x_name: &str, series: &[Series], from: Option<f64>) -> String {
    let all = || series.iter().flat_map(|s| s.points.iter().copied());
    let (x, y) = (Scale::over(all().map(|p| p.0), None), Scale::over(all().map(|p| p.1), from));
    let mut svg = frame(title, &y);
    let across = |value: f64| LEFT + x.part(value) * (WIDTH - RIGHT - LEFT);
    for (i, s) in series.iter().enumerate() {
        let points: Vec<String> =
            s.points.iter().map(|(a, b)| format!("{:.1},{:.1}", across(*a), up(&y, *b))).collect();
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    let mut marks: Vec<f64> = all().map(|p| p.0).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let every = marks.len().div_ceil(14).max(1);
    for mark in marks.iter().step_by(every) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>",
            across(*mark),
            HEIGHT - BOTTOM + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - BOTTOM + 36.0,
        escape(x_name)
    );
    legend(&mut svg, series.iter().map(|s| s.name.clone()));
    svg + "</svg>\n"
}

/// Groups of bars, one bar for each name; with a line at `base`.
pub fn bars(title: &str, names: &[&str], groups: &[(String, Vec<f64>)], base: f64) -> String {
    let values = groups.iter().flat_map(|(_, values)| values.iter().copied());
    let y = Scale::over(values, Some(0.0));
    let mut svg = frame(title, &y);
    let wide = (WIDTH - RIGHT - LEFT) / groups.len().max(1) as f64;
    let bar = wide * 0.8 / names.len().max(1) as f64;
    for (g, (name, values)) in groups.iter().enumerate() {
        let x = LEFT + g as f64 * wide + wide * 0.1;
        for (i, value) in values.iter().enumerate() {
            let (top, colour) = (up(&y, *value), COLOURS[i % COLOURS.len()]);
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                x + i as f64 * bar,
                bar * 0.9,
                HEIGHT - BOTTOM - top
            );
        }
        let (at, down) = (x + wide * 0.3, HEIGHT - BOTTOM + 14.0);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{down}\" text-anchor=\"end\" transform=\"rotate(-25 {at:.1} {down})\">{}</text>",
            escape(name)
        );
    }
    let at = up(&y, base);
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"black\" stroke-dasharray=\"4\"/>",
        WIDTH - RIGHT
    );
    legend(&mut svg, names.iter().map(|name| name.to_string()));
    svg + "</svg>\n"
}
