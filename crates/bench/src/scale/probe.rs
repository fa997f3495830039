//! What runs under callgrind: one kind of work beside a number of connections that are there.

use super::crowd::Crowd;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Work whose cost should not depend on how many connections there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// A request of 64 bytes comes, is read, and answered: two segments or three.
    Segment,
    /// A connection comes, is accepted, and closed.
    Connection,
    /// A timer expires, and a segment is sent again.
    Timer,
}

impl Work {
    pub const ALL: [Work; 3] = [Work::Segment, Work::Connection, Work::Timer];

    pub fn what(self) -> &'static str {
        match self {
            Work::Segment => "segment, in a request with its answer",
            Work::Connection => "connection, opened and closed",
            Work::Timer => "timer that expires",
        }
    }
}

#[derive(clap::Args)]
pub struct ProbeArguments {
    work: Work,
    connections: usize,
}

/// How often it is done, beside any number of connections.
const TIMES: usize = 1000;
/// Connections that exchange requests, spread over all: as many among 100,000 as among ten, since a young connection
/// acknowledges more often than an old one.
const BUSY: usize = 10;
/// In which a tail loss probe and the first retransmission time-out come.
const RESENDING: Duration = Duration::from_millis(700);

/// Prints how many units of work were counted.
pub fn run(arguments: &ProbeArguments) -> Result<()> {
    let ProbeArguments { work, connections } = *arguments;
    ensure!(connections > 0, "work needs at least one connection");
    let mut crowd = Crowd::new(connections, TIMES)?;
    let busy = BUSY.min(connections);
    let at_work = (0..TIMES).map(|i| (i % busy) * (connections / busy));
    let units = match work {
        Work::Segment => {
            // What a connection does only the first time does not count.
            exchange(&mut crowd, at_work.clone())?;
            crowd.is_counted = true;
            exchange(&mut crowd, at_work)?
        }
        Work::Connection => {
            (0..TIMES / 10).try_for_each(|_| open_and_close(&mut crowd))?;
            crowd.is_counted = true;
            (0..TIMES).try_for_each(|_| open_and_close(&mut crowd))?;
            TIMES
        }
        Work::Timer => expire(&mut crowd, connections)?,
    };
    println!("{units}");
    Ok(())
}

/// Segments there and back.
fn exchange(crowd: &mut Crowd, at_work: impl Iterator<Item = usize>) -> Result<usize> {
    at_work.map(|client| crowd.exchange(client)).sum()
}

fn open_and_close(crowd: &mut Crowd) -> Result<()> {
    crowd.connect()?;
    crowd.close()
}

/// Connections that are spread over all send something that is not acknowledged.
fn expire(crowd: &mut Crowd, connections: usize) -> Result<usize> {
    let count = TIMES.min(connections);
    for i in 0..count {
        crowd.send(i * (connections / count))?;
    }
    crowd.is_counted = true;
    let again = crowd.wait(RESENDING)?.len();
    ensure!(again >= count, "{again} of {count} segments were sent again");
    Ok(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_is_done() {
        for work in Work::ALL {
            for connections in [1, 300] {
                run(&ProbeArguments { work, connections })
                    .unwrap_or_else(|e| panic!("{work:?} beside {connections}: {e:#}"));
            }
        }
    }
}
