//! `cargo run -p xtask -- tidy`: the walls of the workspace, checked. Also runs as a test.
//! `cargo run -p xtask -- rfcs`: which sections of TCP's RFCs the code cites, and which not.

mod citations;
mod cycles;
mod links;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let problems = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::check(&root()),
        Some("rfcs") => match citations::report(&root()) {
            Ok(text) => {
                print!("{text}");
                Vec::new()
            }
            Err(problem) => vec![problem],
        },
        _ => vec!["usage: cargo run -p xtask -- tidy | rfcs".to_string()],
    };
    problems.iter().for_each(|p| eprintln!("{p}"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The root of the workspace.
fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests;
