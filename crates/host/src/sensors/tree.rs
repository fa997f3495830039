//! A root folder under which `sys/`, `proc/` and `dev/` are found: `/`, or a recorded machine in a test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: PathBuf,
}

impl Default for Tree {
    fn default() -> Self {
        Self::live()
    }
}

impl Tree {
    pub fn live() -> Self {
        Self { root: PathBuf::from("/") }
    }

    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// System calls act on the running machine, so a recorded one must never reach them.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// `path` is relative to the root (`sys/...`); a leading slash is taken off, since journals hold absolute paths.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The trimmed text of a file; `None` if it is absent, unreadable or empty.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = read_whole(&self.path(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    pub fn read(&self, path: &str) -> Result<String, Error> {
        read_whole(&self.path(path)).map_err(|error| complain(path, "cannot be read", &error))
    }

    pub fn number<N: FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    pub fn parsed<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// One `write()` of the whole value, as sysfs demands, to a file that exists.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        let write = || {
            use io::Write;
            fs::OpenOptions::new()
                .write(true)
                .create(!self.is_live())
                .truncate(!self.is_live())
                .open(self.path(path))?
                .write_all(value.as_bytes())
        };
        write().map_err(|error| complain(path, &format!("does not take '{}'", value.trim()), &error))
    }

    /// Names of a folder's entries, sorted; empty if it is absent.
    pub fn entries(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The numbers in entries named `prefix<N>`, sorted.
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.entries(path).iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The standard library asks for the size first and then reads in small steps, since kernel files have no size: that
/// would triple the system calls while a CPU is parked.
fn read_whole(path: &Path) -> io::Result<String> {
    use io::Read;
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..])? {
            0 => break,
            count => length += count,
        }
        if length == bytes.len() {
            bytes.resize(length * 4, 0);
        }
    }
    bytes.truncate(length);
    // Names of threads may hold any bytes.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// One line that says what failed and what to do about it.
fn complain(path: &str, what: &str, error: &io::Error) -> Error {
    let (kind, advice): (fn(String) -> Error, _) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => (Error::Denied, ": this needs root"),
        Some(libc::EROFS) => (Error::Denied, ": it is mounted read-only (a container?); run on the host"),
        Some(libc::ENOENT) => (Error::Missing, ": this kernel does not have it"),
        Some(libc::EBUSY) => (Error::Busy, ": the kernel is busy with it or refuses it"),
        _ => (Error::System, ""),
    };
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    kind(format!("/{} {what} ({reason}){advice}", path.trim_start_matches('/')))
}
