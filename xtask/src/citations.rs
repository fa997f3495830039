//! Which sections of the RFCs in `xtask/rfcs.txt` the code cites, and which not.
//!
//! A citation is "RFC 9293 §3.8.6.1", with further sections behind it ("RFC 5681 §3.1, §4.2"); "§3.2" alone is of the
//! RFC that the file named last. A section below one that is listed counts for that; one above does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

struct Rfc {
    number: u32,
    title: String,
    sections: Vec<Section>,
}

struct Section {
    number: String,
    title: String,
    /// Why it is left out on purpose.
    reason: Option<String>,
}

/// Files by RFC and section; the empty section is the RFC itself.
type Citations = BTreeMap<(u32, String), BTreeSet<String>>;

/// The report: a line per section, then how many are cited.
pub fn report(root: &Path) -> Result<String, String> {
    let list = root.join("xtask/rfcs.txt");
    let text = std::fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let mut citations = Citations::new();
    for file in crate::tidy::rust_files(&root.join("crates")) {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if !name.contains("/src/") {
            continue;
        }
        let code = std::fs::read_to_string(&file).map_err(|e| format!("{name}: {e}"))?;
        collect(&name, &code, &mut citations);
    }
    Ok(render(&parse(&text)?, &citations))
}

fn parse(text: &str) -> Result<Vec<Rfc>, String> {
    let mut rfcs: Vec<Rfc> = Vec::new();
    let mut begins = true;
    for (i, line) in text.lines().enumerate() {
        if line.is_empty() {
            begins = true;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (number, title) = line.split_once(' ').ok_or(format!("line {}: no title", i + 1))?;
        if begins {
            let number = number.parse().map_err(|_| format!("line {}: no RFC's number", i + 1))?;
            rfcs.push(Rfc { number, title: title.into(), sections: Vec::new() });
        } else if let Some(rfc) = rfcs.last_mut() {
            let (title, reason) = match title.split_once(" - ") {
                Some((title, reason)) => (title, Some(reason.into())),
                None => (title, None),
            };
            rfc.sections.push(Section { number: number.into(), title: title.into(), reason });
        }
        begins = false;
    }
    Ok(rfcs)
}

/// Enters what a file cites.
fn collect(name: &str, code: &str, to: &mut Citations) {
    let mut current = None;
    let mut rest = code;
    loop {
        let rfc = rest.find("RFC ");
        let section = rest.find('§');
        let (at, is_rfc) = match (rfc, section) {
            (Some(r), Some(s)) => (r.min(s), r < s),
            (Some(r), None) => (r, true),
            (None, Some(s)) => (s, false),
            (None, None) => return,
        };
        rest = &rest[at + if is_rfc { "RFC ".len() } else { '§'.len_utf8() }..];
        if is_rfc {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            current = digits.parse().ok().or(current);
        }
        let Some(number) = current else { continue };
        let section = match is_rfc {
            true => String::new(),
            false => {
                let section: String =
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
                section.trim_end_matches('.').to_string()
            }
        };
        to.entry((number, section)).or_default().insert(name.to_string());
    }
}

/// The files that cite a section, or one below it.
fn files<'a>(rfc: u32, section: &str, citations: &'a Citations) -> BTreeSet<&'a str> {
    let below = format!("{section}.");
    let cites =
        |(number, cited): &(u32, String)| *number == rfc && (cited == section || cited.starts_with(&below));
    citations.iter().filter(|(key, _)| cites(key)).flat_map(|(_, f)| f.iter().map(String::as_str)).collect()
}

fn render(rfcs: &[Rfc], citations: &Citations) -> String {
    let mut text = String::new();
    let (mut cited, mut on_purpose, mut left_out) = (0, 0, 0);
    for rfc in rfcs {
        let named = citations.keys().any(|(number, _)| *number == rfc.number);
        let how = if named { "" } else { ": not named anywhere" };
        let _ = writeln!(text, "RFC {} {}{how}", rfc.number, rfc.title);
        for section in &rfc.sections {
            let found = files(rfc.number, &section.number, citations);
            let what = match (found.is_empty(), &section.reason) {
                (false, _) => {
                    cited += 1;
                    found.into_iter().collect::<Vec<_>>().join(" ")
                }
                (true, Some(reason)) => {
                    on_purpose += 1;
                    format!("left out: {reason}")
                }
                (true, None) => {
                    left_out += 1;
                    "NOT CITED".to_string()
                }
            };
            let _ = writeln!(text, "  §{} {}: {what}", section.number, section.title);
        }
    }
    let _ = writeln!(text, "{cited} sections cited, {on_purpose} left out on purpose, {left_out} not cited");
    text
}

#[cfg(test)]
mod tests;
