//! What a compiler does not check: arrows between crates point down, engines stay pure, every module
//! says what it is for, every `unsafe` carries its proof, no file is dead, no link leads nowhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates a crate may import (beside libraries). Arrows point down only.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("machine", &[]),
    ("text", &[]),
    ("autoconf", &["base"]),
    ("channel", &["base"]),
    ("messages", &["base", "channel"]),
    ("arena", &["base", "channel"]),
    ("component", &["base", "machine", "channel", "messages"]),
    ("sockets", FRAME),
    ("transport", FRAME),
    ("ip", &["autoconf", "base", "channel", "arena", "messages", "component"]),
    ("filter", FRAME),
    ("nic", FRAME),
    ("control", &["autoconf", "base", "channel", "arena", "messages", "component"]),
    ("acpi", &[]),
    ("cores", &["base", "machine", "channel", "messages", "component"]),
    ("vcpu", &["base", "machine"]),
    ("host", &["acpi", "base", "machine", "cores", "vcpu"]),
    (
        "linux",
        &[
            "arena",
            "autoconf",
            "base",
            "machine",
            "channel",
            "messages",
            "component",
            "control",
            "cores",
            "host",
        ],
    ),
    ("harness", &["arena", "base", "channel", "messages", "component", "transport"]),
    ("record", &["arena", "base", "channel", "messages", "component", "transport", "ip", "filter"]),
    (
        "sim",
        &[
            "arena",
            "base",
            "machine",
            "text",
            "channel",
            "messages",
            "component",
            "harness",
            "record",
            "sockets",
            "transport",
            "ip",
            "filter",
            "nic",
            "control",
            "cores",
            "vcpu",
        ],
    ),
    ("shim", &["base", "channel", "messages"]),
    ("proxy", &[]),
    ("packetdrill", &[]),
    ("differential", &["base", "packetdrill"]),
    (
        "bench",
        &[
            "arena",
            "base",
            "machine",
            "text",
            "channel",
            "messages",
            "component",
            "harness",
            "record",
            "transport",
            "ip",
            "filter",
            "cores",
            "vcpu",
            "host",
            "linux",
        ],
    ),
    (
        "eft",
        &[
            "bench",
            "acpi",
            "autoconf",
            "base",
            "machine",
            "text",
            "channel",
            "messages",
            "component",
            "sockets",
            "transport",
            "ip",
            "filter",
            "nic",
            "control",
            "cores",
            "vcpu",
            "host",
            "linux",
            "proxy",
            "record",
            "differential",
        ],
    ),
];

const FRAME: &[&str] = &["base", "channel", "arena", "messages", "component"];

/// Crates that must build without the standard library: no I/O, no clock, by construction.
const PURE: &[&str] = &[
    "autoconf",
    "base",
    "channel",
    "arena",
    "messages",
    "component",
    "sockets",
    "transport",
    "ip",
    "filter",
    "nic",
    "control",
    "acpi",
    "machine",
    "cores",
    "vcpu",
];

/// A file longer than this cannot be read in one sitting. One of tests is read test by test, so it may be longer.
const LINES_MAX: usize = 400;
const TEST_LINES_MAX: usize = 900;

/// All problems, one line each.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, allowed) in ARROWS {
        let dir = root.join("crates").join(name);
        check_arrows(name, allowed, &dir, &mut problems);
        let files = rust_files(&dir.join("src"));
        check_dead_files(&dir.join("src"), &files, &mut problems);
        crate::cycles::check(name, &dir.join("src"), &files, &mut problems);
        for file in &files {
            check_file(root, name, file, &mut problems);
        }
    }
    let known: BTreeSet<&str> = ARROWS.iter().map(|(n, _)| *n).collect();
    for entry in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if !known.contains(name.as_str()) {
            problems.push(format!("crates/{name}: no layer is written down for it in xtask/src/tidy.rs"));
        }
    }
    crate::links::check(root, &mut problems);
    problems
}

fn check_arrows(name: &str, allowed: &[&str], dir: &Path, problems: &mut Vec<String>) {
    let text = fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = match toml::from_str(&text) {
        Ok(m) => m,
        Err(e) => return problems.push(format!("crates/{name}/Cargo.toml: {e}")),
    };
    let dependencies = manifest.get("dependencies").and_then(|d| d.as_table());
    for key in dependencies.into_iter().flat_map(|d| d.keys()) {
        if let Some(other) = key.strip_prefix("eft-")
            && !allowed.contains(&other)
        {
            problems.push(format!("crates/{name} imports {other}: the layers forbid it"));
        }
    }
}

pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn check_file(root: &Path, crate_name: &str, file: &Path, problems: &mut Vec<String>) {
    let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let text = fs::read_to_string(file).unwrap_or_default();
    let is_tests = file.ends_with("tests.rs") || shown.contains("/tests/");
    if !is_tests && !text.starts_with("//!") {
        problems.push(format!("{shown}:1: the module does not say what it is for (`//!`)"));
    }
    let lines_max = if is_tests { TEST_LINES_MAX } else { LINES_MAX };
    if text.lines().count() > lines_max {
        problems.push(format!("{shown}: more than {lines_max} lines cannot be read in one sitting"));
    }
    if file.ends_with("src/lib.rs") && PURE.contains(&crate_name) && !text.contains("no_std") {
        problems.push(format!("{shown}: {crate_name} must be no_std"));
    }
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let starts_unsafe = code.contains("unsafe {") || code.trim_start().starts_with("unsafe impl");
        if starts_unsafe && !has_proof(&lines, i) {
            problems.push(format!("{shown}:{}: unsafe without a SAFETY comment", i + 1));
        }
        if PURE.contains(&crate_name) && (code.contains("feature = \"sim\"") || code.contains("cfg(sim")) {
            problems.push(format!("{shown}:{}: a switch for the simulator", i + 1));
        }
        if PURE.contains(&crate_name) && !is_tests && code.contains("std::time::") {
            problems.push(format!("{shown}:{}: a clock in pure code", i + 1));
        }
    }
}

/// A SAFETY comment on the line or within the eight above it (a statement may be long).
fn has_proof(lines: &[&str], i: usize) -> bool {
    lines[i.saturating_sub(8)..=i].iter().any(|l| l.contains("SAFETY"))
}

/// A file that no `mod` names is never compiled.
fn check_dead_files(src: &Path, files: &[PathBuf], problems: &mut Vec<String>) {
    let mut named = BTreeSet::new();
    for file in files {
        for line in fs::read_to_string(file).unwrap_or_default().lines() {
            let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            if let Some(rest) = line.strip_prefix("mod ") {
                named.insert(rest.trim_end_matches([';', '{', ' ']).to_string());
            }
            if let Some((_, path)) = line.split_once("#[path = \"") {
                let stem = path.split('"').next().unwrap_or_default().trim_end_matches(".rs");
                named.insert(stem.rsplit('/').next().unwrap_or_default().to_string());
            }
        }
    }
    for file in files {
        let stem = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let name = match stem {
            "lib" | "main" => continue,
            "mod" => file.parent().and_then(|p| p.file_name()).and_then(|s| s.to_str()).unwrap_or_default(),
            stem => stem,
        };
        if !named.contains(name) {
            problems
                .push(format!("{}: no module declares it", file.strip_prefix(src).unwrap_or(file).display()));
        }
    }
}
