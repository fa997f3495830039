//! Table 1 of the paper: which programs run together.

/// How much a program gains from a fast core, as the paper classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gain {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub name: &'static str,
    pub scenario: Scenario,
    /// Program, vCPUs, class in this mix.
    pub vms: &'static [(&'static str, usize, Gain)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Single,
    Multi,
    Overcommitted,
}

impl Scenario {
    /// Of the paper's figure.
    pub fn title(self) -> &'static str {
        match self {
            Self::Single => "Figure 7: single-vCPU, non-overcommitted",
            Self::Multi => "Figure 8: multi-vCPU, non-overcommitted",
            Self::Overcommitted => "Figure 10: multi-vCPU, overcommitted",
        }
    }
}

use Gain::{High as H, Low as L, Medium as M};
use Scenario::{Multi, Overcommitted as Over, Single};

const fn mix(name: &'static str, scenario: Scenario, vms: &'static [(&'static str, usize, Gain)]) -> Mix {
    Mix { name, scenario, vms }
}

pub const MIXES: [Mix; 12] = [
    mix(
        "4H-4M-4L",
        Single,
        &[
            ("hmmer", 1, H),
            ("hmmer", 1, H),
            ("perlbench", 1, H),
            ("perlbench", 1, H),
            ("GemsFDTD", 1, M),
            ("GemsFDTD", 1, M),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("mcf", 1, L),
            ("mcf", 1, L),
            ("sysbench", 1, L),
            ("sysbench", 1, L),
        ],
    ),
    mix(
        "2H-6M-4L",
        Single,
        &[
            ("hmmer", 1, H),
            ("perlbench", 1, H),
            ("GemsFDTD", 1, M),
            ("GemsFDTD", 1, M),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("libquantum", 1, M),
            ("libquantum", 1, M),
            ("mcf", 1, L),
            ("mcf", 1, L),
            ("sysbench", 1, L),
            ("sysbench", 1, L),
        ],
    ),
    mix(
        "6H-2M-4L",
        Single,
        &[
            ("hmmer", 1, H),
            ("hmmer", 1, H),
            ("hmmer", 1, H),
            ("perlbench", 1, H),
            ("perlbench", 1, H),
            ("perlbench", 1, H),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("mcf", 1, L),
            ("mcf", 1, L),
            ("sysbench", 1, L),
            ("sysbench", 1, L),
        ],
    ),
    mix(
        "8M-4L",
        Single,
        &[
            ("GemsFDTD", 1, M),
            ("GemsFDTD", 1, M),
            ("libquantum", 1, M),
            ("libquantum", 1, M),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("soplex", 1, M),
            ("mcf", 1, L),
            ("mcf", 1, L),
            ("sysbench", 1, L),
            ("sysbench", 1, L),
        ],
    ),
    mix("1H-1M-1L", Multi, &[("freqmine", 4, H), ("pmake", 4, M), ("canneal", 4, L)]),
    mix("2H-1M", Multi, &[("freqmine", 4, H), ("swaptions", 4, H), ("x264", 4, M)]),
    mix("1M-2L", Multi, &[("pmake", 4, M), ("apache", 4, L), ("canneal", 4, L)]),
    mix("1H-1L", Multi, &[("freqmine", 6, H), ("canneal", 6, L)]),
    mix(
        "1H-3M-2L",
        Over,
        &[
            ("freqmine", 4, H),
            ("x264", 4, M),
            ("x264", 4, M),
            ("pmake", 4, M),
            ("canneal", 4, L),
            ("apache", 4, L),
        ],
    ),
    mix(
        "2H-2M-2L",
        Over,
        &[
            ("freqmine", 4, H),
            ("swaptions", 4, H),
            ("x264", 4, M),
            ("pmake", 4, M),
            ("canneal", 4, L),
            ("apache", 4, L),
        ],
    ),
    mix("2H-1M-1L", Over, &[("freqmine", 6, H), ("swaptions", 6, H), ("x264", 6, M), ("canneal", 6, L)]),
    mix(
        "4H-2L",
        Over,
        &[
            ("freqmine", 4, H),
            ("freqmine", 4, H),
            ("swaptions", 4, H),
            ("swaptions", 4, H),
            ("canneal", 4, L),
            ("apache", 4, L),
        ],
    ),
];

pub fn find(name: &str) -> Option<&'static Mix> {
    MIXES.iter().find(|mix| mix.name == name)
}

#[cfg(test)]
mod tests;
