//! Import cycles between the files of a crate. A parent and what lies below it may know each other; other files that
//! import each other in a circle cannot be read one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// `files` are those of the crate whose `src` this is.
pub fn check(crate_name: &str, src: &Path, files: &[PathBuf], problems: &mut Vec<String>) {
    let modules: BTreeMap<Vec<String>, &PathBuf> =
        files.iter().filter_map(|file| Some((module_of(file.strip_prefix(src).ok()?)?, file))).collect();
    let mut imports = Imports::new();
    for (module, file) in &modules {
        let text = fs::read_to_string(file).unwrap_or_default();
        let children =
            modules.keys().filter(|other| other.len() == module.len() + 1 && other.starts_with(module));
        let children: Vec<&str> = children.filter_map(|child| child.last()).map(String::as_str).collect();
        let wanted = paths(&text, &children).into_iter().filter_map(|path| resolve(module, &path, &modules));
        // The crate's root names everything; a module that takes a name from there really takes it from the module
        // below.
        let others = wanted.filter(|other| other != module && !other.is_empty() && !module.is_empty());
        imports.insert(module.clone(), others.collect());
    }
    // A parent and its children may know each other, but neither may a circle run through siblings, nor one that goes
    // down into a child come out of it elsewhere.
    let family =
        |module: &Vec<String>, other: &Vec<String>| other.starts_with(module) || module.starts_with(other);
    let apart = imports.iter().map(|(module, others)| {
        let others = others.iter().filter(|other| !family(module, other)).cloned();
        (module.clone(), others.collect())
    });
    let mut found = circles(&apart.collect());
    found.extend(circles(&imports).into_iter().filter(|circle| {
        // The first is the shortest path there is, so a parent of all if there is one.
        circle.iter().any(|module| !module.starts_with(circle.first().expect("a circle is not empty")))
    }));
    for circle in found {
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        problems.push(format!(
            "crates/{crate_name}: {} files import each other in circles: {}",
            names.len(),
            names.join(", ")
        ));
    }
}

type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// Sets of more than one module of which each reaches all others.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<Vec<String>>> {
    let reach: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        imports.keys().map(|module| (module, reached(module, imports))).collect();
    let circle = |module: &Vec<String>| -> BTreeSet<Vec<String>> {
        let back = |other: &&Vec<String>| reach[module].contains(*other) && reach[*other].contains(module);
        imports.keys().filter(back).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The module's path from the crate's root. Tests are left out, since no module imports them.
fn module_of(relative: &Path) -> Option<Vec<String>> {
    let mut parts: Vec<String> =
        relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    let is_tests = parts.iter().any(|part| part == "tests" || part.ends_with("_tests"));
    (!is_tests).then_some(parts)
}

/// Every path of code that begins with `crate`, `super` or a child's name, groups written out. Unit tests at a file's end
/// do not count.
fn paths(text: &str, children: &[&str]) -> Vec<Vec<String>> {
    let code: String = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default()
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    let starts = ["crate", "super"].iter().chain(children).map(|name| format!("{name}::"));
    for start in starts {
        for (at, _) in code.match_indices(&start) {
            let before = code[..at].chars().next_back();
            let is_start = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
            if is_start {
                written_out(&mut code[at..].chars().peekable(), Vec::new(), &mut found);
            }
        }
    }
    found
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn written_out(code: &mut Characters, mut path: Vec<String>, found: &mut Vec<Vec<String>>) {
    loop {
        while code.next_if(|c| c.is_whitespace()).is_some() {}
        if code.next_if_eq(&'{').is_some() {
            loop {
                written_out(code, path.clone(), found);
                while code.next_if(|c| c.is_whitespace()).is_some() {}
                if code.next_if_eq(&',').is_none() {
                    code.next_if_eq(&'}');
                    return;
                }
            }
        }
        let mut name = String::new();
        while let Some(c) = code.next_if(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if name.is_empty() {
            return found.push(path);
        }
        path.push(name);
        let mut ahead = code.clone();
        if ahead.next() != Some(':') || ahead.next() != Some(':') {
            return found.push(path);
        }
        *code = ahead;
    }
}

/// The file that a path leads to, as seen from a module: the longest beginning of it that is a module.
fn resolve(
    module: &[String],
    path: &[String],
    modules: &BTreeMap<Vec<String>, &PathBuf>,
) -> Option<Vec<String>> {
    let mut at = module.to_vec();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "super" => {
                at.pop();
            }
            _ => break,
        }
        rest = after;
    }
    for name in rest {
        at.push(name.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    modules.contains_key(&at).then_some(at)
}

fn reached(from: &[String], imports: &Imports) -> BTreeSet<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&Vec<String>> = imports.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if seen.insert(module.clone()) {
            next.extend(imports.get(module).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests;
