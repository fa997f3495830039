//! The goals of the command line.

use std::str::FromStr;

use eft_component::scheduling::{Objective, Scheduling};
use eft_sim::timed::policies::Judge;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedGoal(pub Judge);

impl FromStr for AskedGoal {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NONE: &str =
            "none of throughput, least-power, least-power:PERCENT (1 to 100) and throughput-per-watt";
        let (name, percent) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let percent = percent.map(|rest| rest.parse().ok().filter(|percent| (1..=100).contains(percent)));
        match (name, percent) {
            ("throughput", None) => Ok(Self(Judge::THROUGHPUT)),
            ("throughput-per-watt", None) => Ok(Self(Judge::THROUGHPUT_PER_WATT)),
            ("least-power", None) => Ok(Self(Judge::least_power(default_floor_percent()))),
            ("least-power", Some(Some(percent))) => Ok(Self(Judge::least_power(percent))),
            _ => Err(NONE),
        }
    }
}

/// What a topology has if it names no floor.
fn default_floor_percent() -> u64 {
    Scheduling::default().floor.percent().round() as u64
}

/// Above the table.
pub fn told(judge: &Judge, most_kbps: u64) -> String {
    let most = most_kbps as f64 / 1000.0;
    match judge.objective {
        Objective::Throughput => String::new(),
        Objective::LeastPower => format!(
            "goal: the least power with {:.0} of the {most:.0} Mbit/s that the fastest configuration carries\n",
            judge.floor_kbps(most_kbps) as f64 / 1000.0
        ),
        Objective::ThroughputPerWatt => {
            format!("goal: the most bytes for a joule; the fastest configuration carries {most:.0} Mbit/s\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_as_topologies_name_them() {
        let read = |text: &str| text.parse::<AskedGoal>().map(|goal| goal.0);
        assert_eq!(read("throughput"), Ok(Judge::THROUGHPUT));
        assert_eq!(read("throughput-per-watt"), Ok(Judge::THROUGHPUT_PER_WATT));
        assert_eq!(read("least-power"), Ok(Judge::least_power(95)));
        assert_eq!(read("least-power:50"), Ok(Judge::least_power(50)));
        for wrong in ["", "power", "least-power:", "least-power:0", "least-power:101", "throughput:5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
