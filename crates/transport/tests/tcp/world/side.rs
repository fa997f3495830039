//! One host: an engine with its memory; ip and sockets are played by the world, and one program runs.

use super::Conditions;
use crate::app::App;
use eft_base::{Instant, Random, RequestId, WireAddress};
use eft_channel::socket::Geometry;
use eft_harness::{Shape, TransportHost};
use eft_transport::tcp::{Tcp, TcpConfig};
use std::ops::{Deref, DerefMut};

pub struct Side {
    transport: TransportHost<Tcp>,
    pub config: TcpConfig,
    pub app: App,
    pub address: WireAddress,
    pub(super) link_free_at: Instant,
    /// Largest payload of one `Send`, and the number of `Send`s.
    pub largest: usize,
    pub sends: u64,
    /// Connections and timers handled in one turn, the most of all turns.
    pub longest_turn: u64,
    pub(super) unanswered_sends: Vec<RequestId>,
}

impl Side {
    pub(super) fn new(index: usize, seed: u64, conditions: &Conditions) -> Side {
        let config = TcpConfig {
            connections: conditions.connections,
            sockets_per_domain: conditions.connections / 2,
            listeners_per_domain: 4,
            seed: seed ^ index as u64,
            ..TcpConfig::default()
        };
        let geometry = Geometry {
            slots: conditions.connections,
            send_len: if conditions.ring > 1 << 18 { 4 * conditions.ring } else { conditions.ring },
            receive_len: conditions.ring,
        };
        let shape = Shape { config, geometry, headers: 512, packets: 256, is_measured: false };
        Side {
            transport: TransportHost::new(shape, Random::new(seed ^ 0x5eed ^ index as u64)),
            config,
            app: App::default(),
            address: std::net::IpAddr::from([10, 0, 0, index as u8 + 1]).into(),
            link_free_at: Instant::ZERO,
            largest: 0,
            sends: 0,
            longest_turn: 0,
            unanswered_sends: Vec::new(),
        }
    }

    /// Lights the fuse of the engine that lives.
    pub fn light(&mut self, steps: u64) {
        self.host.engine.fuse().light(steps);
    }

    /// A counter by its name.
    pub fn counter(&self, name: &str) -> u64 {
        self.host.counter(name)
    }
}

impl Deref for Side {
    type Target = TransportHost<Tcp>;

    fn deref(&self) -> &TransportHost<Tcp> {
        &self.transport
    }
}

impl DerefMut for Side {
    fn deref_mut(&mut self) -> &mut TransportHost<Tcp> {
        &mut self.transport
    }
}
