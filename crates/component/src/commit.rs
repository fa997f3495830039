//! Whether turns are committed. They always are, but where what that costs is measured.

use core::str::FromStr;

/// As `eft up --commit` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    #[default]
    On,
    /// Nothing is imaged, summed or named: a death loses every connection that has changed since.
    Off,
}

impl Commit {
    /// The store's key. Nothing stands there while turns are committed.
    pub const KEY: &str = "commit";

    pub fn name(self) -> &'static str {
        match self {
            Commit::On => "on",
            Commit::Off => "off",
        }
    }

    /// What a value of the store says.
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
