//! Files that a user names.

use std::io::Read;
use std::path::Path;

use anyhow::{Result, anyhow};

/// A regular file of at most so many MB; `what`: what such a file is called.
pub fn bytes(path: &Path, what: &str, mb_max: u64) -> Result<Vec<u8>> {
    let unreadable = |why: &dyn std::fmt::Display| anyhow!("{} cannot be read ({why})", path.display());
    // Asked before it is opened: to open a pipe waits for whoever writes into it.
    let is_file = std::fs::metadata(path).map_err(|error| unreadable(&error))?.is_file();
    let mut bytes = Vec::new();
    let limit = mb_max << 20;
    if is_file {
        let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    }
    if !is_file || bytes.len() as u64 > limit {
        return Err(unreadable(&format!("{what} is a file of at most {mb_max} MB")));
    }
    Ok(bytes)
}

pub fn text(path: &Path, what: &str, mb_max: u64) -> Result<String> {
    String::from_utf8(bytes(path, what, mb_max)?)
        .map_err(|_| anyhow!("{} cannot be read (it is no UTF-8 text)", path.display()))
}
