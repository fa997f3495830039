//! What differs between tcp and udp.

use eft_channel::{Pool, Segment};
use eft_component::Component;
use eft_component::transport::{Effect, Event};
use eft_transport::tcp::{self, Tcp, TcpConfig};
use eft_transport::udp::{self, Udp, UdpConfig};
use eft_transport::{Fuse, In, Out, Refused};

/// A transport, as its host makes it.
pub trait Engine: Component<In = In, Out = Out, Event = Event, Effect = Effect> + Sized {
    type Config: Copy;

    fn arena_len(config: &Self::Config) -> usize;
    fn examine(arena: &Segment, config: &Self::Config) -> Result<(), Refused>;
    fn open(arena: Segment, headers: Pool, config: Self::Config, fuse: Fuse) -> Result<Self, Refused>;
    fn fuse(&self) -> Fuse;
}

impl Engine for Tcp {
    type Config = TcpConfig;

    fn arena_len(config: &TcpConfig) -> usize {
        tcp::arena_len(config)
    }
    fn examine(arena: &Segment, config: &TcpConfig) -> Result<(), Refused> {
        tcp::examine(arena, config)
    }
    fn open(arena: Segment, headers: Pool, config: TcpConfig, fuse: Fuse) -> Result<Tcp, Refused> {
        Tcp::open_with(arena, headers, config, fuse)
    }
    fn fuse(&self) -> Fuse {
        Tcp::fuse(self)
    }
}

impl Engine for Udp {
    type Config = UdpConfig;

    fn arena_len(config: &UdpConfig) -> usize {
        udp::arena_len(config)
    }
    fn examine(arena: &Segment, config: &UdpConfig) -> Result<(), Refused> {
        udp::examine(arena, config)
    }
    fn open(arena: Segment, headers: Pool, config: UdpConfig, fuse: Fuse) -> Result<Udp, Refused> {
        Udp::open_with(arena, headers, config, fuse)
    }
    fn fuse(&self) -> Fuse {
        Udp::fuse(self)
    }
}
