//! Charts as SVG: lines, stacked areas, stacked bars, and bars in groups.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 110.0;
const TOP: f64 = 34.0;
/// Room for the names of the series.
const RIGHT: f64 = 140.0;
const COLOURS: [&str; 10] = [
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#7f7f7f", "#8c564b", "#bcbd22",
    "#e377c2",
];

pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// From one multiple of `step` to another.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, from: Option<f64>) -> Self {
        let values = values.filter(|value| value.is_finite());
        let low = from.unwrap_or_else(|| values.clone().fold(f64::MAX, f64::min));
        let high = values.fold(low, f64::max);
        let extent = if high > low { high - low } else { 1.0 };
        // The roundest step that divides the extent into at most six.
        let decade = 10f64.powf((extent / 6.0).log10().floor());
        let step =
            [1.0, 2.0, 2.5, 5.0, 10.0].map(|part| part * decade).into_iter().find(|s| extent / s <= 6.0);
        let step = step.unwrap_or(extent);
        let low = (low / step + 1e-9).floor() * step;
        let high = ((high / step - 1e-9).ceil() * step).max(low + step);
        Self { low, high, step }
    }

    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=((self.high - self.low) / self.step).round() as u32).map(|i| self.low + f64::from(i) * self.step)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn frame(title: &str, y_name: &str, y: &Scale) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escape(title)
    );
    for value in y.marks() {
        let at = up(y, value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
            WIDTH - RIGHT
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            (value * 1000.0).round() / 1000.0
        );
    }
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"16\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {middle:.1})\">{}</text>",
        escape(y_name)
    );
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

fn across(x: &Scale, value: f64) -> f64 {
    LEFT + x.part(value) * (WIDTH - RIGHT - LEFT)
}

fn x_axis(svg: &mut String, x: &Scale, name: &str) {
    for mark in x.marks() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            across(x, mark),
            HEIGHT - BOTTOM + 16.0,
            (mark * 1000.0).round() / 1000.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - BOTTOM + 36.0,
        escape(name)
    );
}

/// The name of a bar, below it.
fn slanted(svg: &mut String, at: f64, name: &str) {
    let down = HEIGHT - BOTTOM + 12.0;
    let _ = writeln!(
        svg,
        "<text x=\"{at:.1}\" y=\"{down}\" text-anchor=\"end\" transform=\"rotate(-50 {at:.1} {down})\">{}</text>",
        escape(name)
    );
}

/// One line for each series; dashes make a line visible beneath another.
pub fn lines(title: &str, [x_name, y_name]: [&str; 2], series: &[Series], from: Option<f64>) -> String {
    let all = || series.iter().flat_map(|s| s.points.iter().copied());
    let (x, y) = (Scale::over(all().map(|p| p.0), None), Scale::over(all().map(|p| p.1), from));
    let mut svg = frame(title, y_name, &y);
    for (i, s) in series.iter().enumerate() {
        let points: Vec<String> =
            s.points.iter().map(|(a, b)| format!("{:.1},{:.1}", across(&x, *a), up(&y, *b))).collect();
        let (colour, dashes) = (COLOURS[i % COLOURS.len()], ["", "9 3", "5 5", "2 4"][i % 4]);
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    x_axis(&mut svg, &x, x_name);
    legend(&mut svg, series.iter().map(|s| s.name.clone()));
    svg + "</svg>\n"
}

/// Stacked series, the first at the bottom; all have the same points on the x axis.
pub fn areas(title: &str, [x_name, y_name]: [&str; 2], series: &[Series], most: f64) -> String {
    let x = Scale::over(series.iter().flat_map(|s| s.points.iter().map(|p| p.0)), Some(0.0));
    let y = Scale::over([most].into_iter(), Some(0.0));
    let mut svg = frame(title, y_name, &y);
    let mut floor: Vec<(f64, f64)> =
        series.first().map(|s| s.points.iter().map(|(a, _)| (*a, 0.0)).collect()).unwrap_or_default();
    for (i, s) in series.iter().enumerate() {
        let top: Vec<(f64, f64)> =
            s.points.iter().zip(&floor).map(|((a, value), (_, below))| (*a, value + below)).collect();
        let outline = top.iter().chain(floor.iter().rev());
        let points: Vec<String> =
            outline.map(|(a, b)| format!("{:.1},{:.1}", across(&x, *a), up(&y, *b))).collect();
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(svg, "<polygon fill=\"{colour}\" points=\"{}\"/>", points.join(" "));
        floor = top;
    }
    x_axis(&mut svg, &x, x_name);
    legend(&mut svg, series.iter().map(|s| s.name.clone()));
    svg + "</svg>\n"
}

/// A bar of stacked parts, the first at the bottom.
pub struct Stack {
    pub name: String,
    pub parts: Vec<(String, f64)>,
}

/// Stacks side by side, each with its total on top; parts of one name have one colour.
pub fn stacks(title: &str, y_name: &str, bars: &[Stack]) -> String {
    let total = |bar: &Stack| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let y = Scale::over(bars.iter().map(total).collect::<Vec<_>>().into_iter(), Some(0.0));
    let mut svg = frame(title, y_name, &y);
    let mut names: Vec<&String> = Vec::new();
    let wide = (WIDTH - RIGHT - LEFT) / bars.len().max(1) as f64;
    for (b, bar) in bars.iter().enumerate() {
        let (x, mut below) = (LEFT + b as f64 * wide + wide * 0.2, 0.0);
        for (name, value) in &bar.parts {
            let colour = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let (top, bottom) = (up(&y, below + value), up(&y, below));
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                wide * 0.6,
                bottom - top,
                COLOURS[colour % COLOURS.len()]
            );
            below += value;
        }
        let middle = x + wide * 0.3;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            up(&y, below) - 3.0,
            (below * 100.0).round() / 100.0
        );
        slanted(&mut svg, middle, &bar.name);
    }
    legend(&mut svg, names.into_iter().cloned());
    svg + "</svg>\n"
}

/// Groups of bars, one bar for each name; with a line at `base`.
pub fn bars(title: &str, y_name: &str, names: &[&str], groups: &[(String, Vec<f64>)], base: f64) -> String {
    let values = groups.iter().flat_map(|(_, values)| values.iter().copied());
    let y = Scale::over(values, Some(0.0));
    let mut svg = frame(title, y_name, &y);
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
        slanted(&mut svg, x + wide * 0.4, name);
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

#[cfg(test)]
mod tests;
