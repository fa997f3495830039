//! Answers to the transports' questions about routes.

use crate::counters::Counter;
use crate::engine::{Ip, Out, SEGMENT_MAX};
use crate::family;
use crate::note;
use crate::pending::{Next, ToPeer};
use crate::route::Hints;
use core::net::IpAddr;
use eft_base::errno::{EADDRNOTAVAIL, ENETUNREACH};
use eft_base::{RequestId, WireAddress};
use eft_component::Context;
use eft_messages::ComponentId;
use eft_messages::transport::IpToTransport;

/// The MTU of local packets: no link limits them.
const LOCAL_MTU: u16 = 65535;

impl Ip {
    pub(crate) fn no_route(request: RequestId, source: WireAddress, errno: i32) -> IpToTransport {
        IpToTransport::Routed {
            request,
            errno,
            source,
            mtu: 0,
            segment_max: 0,
            local: false,
            mss: 0,
            initial_segments: 0,
        }
    }

    pub(crate) fn receive_route(
        &mut self,
        cx: &mut Context,
        peer: ComponentId,
        request: RequestId,
        source: WireAddress,
        destination: WireAddress,
        out: &mut Out,
    ) {
        cx.count(Counter::Routes);
        let found = match self.enter(cx, note::route(source, destination)) {
            true => self.route(source.into(), destination.into()),
            false => Err(ENETUNREACH),
        };
        let answer = match found {
            Ok((source, mtu, segment_max, local)) => {
                let hints = if local { Hints::default() } else { self.routes.hints(destination.into()) };
                IpToTransport::Routed {
                    request,
                    errno: 0,
                    source: source.into(),
                    mtu,
                    segment_max,
                    local,
                    mss: hints.mss,
                    initial_segments: hints.initial_segments,
                }
            }
            Err(errno) => Ip::no_route(request, source, errno),
        };
        out.push(ToPeer::Transport(peer, answer));
    }

    /// Source, MTU, segment_max, and whether it is local.
    fn route(&self, source: IpAddr, destination: IpAddr) -> Result<(IpAddr, u16, u32, bool), i32> {
        if !source.is_unspecified() && !family::is_pair(source, destination) {
            return Err(ENETUNREACH);
        }
        let chosen = match source {
            s if self.routes.is_ours(s) => Some(s),
            s if s.is_unspecified() => None,
            _ => return Err(EADDRNOTAVAIL),
        };
        let hop = self.routes.hop(source, destination).ok_or(ENETUNREACH)?;
        let source = chosen.or_else(|| self.routes.source_for(hop, destination)).ok_or(ENETUNREACH)?;
        if hop.next == Next::Local {
            return Ok((source, LOCAL_MTU, SEGMENT_MAX, true));
        }
        let link = self.link(hop.interface).ok_or(ENETUNREACH)?;
        Ok((source, link.mtu.min(hop.mtu), link.segment_max, false))
    }
}
