//! TCP (RFC 9293), one file per mechanism.
//!
//! | file | mechanism | follows |
//! |---|---|---|
//! | [`engine`] | the component: what comes in, what goes out | |
//! | [`block`], [`state`], [`durable`] | control blocks in the arena; opening it after a crash | RFC 9293 §3.3.1 |
//! | [`asked`] | requests to ip, and its answers about a path | |
//! | [`rebirth`] | after a crash: derived state and all outputs from the blocks | |
//! | [`fatal`] | inputs that have killed two lives | |
//! | [`live`], [`lives`], [`ports`] | derived state | RFC 6056 |
//! | [`connection`] | a block and its derived state, as the mechanisms see them | |
//! | [`segment`], [`options`] | arriving headers | RFC 9293 §3.1, RFC 7323, RFC 2018 |
//! | [`listen`], [`connect`] | opening | RFC 9293 §3.5, RFC 6528 |
//! | [`syn_cookies`], [`stateless`] | opening without memory | RFC 4987 §3.6 |
//! | [`fast_open`], [`cookie_keys`], [`early`], [`early_connect`], [`cookie_cache`] | data with the SYN | RFC 7413 |
//! | [`signature`], [`covered`], [`signing`], [`verifying`] | segments signed with a key | RFC 2385, RFC 5925 |
//! | [`ao`], [`ao_keys`] | TCP-AO's keys and codes | RFC 5925, RFC 5926 |
//! | [`acceptable`] | which segments may change anything | RFC 9293 §3.10.7.4, RFC 5961, RFC 7323 §5 |
//! | [`receive`], [`out_of_order`], [`ack`] | arriving segments | RFC 9293 §3.10.7 |
//! | [`send`], [`outlook`], [`decide`], [`sizing`], [`emit`], [`records`] | what to send, how much, and the segment itself | RFC 9293 §3.8, RFC 5681 |
//! | [`pacing`], [`paced`] | at which rate | |
//! | [`acknowledge`] | when to acknowledge, and the window | RFC 9293 §3.8.6, RFC 5681 §4.2 |
//! | [`rtt`], [`min_rtt`], [`retransmit`] | round trips and timers | RFC 6298 |
//! | [`scoreboard`], [`rack`], [`tail_probe`] | what is lost | RFC 6675 §3, RFC 2018, RFC 8985 |
//! | [`recover`], [`recovery`], [`prr`] | what follows | RFC 9937, RFC 6582, RFC 3042 |
//! | [`undo`] | what was no loss | RFC 3522, RFC 4015, RFC 5682, RFC 2883 |
//! | [`asking`], [`ecn`], [`accurate`], [`counting`] | marks instead of losses | RFC 3168, RFC 9768 |
//! | [`byte_counts`], [`byte_counting`] | the bytes of marked packets | RFC 9768 §3.2.3 |
//! | [`clocks`] | whether there are timestamps | RFC 7323 §3 |
//! | [`congestion`], [`usage`] | how much | RFC 5681, RFC 9438, RFC 9406, RFC 7661 |
//! | [`urgent`] | urgent data | RFC 9293 §3.8.5, RFC 6093 |
//! | [`defer`] | connections that are accepted with their first data (TCP_DEFER_ACCEPT) | tcp(7) |
//! | [`close`], [`time_wait`] | FIN, TIME-WAIT, reset | RFC 9293 §3.6, RFC 6191, RFC 1337 |
//! | [`orphans`], [`walk`], [`farewell`] | the end of a listener, and of the stack | |
//! | [`control`], [`application`], [`tell`] | requests of sockets; the application's page and what it is told | |
//! | [`route`], [`icmp`] | the path and its errors | RFC 1191, RFC 5461, RFC 5927 |
//! | [`mtu_search`], [`mtu_probe`] | the path's MTU without ICMP | RFC 4821 |
//! | [`stamps`], [`stamping`] | times of sends and receives (SO_TIMESTAMPING) | |
//! | [`statistics`], [`info`] | the numbers of `TCP_INFO` | RFC 4898 |
//! | [`inspect`] | the arena for `eft ss` | |
//! | [`versions`], [`probe`] | arenas of older releases; what a commit costs | |
//!
//! Invariants: bytes never reach the application out of order, twice or altered; no peer, application or
//! neighbouring component can make the engine panic; a fault of one connection affects no other.

mod acceptable;
mod accurate;
mod ack;
mod acknowledge;
mod ao;
mod ao_keys;
mod application;
mod arriving;
mod asked;
mod asking;
pub mod block;
mod byte_counting;
mod byte_counts;
mod clocks;
mod close;
pub mod congestion;
mod connect;
mod connection;
mod control;
mod cookie_cache;
mod cookie_keys;
pub mod counters;
mod counting;
mod covered;
mod decide;
mod defer;
pub mod durable;
mod early;
mod early_connect;
mod early_resets;
mod ecn;
mod emit;
pub mod engine;
mod farewell;
mod fast_open;
mod fatal;
mod icmp;
mod idle;
mod info;
pub mod inspect;
mod listen;
mod live;
mod lives;
mod lost;
mod min_rtt;
mod mtu_probe;
mod mtu_search;
mod options;
mod orphans;
mod out_of_order;
mod outlook;
mod paced;
mod pacing;
#[cfg(feature = "poison")]
mod poison;
mod ports;
mod probe;
mod prr;
mod rack;
mod rate;
mod reassembly;
mod rebirth;
mod receive;
mod records;
mod recover;
mod recovery;
mod remains;
mod retransmit;
mod route;
mod rtt;
mod scoreboard;
mod segment;
mod send;
mod signature;
mod signing;
mod sizing;
mod stamping;
mod stamps;
mod state;
mod stateless;
mod statistics;
mod steer;
mod syn_cookies;
mod tail_probe;
mod tell;
mod time_wait;
mod undo;
mod urgent;
mod usage;
mod verifying;
mod versions;
mod walk;

pub use asking::Ecn;
pub use clocks::Timestamps;
pub use congestion::Algorithm;
pub use congestion::hystart::SlowStart;
pub use cookie_keys::CookieKeys;
pub use durable::{arena_len, examine, forge, running_input};
pub use engine::Tcp;
pub use fast_open::FastOpen;
pub use idle::SlowStartAfterIdle;
pub use mtu_search::MtuProbing;
pub use pacing::Pacing;
pub use probe::CommitProbe;
pub use sizing::MinSegments;
pub use tail_probe::TailProbes;
pub use versions::{convert, revert};

/// How large the engine is.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// Control blocks: sockets, connections in TIME-WAIT, connections not yet accepted.
    pub connections: usize,
    pub sockets_per_domain: usize,
    pub listeners_per_domain: usize,
    /// For the secret of a new arena; an old arena keeps its own.
    pub seed: u64,
    /// The share of slots that it gives out.
    pub slots: eft_base::SlotShare,
}

impl Default for TcpConfig {
    fn default() -> Self {
        TcpConfig {
            connections: 16384,
            sockets_per_domain: 4096,
            listeners_per_domain: 256,
            seed: 0,
            slots: eft_base::SlotShare::TCP,
        }
    }
}
