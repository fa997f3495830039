//! The ways in which options are kept.

use crate::socket::Socket;
use core::ffi::c_int;
use eft_channel::socket::Opt;

/// How an option is kept.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A word for the transport, as it is.
    Word(Opt),
    /// A word for the transport: 0 or 1.
    Flag(Opt),
    /// One of the shim's bits.
    Bit(u32),
    /// A buffer size; the kernel doubles what is set.
    Size(Opt),
    /// On the descriptor itself.
    Descriptor,
    /// Cannot be set; reads as computed.
    Computed(fn(&Socket) -> c_int),
    /// As that, and setting it is invalid: on streams, as on Linux.
    Invalid(fn(&Socket) -> c_int),
    Cork,
    DatagramCork,
    /// UDP_SEGMENT.
    Segment,
    QuickAck,
    Linger,
    Congestion,
    MaxSegment,
    Priority,
    LowWater,
    DontFragment,
    /// IP_RECVERR.
    ErrorQueue,
    /// IP_OPTIONS, SO_BINDTODEVICE: none.
    NoOptions,
    /// IPV6_V6ONLY: off.
    V6Only,
    PathMtu,
    /// IPV6_MTU: reads as that.
    LargestPacket,
    /// IPV6_PATHMTU.
    PathMtuInfo,
    /// IPV6_DONTFRAG.
    NeverFragment6,
    /// IPV6_AUTOFLOWLABEL.
    AutoLabel,
    /// IPV6_FLOWLABEL_MGR. Cannot be read.
    LabelLease,
    Error,
    TcpInfo,
    /// SO_MAX_PACING_RATE.
    PacingLimit,
    /// SO_MEMINFO.
    Memory,
    /// TCP_FASTOPEN_KEY.
    CookieKeys,
    /// SO_TIMESTAMPING.
    Stamps,
    /// SO_TIMESTAMP, SO_TIMESTAMPNS: which, by a bit of [`eft_channel::socket::stamping`].
    Arrival(u32),
    /// IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS.
    MulticastHops,
    /// A word for the transport: 0 if it is on, which is the default.
    Unless(Opt),
    /// A change of a membership: one of [`eft_messages::sockets::membership`]. Cannot be read.
    Membership(u8),
    /// IP_MSFILTER, MCAST_MSFILTER.
    Filter,
    /// IP_MULTICAST_IF, IPV6_MULTICAST_IF.
    MulticastInterface,
    /// TCP_MD5SIG, TCP_MD5SIG_EXT. Cannot be read.
    SignatureKey,
    /// TCP_AO_ADD_KEY, TCP_AO_DEL_KEY. Cannot be read.
    AuthenticationKey,
    /// TCP_AO_INFO.
    Authentication,
    /// TCP_AO_GET_KEYS.
    AuthenticationKeys,
    /// TCP_CC_INFO: empty for CUBIC and NewReno, as on Linux.
    CongestionInfo,
}

impl Kind {
    pub fn is_set_only(self) -> bool {
        matches!(self, Kind::Membership(_) | Kind::SignatureKey | Kind::AuthenticationKey | Kind::LabelLease)
    }

    pub fn is_read_only(self) -> bool {
        matches!(
            self,
            Kind::Computed(_)
                | Kind::Invalid(_)
                | Kind::Error
                | Kind::TcpInfo
                | Kind::CongestionInfo
                | Kind::PathMtu
                | Kind::PathMtuInfo
                | Kind::Memory
                | Kind::AuthenticationKeys
        )
    }
}
