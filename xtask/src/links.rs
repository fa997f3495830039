//! Links in the documents: the file must be there, and a link named after an item must lead to the file that has it.

use std::fs;
use std::path::{Path, PathBuf};

/// Problems in the documents at the root and under `docs/`, one line each.
pub fn check(root: &Path, problems: &mut Vec<String>) {
    for document in documents(root) {
        let shown = document.strip_prefix(root).unwrap_or(&document).display().to_string();
        let text = fs::read_to_string(&document).unwrap_or_default();
        let dir = document.parent().unwrap_or(root);
        for (name, target) in links(&text) {
            if let Some(problem) = broken(dir, &name, &target) {
                problems.push(format!("{shown}: [{name}]({target}): {problem}"));
            }
        }
    }
}

fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [root.to_path_buf(), root.join("docs")]
        .iter()
        .flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    found.sort();
    found
}

/// Text and target of each link.
fn links(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("](") {
        let name = text[..at].rsplit('[').next().unwrap_or_default();
        let target = text[at + 2..].split(')').next().unwrap_or_default();
        found.push((name.to_string(), target.to_string()));
    }
    found
}

fn broken(dir: &Path, name: &str, target: &str) -> Option<String> {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || target.contains("://") {
        return None;
    }
    let file = dir.join(path);
    if !file.exists() {
        return Some("there is no such file".into());
    }
    let item = name.strip_prefix('`')?.strip_suffix('`')?;
    let item = item.rsplit("::").next().unwrap_or(item);
    let is_item = item.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !path.ends_with(".rs") || !is_item || file.file_stem().is_some_and(|stem| stem == item) {
        return None;
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    // A link to a crate names the crate, by its root file.
    let is_crate = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    (!is_crate && !defines(&text, item)).then(|| format!("`{item}` is not defined there"))
}

fn defines(text: &str, item: &str) -> bool {
    let keywords = ["fn", "struct", "enum", "trait", "const", "type", "static", "mod", "macro_rules!"];
    let is_end = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    keywords.iter().any(|keyword| {
        let wanted = format!("{keyword} {item}");
        text.match_indices(&wanted).any(|(at, _)| is_end(text[at + wanted.len()..].chars().next()))
    })
}

#[cfg(test)]
mod tests;
