//! How servers poll their queues, and for how long before they sleep.

use super::server::{SERVERS, Server};
use crate::hardware::{Costs, Work};

/// How servers poll their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// The cost of an empty poll for each server, in percent of [`Costs::empty_poll_cycles`].
    pub percent: [u64; SERVERS.len()],
    /// Polls before ip sleeps, in percent of [`Costs::polls`].
    pub ip_polls_percent: u64,
    /// The driver never sleeps.
    pub driver_is_tireless: bool,
}

impl Default for Polling {
    fn default() -> Self {
        Self { percent: [100; SERVERS.len()], ip_polls_percent: 100, driver_is_tireless: false }
    }
}

/// Polls of a server that never sleeps; after these it polls as often again.
pub const TIRELESS: u64 = 1_000_000;

impl Polling {
    pub fn one(&self, costs: &Costs, server: Server) -> Work {
        Work::cycles(costs.empty_poll_cycles * self.percent[server.kind() as usize] / 100)
    }

    pub fn before_sleep(&self, costs: &Costs, server: Server) -> u64 {
        match server {
            Server::Driver if self.driver_is_tireless => TIRELESS,
            Server::Ip => costs.polls * self.ip_polls_percent / 100,
            _ => costs.polls,
        }
    }

    pub fn sleeps(&self, server: Server) -> bool {
        server != Server::Driver || !self.driver_is_tireless
    }
}
