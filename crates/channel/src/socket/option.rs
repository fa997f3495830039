//! The options that an application sets on one socket.

/// Options that the application writes and the transport reads; 32-bit words, zero is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Opt {
    NoDelay = 0,
    Cork,
    KeepAlive,
    /// Seconds; 0 means the default of 7200.
    KeepIdle,
    /// Seconds; 0 means 75.
    KeepInterval,
    /// Probes; 0 means 9.
    KeepCount,
    /// Milliseconds (TCP_USER_TIMEOUT); 0 means none.
    UserTimeout,
    /// 0: not set; n: SO_LINGER with n-1 seconds.
    Linger,
    /// Bytes of SO_RCVBUF; 0 means the ring's length.
    ReceiveBuffer,
    /// Bytes of SO_SNDBUF; 0 means the ring's length.
    SendBuffer,
    Tos,
    /// 0 means the default of 64.
    Ttl,
    Broadcast,
    QuickAck,
    /// 0 default; 1 + algorithm: 1 CUBIC, 2 NewReno, 3 BBR.
    Congestion,
    /// IP_MTU_DISCOVER: bits of [`fragment`].
    DontFragment,
    /// Largest segment in bytes (TCP_MAXSEG); 0 means no limit. Takes effect with the next handshake.
    MaxSegment,
    /// Bytes that may wait to be sent before a writer waits (TCP_NOTSENT_LOWAT); 0 means no limit.
    NotSentLowWater,
    /// Low half of the offset up to which bytes go out although the socket is corked: where the stream ended when
    /// TCP_NODELAY was last set.
    Flush,
    /// IP_RECVERR: ICMP errors go to the socket's error queue; for UDP.
    ReceiveErrors,
    /// How often a SYN is sent again (TCP_SYNCNT); 0 means 6 times.
    SynCount,
    /// For a listener: connections that may be open before their handshake is done (TCP_FASTOPEN); 0 means none.
    FastOpenQueue,
    /// For a connect: which kind of TCP Fast Open it uses, one of [`early`].
    FastOpenConnect,
    /// UDP_GRO: datagrams that arrive together may lie in one record; for UDP.
    MergeReceived,
    /// Counts the sends with MSG_ZEROCOPY of a stream. Each change wakes those who wait on its descriptor.
    ZeroCopySends,
    /// Counts the records of a stream ([`super::SocketPage::end_record`]).
    Records,
    /// For a listener: data that come with a SYN are taken without a cookie (TCP_FASTOPEN_NO_COOKIE).
    FastOpenNoCookie,
    /// Which times of a stream's sends and receives the application wants (SO_TIMESTAMPING).
    Timestamping,
    /// SO_MAX_PACING_RATE ([`super::pacing`]).
    PacingLimitLow,
    PacingLimitHigh,
    /// Hops of datagrams to groups (IP_MULTICAST_TTL): one more than was set; 0 means the default of 1.
    MulticastHops,
    /// One more than [`super::SocketInfo::soft_errors`] when SO_ERROR last told the path error of a stream.
    SoftErrorTold,
    /// This host gets no copy of datagrams to groups that it is a member of: IP_MULTICAST_LOOP is off.
    NoMulticastLoop,
    /// Datagrams to groups are wanted only if the socket itself is a member: IP_MULTICAST_ALL is off.
    OwnGroupsOnly,
    /// The interface that datagrams to groups leave by (IP_MULTICAST_IF): its index; 0: as the stack chooses. For the shim.
    MulticastInterface,
    /// The IPv4 address that was named for it; 0: none. For the shim.
    MulticastSource,
    /// Keys that sign segments (TCP_MD5SIG, TCP_AO_ADD_KEY): see [`super::signature_keys`].
    SignatureKeys,
    /// What is wished of TCP-AO: see [`super::authentication`].
    Authentication,
    /// TCP_DEFER_ACCEPT of a listener: while a SYN-ACK has timed out less often, an acknowledgment without data does not complete
    /// a handshake.
    DeferAccept,
    /// The flow label of IPv6 packets: bits of [`flow`].
    FlowLabel,
    /// Bytes of the largest fragment of IPv6 of a datagram socket (IPV6_MTU); 0 means no limit.
    LargestPacket,
}

impl Opt {
    pub(crate) const LAST: Opt = Opt::LargestPacket;

    /// Options that a connection inherits from its listener.
    pub const INHERITED: &[Opt] = &[
        Opt::NoDelay,
        Opt::Cork,
        Opt::KeepAlive,
        Opt::KeepIdle,
        Opt::KeepInterval,
        Opt::KeepCount,
        Opt::UserTimeout,
        Opt::Linger,
        Opt::ReceiveBuffer,
        Opt::SendBuffer,
        Opt::Tos,
        Opt::Ttl,
        Opt::QuickAck,
        Opt::Congestion,
        Opt::MaxSegment,
        Opt::NotSentLowWater,
        Opt::SynCount,
        Opt::DontFragment,
        Opt::PacingLimitLow,
        Opt::PacingLimitHigh,
        Opt::FlowLabel,
    ];
}

/// Bits of [`Opt::Cork`].
pub mod cork {
    /// TCP_CORK.
    pub const OPTION: u32 = 1;
    /// MSG_MORE of the last send.
    pub const MORE: u32 = 2;
}

/// Bits of [`Opt::DontFragment`].
pub mod fragment {
    /// A datagram must not be fragmented.
    pub const NEVER: u32 = 1;
    /// A stream's packets may be fragmented on their way.
    pub const MAY: u32 = 2;
    /// As [`NEVER`], for IPv6 (IPV6_DONTFRAG).
    pub const NEVER_IPV6: u32 = 4;
}

/// Bits of [`Opt::FlowLabel`].
pub mod flow {
    /// The label that the program chose; 0: none.
    pub const LABEL: u32 = 0xf_ffff;
    /// Where the program chose none, packets have none (IPV6_AUTOFLOWLABEL is off).
    pub const NOT_BY_ITSELF: u32 = 1 << 31;

    /// The label of packets. `None`: ip chooses.
    pub fn label(word: u32) -> Option<u32> {
        match word & LABEL {
            0 => (word & NOT_BY_ITSELF != 0).then_some(0),
            chosen => Some(chosen),
        }
    }
}

/// Values of [`Opt::FastOpenConnect`].
pub mod early {
    /// None.
    pub const NONE: u32 = 0;
    /// What lies in the send ring may go with the SYN (MSG_FASTOPEN). Without a cookie nothing of it is taken while this
    /// is set: `Connect` is answered with EINPROGRESS.
    pub const DATA: u32 = 1;
    /// With a cookie nothing is begun before there are data (TCP_FASTOPEN_CONNECT): `Connect` is answered with EAGAIN.
    pub const DEFER: u32 = 2;
    /// As [`DATA`], and of what lies in the ring only what the SYN has room for is taken; the answer to `Connect` says how
    /// much. The rest must be taken back before this is cleared (MSG_FASTOPEN of a call that does not wait).
    pub const FITTING: u32 = 3;
}
