//! What the network and the machine do to the engines.

/// What the network and the machine do to the engines.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    pub loss: f64,
    pub duplicate: f64,
    /// Of packets that may be marked (RFC 3168).
    pub mark: f64,
    pub corrupt: f64,
    pub delay_us: u64,
    pub jitter_us: u64,
    pub mtu: u16,
    /// 0: the device does not segment.
    pub segment_max: u32,
    /// What the route says to TCP, or 0.
    pub mss: u16,
    pub initial_segments: u16,
    /// Both ends believe that they are on one host.
    pub local: bool,
    /// Large segments arrive as the wire segments that they were.
    pub split: bool,
    /// The receiver must check checksums itself.
    pub checksum: bool,
    /// Bytes per microsecond; 0: unlimited.
    pub rate: u64,
    /// Bytes that wait for the link at most (with a rate).
    pub queue: u64,
    /// Chance per event that an engine dies.
    pub crash: f64,
    /// Chance per event that a side's ip is reborn.
    pub ip_crash: f64,
    /// Places in the queue to ip.
    pub room: usize,
    /// Bytes of each receive ring, and of the send rings that streams begin with.
    pub ring: usize,
    pub strip_sack: bool,
    pub strip_timestamps: bool,
    /// Blocks of an engine; half as many sockets.
    pub connections: usize,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            loss: 0.0,
            duplicate: 0.0,
            mark: 0.0,
            corrupt: 0.0,
            delay_us: 100,
            jitter_us: 0,
            mtu: 1500,
            segment_max: 65000,
            mss: 0,
            initial_segments: 0,
            local: false,
            split: false,
            checksum: false,
            rate: 0,
            queue: 1 << 20,
            crash: 0.0,
            ip_crash: 0.0,
            room: 512,
            ring: 1 << 20,
            strip_sack: false,
            strip_timestamps: false,
            connections: 64,
        }
    }
}
