//! What every test of an engine needs: a host that calls the engine as the server loop does, a transport with its
//! memory and its neighbours' side of each edge, and programs that check every byte.
//!
//! The tests of `transport`, the fuzz targets and the simulator share it. It holds no test and no network: its user
//! decides when time passes and what happens to a packet.

mod content;
mod engine;
mod host;
mod program;
mod stream;
mod transport;
mod wire_segment;

pub use content::byte_at;
pub use engine::Engine;
pub use host::Host;
pub use program::{listeners, take_accepted};
pub use stream::{Plan, Stream, salt};
pub use transport::{ARENA_POOL, Arrival, DOMAIN, PACKET_LEN, Quote, Route, Shape, TransportHost};
pub use wire_segment::WireSegment;
