//! How an engine's counters are declared: an index and the name under which `eft stat` shows it.

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Index of a counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Count { $($(#[$doc])* $variant),* }

        /// Names, by index.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

pub(crate) use counters;
