//! The traits of a world: what the live and the simulated world both are.

use eft_base::PacketRef;
use eft_base::{Instant, MacAddress};
use eft_channel::notify::{Doorbell, Wake};
use eft_channel::pool::Pool;
use eft_channel::{Memory, PoolView};
use eft_messages::ComponentId;
use eft_messages::nic::FrameDescriptor;

/// What the server loop needs from its surroundings.
pub trait World {
    /// What the server's component asks for.
    type Effect;

    fn now(&mut self) -> Instant;

    /// Wakes a sleeping peer: `how` is never [`Wake::None`].
    fn wake(&mut self, peer: ComponentId, how: Wake, doorbell: &Doorbell);

    /// A message is about to go out. Where servers die in the middle of a turn they may do so here.
    fn sends(&mut self) {}

    /// Carries out an effect.
    fn perform(&mut self, effect: Self::Effect);

    /// `peer` sent what no sound server sends: it is to be replaced. Its successor gets the unanswered requests
    /// again.
    fn accuse(&mut self, peer: ComponentId);
}

/// What a device is and can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub mac: MacAddress,
    /// Bytes of the largest IP packet (not counting what it segments).
    pub mtu: u16,
    pub up: bool,
    /// It completes transport checksums of frames with `FRAME_CHECKSUM`.
    pub checksum: bool,
    /// Largest TCP payload of one frame that it segments; 0: none.
    pub segment_max: u32,
    /// It also cuts such frames of datagrams. It may find out with the first of them that it does not.
    pub datagrams: bool,
    /// Segments that it received one behind the other are to be merged (receive coalescing).
    pub coalesce: bool,
}

/// A frame that the device put into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    pub len: u32,
    /// The transport checksum was verified, or the frame never left this machine.
    pub checksum_ok: bool,
    /// TCP or UDP payload per segment if several were merged, else 0.
    pub segment_size: u16,
}

/// A frame to send, checked: every payload reference resolves in `memory`.
pub struct Frame<'a> {
    pub descriptor: &'a FrameDescriptor,
    pub memory: &'a Memory,
}

/// Why a device did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Try again when the device says so.
    WouldBlock,
    /// This frame cannot be sent or received (an errno); others may.
    Failed(i32),
    /// The device is gone (an errno).
    Gone(i32),
}

/// A network device, live (TAP, AF_PACKET, pair) or simulated.
pub trait Device {
    fn info(&mut self) -> DeviceInfo;

    /// Sends a frame. The device is done with the memory when this returns.
    fn send(&mut self, frame: &Frame) -> Result<(), DeviceError>;

    /// Receives a frame into `slot` of `pool` (from its first byte).
    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> Result<ReceivedFrame, DeviceError>;

    /// A predecessor died while it received into `slot` of `pool`: the frame that it got, if the device does not give it again.
    fn recover(&mut self, _pool: &PoolView, _slot: PacketRef) -> Option<ReceivedFrame> {
        None
    }

    /// Called at the end of a batch: what was gathered goes out now.
    fn flush(&mut self) {}
}
