//! The page: for each benchmark a plot of what has an aim, and a table of everything.

use serde_json::Value;
use std::fmt::Write;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>eft: measurements</title>\n<style>\n\
    body { font: 15px sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222 }\n\
    table { border-collapse: collapse; margin: 1em 0 } td, th { padding: 0.25em 0.7em; border-bottom: 1px solid #ddd }\n\
    th { text-align: left } td.n { text-align: right; font-variant-numeric: tabular-nums } .missed { color: #c0392b }\n\
    p.note { color: #666; margin: 0.2em 0 }\n</style></head><body>\n<h1>eft: measurements</h1>\n\
    <p>Medians of rounds in turn with the baseline of the same run. A ratio is to that baseline; an aim is one of the ratio where \
    there is one, else of the median.</p>\n";

pub fn page(results: &[Value]) -> String {
    let mut all = String::from(HEAD);
    for result in results {
        let figures: Vec<&Value> = result["results"].as_array().into_iter().flatten().collect();
        let _ = writeln!(all, "<h2>{}</h2>", escaped(text(&result["bench"])));
        all.push_str(&plot(&figures));
        all.push_str(&table(&figures));
        for note in result["notes"].as_array().into_iter().flatten() {
            let _ = writeln!(all, "<p class=\"note\">{}</p>", escaped(text(note)));
        }
    }
    all.push_str("</body></html>\n");
    all
}

fn table(figures: &[&Value]) -> String {
    let mut all = String::from(
        "<table><tr><th>what<th>median<th>unit<th>baseline<th>its median<th>ratio<th>95% interval<th>aim<th>reached</tr>\n",
    );
    for figure in figures {
        let class = if is_missed(figure) { " class=\"missed\"" } else { "" };
        let _ = writeln!(
            all,
            "<tr{class}><td>{}<td class=\"n\">{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{} to {}<td>{}<td>{}</tr>",
            escaped(text(&figure["what"])),
            number(&figure["median"]),
            escaped(text(&figure["unit"])),
            escaped(text(&figure["baseline"])),
            number(&figure["baseline_median"]),
            number(&figure["ratio"]),
            number(&figure["low"]),
            number(&figure["high"]),
            escaped(text(&figure["aim"])),
            escaped(text(&figure["reached"])),
        );
    }
    all.push_str("</table>\n");
    all
}

const ROW: f64 = 22.0;
const LEFT: f64 = 420.0;
const WIDTH: f64 = 960.0;
/// The line of the aim lies in the middle; a bar ends at twice the aim.
const MOST: f64 = 2.0;

/// Bars of what was reached, to the aim: the line in the middle. Which side of it is the good one depends on the aim.
fn plot(figures: &[&Value]) -> String {
    let rows: Vec<(&Value, f64)> =
        figures.iter().filter_map(|figure| Some((*figure, aim(text(&figure["aim"]))?))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let height = rows.len() as f64 * ROW + 24.0;
    let x = |share: f64| LEFT + share.clamp(0.0, MOST) / MOST * (WIDTH - LEFT - 70.0);
    let mut all = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    for (i, (figure, aim)) in rows.iter().enumerate() {
        let value = figure["ratio"].as_f64().or(figure["median"].as_f64()).unwrap_or(0.0);
        let (low, high) = (figure["low"].as_f64().unwrap_or(value), figure["high"].as_f64().unwrap_or(value));
        let colour = if is_missed(figure) { "#c0392b" } else { "#2e7d32" };
        let (top, middle) = (i as f64 * ROW + 4.0, i as f64 * ROW + 11.0);
        let _ = writeln!(
            all,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"14\" fill=\"{colour}\" fill-opacity=\"0.6\"/>\n\
             <line x1=\"{:.1}\" y1=\"{middle}\" x2=\"{:.1}\" y2=\"{middle}\" stroke=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            middle + 4.0,
            escaped(text(&figure["what"])),
            x(value / aim) - LEFT,
            x(low / aim),
            x(high / aim),
            WIDTH - 62.0,
            middle + 4.0,
            escaped(text(&figure["aim"])),
        );
    }
    let (line, ground) = (x(1.0), height - 20.0);
    let _ = writeln!(
        all,
        "<line x1=\"{line}\" y1=\"0\" x2=\"{line}\" y2=\"{ground}\" stroke=\"black\" stroke-dasharray=\"3 2\"/>\n\
         <text x=\"{line}\" y=\"{}\" text-anchor=\"middle\">aim</text>\n</svg>",
        height - 6.0
    );
    all
}

/// The number of an aim's text.
fn aim(text: &str) -> Option<f64> {
    text.rsplit(' ').next()?.parse().ok().filter(|aim| *aim > 0.0)
}

fn is_missed(figure: &Value) -> bool {
    matches!(figure["reached"].as_str(), Some("no" | "not by the median"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn number(value: &Value) -> String {
    value.as_f64().map_or("-".into(), crate::report::number)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_shows_each_figure_once_in_its_table_and_those_with_an_aim_in_the_plot() {
        let figures = json!([
            { "what": "out", "unit": "Gb/s", "median": 40.0, "low": 0.9, "high": 1.1, "ratio": 1.0, "baseline": "kernel",
              "baseline_median": 40.0, "aim": "at least 0.7", "reached": "yes" },
            { "what": "in <b>", "unit": "Gb/s", "median": 10.0, "aim": "at least 0.7", "reached": "no", "ratio": 0.2 },
            { "what": "shown", "unit": "us", "median": 3.5, "aim": null, "reached": "-" },
        ]);
        let page = page(&[json!({ "bench": "bulk", "results": figures, "notes": ["0.0% stolen"] })]);
        assert_eq!(page.matches("<tr").count(), 4);
        assert_eq!(page.matches("<rect").count(), 2);
        assert!(page.contains("<tr class=\"missed\"><td>in &lt;b&gt;") && page.contains("0.0% stolen"));
        assert!(!page.contains("NaN") && !page.contains("<b>"));
    }

    #[test]
    fn aims_are_read_from_their_texts() {
        assert_eq!(aim("at most 1.1"), Some(1.1));
        assert_eq!(aim("-"), None);
        assert_eq!(aim("at most 0"), None);
    }
}
