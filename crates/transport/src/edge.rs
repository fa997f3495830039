//! What enters and leaves a transport engine: the messages of its two edges, and effects.

use eft_component::Output;
use eft_component::transport::Effect;
use eft_messages::sockets::{SocketsToTransport, TransportToSockets};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};

/// A message to a transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum In {
    Ip(IpToTransport),
    Sockets(SocketsToTransport),
}

impl In {
    pub fn decode(peer: ComponentId, line: &Encoded) -> Option<In> {
        match peer.role {
            Role::Ip => IpToTransport::decode(line).map(In::Ip),
            Role::Sockets => SocketsToTransport::decode(line).map(In::Sockets),
            _ => None,
        }
    }
}

/// What leaves a transport.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Ip(TransportToIp),
    Sockets(TransportToSockets),
    Effect(Effect),
}

impl Output for Out {
    type Effect = Effect;

    fn peer(&self) -> Option<ComponentId> {
        match self {
            Out::Ip(_) => Some(ComponentId::IP),
            Out::Sockets(_) => Some(ComponentId::SOCKETS),
            Out::Effect(_) => None,
        }
    }

    fn encode(&self) -> Encoded {
        match self {
            Out::Ip(m) => m.encode(),
            Out::Sockets(m) => m.encode(),
            // Never encoded: `peer` is None.
            Out::Effect(_) => [0; 7],
        }
    }

    fn is_urgent(&self) -> bool {
        !matches!(self, Out::Ip(TransportToIp::Done { .. }))
    }

    fn into_effect(self) -> Option<Effect> {
        match self {
            Out::Effect(e) => Some(e),
            _ => None,
        }
    }
}
