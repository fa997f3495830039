//! Where the parts of Linux's structures lie (include/uapi/linux/tcp.h).

/// `struct tcp_ao_add`.
pub mod add {
    pub const NAME: usize = 128;
    pub const INTERFACE: usize = 192;
    pub const FLAGS: usize = 196;
    pub const RESERVED: usize = 200;
    pub const PREFIX: usize = 202;
    pub const SEND_ID: usize = 203;
    pub const RECEIVE_ID: usize = 204;
    pub const MAC_LEN: usize = 205;
    pub const KEY_FLAGS: usize = 206;
    pub const KEY_LEN: usize = 207;
    pub const KEY: usize = 208;
    pub const LEN: usize = 288;
}

/// `struct tcp_ao_del`.
pub mod del {
    pub const INTERFACE: usize = 128;
    pub const FLAGS: usize = 132;
    pub const RESERVED: usize = 136;
    pub const PREFIX: usize = 138;
    pub const SEND_ID: usize = 139;
    pub const RECEIVE_ID: usize = 140;
    pub const CURRENT_KEY: usize = 141;
    pub const NEXT_KEY: usize = 142;
    pub const KEY_FLAGS: usize = 143;
    pub const LEN: usize = 144;
    /// A flag that is of no effect here.
    pub const LATER: u32 = 4;
}

/// `struct tcp_ao_info_opt`.
pub mod info {
    pub const REQUIRED: u32 = 4;
    pub const ACCEPT_ICMP: u32 = 16;
    pub const RESERVED: usize = 4;
    pub const CURRENT_KEY: usize = 6;
    pub const NEXT_KEY: usize = 7;
    pub const COUNTS: usize = 8;
    pub const LEN: usize = 48;
}

/// `struct tcp_ao_getsockopt`.
pub mod keys {
    pub const NAME: usize = 128;
    pub const KEY: usize = 192;
    pub const COUNT: usize = 272;
    pub const FLAGS: usize = 276;
    pub const SEND_ID: usize = 278;
    pub const RECEIVE_ID: usize = 279;
    pub const PREFIX: usize = 280;
    pub const MAC_LEN: usize = 281;
    pub const KEY_FLAGS: usize = 282;
    pub const KEY_LEN: usize = 283;
    pub const INTERFACE: usize = 284;
    pub const COUNTS: usize = 288;
    pub const LEN: usize = 304;
    pub const ALL: u32 = 4;
    /// More are not told at once.
    pub const MOST: usize = 64;
}
