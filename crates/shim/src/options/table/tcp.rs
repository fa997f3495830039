//! The rows of tcp(7).

use super::{Kind, Row, TCP, no};
use crate::socket::bit;
use core::ffi::c_int;
use eft_channel::socket::Opt;

const KEYS: &str = "RFC 2385; a listener has room for some hundred keys, others for five (ENOMEM)";
const AO: &str = "RFC 5925: hmac(sha1) and cmac(aes128), codes of up to 12 bytes (EMSGSIZE); beside TCP_MD5SIG's keys, with as much room; none of an interface (EINVAL)";

const fn stream(number: c_int, name: &'static str, kind: Kind, note: &'static str) -> Row {
    Row { level: TCP, number, name, stream: Some(kind), datagram: None, note }
}

pub(super) const OPTIONS: &[Row] = &[
    stream(1, "TCP_NODELAY", Kind::Flag(Opt::NoDelay), ""),
    stream(2, "TCP_MAXSEG", Kind::MaxSegment, ""),
    stream(3, "TCP_CORK", Kind::Cork, ""),
    stream(4, "TCP_KEEPIDLE", Kind::Word(Opt::KeepIdle), ""),
    stream(5, "TCP_KEEPINTVL", Kind::Word(Opt::KeepInterval), ""),
    stream(6, "TCP_KEEPCNT", Kind::Word(Opt::KeepCount), ""),
    stream(7, "TCP_SYNCNT", Kind::Word(Opt::SynCount), ""),
    no(TCP, 8, "TCP_LINGER2", "an orphan waits for the FIN of its peer as long as Linux does by default"),
    stream(9, "TCP_DEFER_ACCEPT", Kind::Word(Opt::DeferAccept), "of a listener"),
    no(TCP, 10, "TCP_WINDOW_CLAMP", "SO_RCVBUF bounds the window"),
    stream(11, "TCP_INFO", Kind::TcpInfo, "every field, of now; what is not measured is 0 or unlimited"),
    stream(12, "TCP_QUICKACK", Kind::QuickAck, ""),
    stream(13, "TCP_CONGESTION", Kind::Congestion, "cubic, reno or bbr, else ENOENT"),
    stream(14, "TCP_MD5SIG", Kind::SignatureKey, KEYS),
    no(TCP, 15, "TCP_COOKIE_TRANSACTIONS", "Linux has removed it"),
    no(TCP, 16, "TCP_THIN_LINEAR_TIMEOUTS", "time-outs double (RFC 6298 §5.5)"),
    no(TCP, 17, "TCP_THIN_DUPACK", "Linux ignores it"),
    stream(18, "TCP_USER_TIMEOUT", Kind::Word(Opt::UserTimeout), ""),
    no(TCP, 19, "TCP_REPAIR", "connections move with `eft update`"),
    no(TCP, 20, "TCP_REPAIR_QUEUE", "as TCP_REPAIR"),
    no(TCP, 21, "TCP_QUEUE_SEQ", "as TCP_REPAIR"),
    no(TCP, 22, "TCP_REPAIR_OPTIONS", "as TCP_REPAIR"),
    stream(
        23,
        "TCP_FASTOPEN",
        Kind::Word(Opt::FastOpenQueue),
        "of a listener; of effect with `eft up --fastopen server` or `both`; with `all-listeners` as long as the backlog",
    ),
    no(TCP, 24, "TCP_TIMESTAMP", "as TCP_REPAIR"),
    stream(
        25,
        "TCP_NOTSENT_LOWAT",
        Kind::Word(Opt::NotSentLowWater),
        "for calls that write, and for waiters after a refused one",
    ),
    stream(26, "TCP_CC_INFO", Kind::CongestionInfo, "of BBR; else empty, as on Linux"),
    no(TCP, 27, "TCP_SAVE_SYN", "a SYN is not kept"),
    no(TCP, 28, "TCP_SAVED_SYN", "a SYN is not kept"),
    no(TCP, 29, "TCP_REPAIR_WINDOW", "as TCP_REPAIR"),
    stream(
        30,
        "TCP_FASTOPEN_CONNECT",
        Kind::Bit(bit::EARLY_CONNECT),
        "EOPNOTSUPP if `eft up --fastopen` names no client; MSG_FASTOPEN too",
    ),
    no(TCP, 31, "TCP_ULP", "TLS is the program's own"),
    stream(32, "TCP_MD5SIG_EXT", Kind::SignatureKey, "with a prefix; none of an interface (EINVAL)"),
    stream(
        33,
        "TCP_FASTOPEN_KEY",
        Kind::CookieKeys,
        "of a listener: one key or two; reads as none if it has none of its own",
    ),
    stream(
        34,
        "TCP_FASTOPEN_NO_COOKIE",
        Kind::Flag(Opt::FastOpenNoCookie),
        "of a listener; `eft up --fastopen` has it for all",
    ),
    no(TCP, 35, "TCP_ZEROCOPY_RECEIVE", "a receive is one copy, out of the ring"),
    stream(36, "TCP_INQ", Kind::Bit(bit::TELL_LEFT), "`recvmsg` tells what is left"),
    no(TCP, 37, "TCP_TX_DELAY", "of tests of the kernel"),
    stream(38, "TCP_AO_ADD_KEY", Kind::AuthenticationKey, AO),
    stream(39, "TCP_AO_DEL_KEY", Kind::AuthenticationKey, "EBUSY while it is in use"),
    stream(40, "TCP_AO_INFO", Kind::Authentication, "its counts cannot be set (EINVAL)"),
    stream(41, "TCP_AO_GET_KEYS", Kind::AuthenticationKeys, "at most 64 at once"),
    no(TCP, 42, "TCP_AO_REPAIR", "as TCP_REPAIR"),
    stream(43, "TCP_IS_MPTCP", Kind::Computed(|_| 0), "0: it is not"),
    no(TCP, 44, "TCP_RTO_MAX_MS", "time-outs double up to 120 s, as by default on Linux"),
    no(TCP, 45, "TCP_RTO_MIN_US", "200 ms, as by default on Linux"),
    no(TCP, 46, "TCP_DELACK_MAX_US", "40 ms"),
];
