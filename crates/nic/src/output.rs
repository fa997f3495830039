//! The engine's output.

use core::convert::Infallible;
use eft_component::Output;
use eft_messages::nic::NicToIp;
use eft_messages::{ComponentId, Encoded};

/// A message to ip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToIp(pub NicToIp);

impl Output for ToIp {
    type Effect = Infallible;

    fn peer(&self) -> Option<ComponentId> {
        Some(ComponentId::IP)
    }
    fn encode(&self) -> Encoded {
        self.0.encode()
    }
    fn is_urgent(&self) -> bool {
        !matches!(self.0, NicToIp::Sent { errno: 0, .. })
    }
    fn into_effect(self) -> Option<Infallible> {
        None
    }
}
