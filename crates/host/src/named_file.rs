//! Files that a user names: a device or a log that is named by mistake must not be read until memory is full.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Limit for text that people write or read: rules, topologies, profiles.
const TEXT_MAX: u64 = 16 << 20;

/// A text file of at most 16 MiB.
pub fn text(path: impl AsRef<Path>) -> Result<String> {
    text_from(File::open(path)?)
}

/// The same for a server, which must not wait for the writer of a pipe.
pub fn regular_text(path: impl AsRef<Path>) -> Result<String> {
    match std::fs::metadata(&path)?.is_file() {
        true => text(path),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// The same from a stream.
pub fn text_from(from: impl Read) -> Result<String> {
    String::from_utf8(at_most(from, TEXT_MAX)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is no UTF-8 text"))
}

/// All bytes of a file, if there are at most `max`.
pub fn bytes(path: impl AsRef<Path>, max: u64) -> Result<Vec<u8>> {
    at_most(File::open(path)?, max)
}

fn at_most(from: impl Read, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("it is longer than {} MiB, as no such file is", max >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
