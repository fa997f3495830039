//! The calibration file: a table of parameters, each with its value, tag, source and range, as `eft sim --calibration` takes it.

use std::fmt::Write;

#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: &'static str,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub is_assumed: bool,
    pub source: String,
}

/// The file's text. `head`: what it is, a comment.
pub fn text(head: &str, parameters: &[Parameter]) -> String {
    let mut text = String::new();
    for line in head.lines() {
        let _ = writeln!(text, "# {line}");
    }
    text.push_str("\n[eft]\n");
    for p in parameters {
        let tag = if p.is_assumed { "assumed" } else { "measured" };
        let [value, low, high] = [p.value, p.low, p.high].map(|number| number.max(0.0).round() as u64);
        // A fit with all may lie outside of all fits without some.
        let (low, high) = (low.min(value), high.max(value));
        let source = p.source.replace(['"', '\\'], "'");
        let _ = writeln!(
            text,
            "{} = {{ value = {value}, low = {low}, high = {high}, tag = \"{tag}\", source = \"{source}\" }}",
            p.name
        );
    }
    text
}

#[cfg(test)]
mod tests;
