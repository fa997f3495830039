//! tcp's engine alone: how long a successor takes to open the arena of many connections and to find out from it what it needs.
//! There are no processes here, so no limit of descriptors ends the number of connections.

use super::super::figure::{Aim, Figure};
use super::super::scale::Crowd;
use super::aims;
use anyhow::Result;

pub fn figure(connections: usize, rounds: usize) -> Result<Figure> {
    let mut crowd = Crowd::new(connections, 0)?;
    let one = |_| {
        let took = crowd.rebirth()?;
        // It looks at its connections one after the other.
        crowd.settle()?;
        Ok(took.as_secs_f64() * 1e3)
    };
    let times = (0..rounds).map(one).collect::<Result<Vec<f64>>>()?;
    // The connections are there, and work.
    crowd.exchange(connections - 1)?;
    let what = "tcp's engine alone: CPU time from opening its arena until it takes events";
    let figure = Figure::new(what, "ms", times);
    Ok(match aims(connections) {
        Some([without, _]) => figure.aim(Aim::AtMost(without)),
        None => figure,
    })
}
