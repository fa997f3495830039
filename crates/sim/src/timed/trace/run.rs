//! One run: a trace, a setting, a seed.

use eft_base::{Endpoint, Instant};

use super::clients::Clients;
use super::replay::Replay;
use crate::batch::Setting;
use crate::timed::peer::Peer;
use crate::timed::web::exchanges::Exchanges;
use crate::timed::web::load::{Event, World};
use crate::timed::web::run::world_of;
use crate::web::Web;

/// A world at time 0. `web`: the program, and a stack with room for at least twice the connections that are open at once: some still
/// close.
pub fn world<'a>(web: &'a Web, replay: &'a Replay, setting: &Setting, seed: u64) -> World<'a, Clients<'a>> {
    let exchanges = Exchanges::default();
    let asked = exchanges.clone();
    let sockets_max = 2 * web.stack.streams;
    let clients =
        |host: Peer, to: Endpoint, base: Instant| Clients::new(replay, (host, to), base, sockets_max, asked);
    let mut world = world_of(web, setting, seed, exchanges, clients);
    world.at(0, Event::Client { client: 0 });
    world
}

#[cfg(test)]
mod tests;
