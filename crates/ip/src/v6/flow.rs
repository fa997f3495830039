//! Flow labels (RFC 6437 §3): the packets of a connection, or of a pair of datagram sockets, have the same one, by which routers and
//! devices can spread flows without a look at transports' headers.

use crate::pending::Outgoing;
use eft_base::hash::Key;
use eft_base::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use eft_messages::transport::Wish;

const PORTS: core::ops::Range<usize> = 0..4;

/// Makes labels that cannot be guessed from without (RFC 6437 §6.1), by a key that lives as long as ip.
pub(crate) struct FlowLabels(Key);

impl FlowLabels {
    pub fn new(key: [u64; 2]) -> FlowLabels {
        FlowLabels(Key(key))
    }

    /// The label of a packet: the program's, or else of TCP and UDP by addresses, protocol and ports; 0 says that there is none.
    pub fn of(&self, o: &Outgoing) -> u32 {
        if let Some(chosen) = o.label {
            return chosen;
        }
        let is_flow = o.source.is_ipv6() && matches!(o.protocol, PROTOCOL_TCP | PROTOCOL_UDP);
        let Some(ports) = o.header.get(PORTS).filter(|_| is_flow) else {
            return 0;
        };
        let hash = self.0.hash(b'F', &(o.source, o.destination, o.protocol, ports));
        // RFC 6437 §3: a label of a flow is not 0.
        (hash as u32 & Wish::LABEL).max(1)
    }
}
