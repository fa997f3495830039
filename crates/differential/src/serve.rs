//! One side of a comparison: a process that runs the programs that it is asked to run, one after another.

use crate::execute::execute;
use crate::observation::Observation;
use crate::peer::Place;
use crate::program::Program;
use anyhow::{Context, Result};
use eft_packetdrill::wire::Wire;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses of the host that is tested.
pub const HOST_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
pub const HOST_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 1);
/// The routers through which it reaches the peer. Whoever has the other end of the wire answers for them.
pub const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 255, 254);
pub const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xa0b, 0x17d6, 0, 0, 0, 0, 0xffff);

#[derive(Serialize, Deserialize)]
pub struct Request {
    /// Which run this is: another one has other ports and another peer.
    pub run: u32,
    pub program: Program,
    pub expected: Option<Vec<Observation>>,
}

/// The addresses and ports of a run: what a host remembers of a peer or of a port is of no other run.
fn place(run: u32, v6: bool) -> Place {
    // Below the ports that hosts choose.
    let port = 10_000 + (run % 5000) as u16 * 4;
    let number = (run % 60_000 + 1) as u16;
    let [high, low] = number.to_be_bytes();
    match v6 {
        false => Place { host: HOST_V4.into(), peer: Ipv4Addr::new(198, 18, high, low).into(), port },
        true => Place {
            host: HOST_V6.into(),
            peer: Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, number).into(),
            port,
        },
    }
}

/// Answers requests, a line each, with what was observed. `wire`: see [`Wire::open`].
pub fn serve(wire: &str) -> Result<()> {
    let wire = Wire::open(wire).context("the wire")?;
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let place = place(request.run, request.program.v6);
        let trace = execute(&request.program, &wire, place, request.expected.as_deref());
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&trace)?)?;
        out.flush()?;
    }
    Ok(())
}
