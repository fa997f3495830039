//! Whether turns are committed. They always are, except to measure what commits cost.

use core::str::FromStr;

/// The value of `eft up --commit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    #[default]
    On,
    /// No state is saved, summed or named: a death loses every connection that has changed since.
    Off,
}

impl Commit {
    /// The store's key. It has no value while turns are committed.
    pub const KEY: &str = "commit";

    pub fn name(self) -> &'static str {
        match self {
            Commit::On => "on",
            Commit::Off => "off",
        }
    }

    /// Reads the value of the store.
    pub fn of(value: &[u8]) -> Commit {
        if value == Commit::Off.name().as_bytes() { Commit::Off } else { Commit::On }
    }
}

impl FromStr for Commit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Commit, &'static str> {
        let all = [Commit::On, Commit::Off];
        all.into_iter().find(|commit| commit.name() == text).ok_or("is none of on and off")
    }
}
