//! Text for people: columns, on an output that may be a closed pipe.

use std::io::{self, ErrorKind, Write};

use thiserror::Error;

/// Standard output takes no more, as a full disk.
#[derive(Debug, Error)]
#[error("the output cannot be written ({0})")]
pub struct Unwritable(io::Error);

/// Standard output may be a closed pipe (`| head`); that is not a failure.
pub fn print(text: &str) -> Result<(), Unwritable> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Unwritable(error)),
        _ => Ok(()),
    }
}

/// Rows of text in columns as wide as they need.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_string() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Prints rows as columns, each as wide as its widest cell.
pub fn print_table(header: &[&str], rows: &[Vec<String>]) {
    let header: Vec<String> = header.iter().map(|cell| cell.to_string()).collect();
    let all: Vec<Vec<String>> = std::iter::once(header).chain(rows.iter().cloned()).collect();
    // If the output is closed, the rest is not wanted.
    let _ = print(&columns(&all));
}
