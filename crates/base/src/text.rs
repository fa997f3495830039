//! Error messages about a text, in one line.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

/// `text` without line breaks, indents and control characters, which an untrusted file might send to a terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Characters of a bad line that are quoted.
const QUOTED_MAX: usize = 60;

/// A parser's `message` about the part `span` of `text`, after the line where it begins and its number, from 1.
pub fn complaint(text: &str, span: Option<Range<usize>>, message: &str) -> String {
    let message = one_line(message);
    let Some((before, after)) = span.and_then(|span| text.split_at_checked(span.start)) else {
        return message;
    };
    let number = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let end = before.len() + after.find('\n').unwrap_or(after.len());
    let line: String = one_line(&text[begin..end]).chars().take(QUOTED_MAX).collect();
    format!("line {number} (`{line}`): {message}")
}

/// What clap says in some lines about a command line that is wrong: what is wrong with it, and the usage behind that in brackets.
pub fn wrong_usage(text: &str) -> String {
    let text = text.split_once("For more information").map_or(text, |(text, _)| text);
    let (what, usage) = text.split_once("Usage:").unwrap_or((text, ""));
    let (what, usage) = (one_line(what.trim_start_matches("error: ")), one_line(usage));
    if usage.is_empty() { what } else { format!("{what} (usage: {usage})") }
}

#[cfg(test)]
mod tests;
