//! The states of a connection.

/// RFC 9293 §3.3.2, with the numbers that Linux shows in `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not in use.
    Free = 0,
    Established = 1,
    SynSent = 2,
    SynReceived = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    TimeWait = 6,
    /// A socket without connection.
    Closed = 7,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
}

impl State {
    pub fn from_number(n: u8) -> Option<State> {
        use State::*;
        [
            Free,
            Established,
            SynSent,
            SynReceived,
            FinWait1,
            FinWait2,
            TimeWait,
            Closed,
            CloseWait,
            LastAck,
            Listen,
            Closing,
        ]
        .into_iter()
        .find(|s| *s as u8 == n)
    }

    /// Both SYNs are acknowledged (RFC 9293 §3.3.2: ESTABLISHED and what follows).
    pub fn is_synchronized(self) -> bool {
        use State::*;
        matches!(self, Established | FinWait1 | FinWait2 | TimeWait | CloseWait | LastAck | Closing)
    }

    /// The block lies in the table of connections.
    pub fn has_connection(self) -> bool {
        self.is_synchronized() || matches!(self, State::SynSent | State::SynReceived)
    }

    /// The application's bytes may still be sent to the peer.
    pub fn may_send(self) -> bool {
        use State::*;
        matches!(self, Established | CloseWait | FinWait1 | LastAck | Closing)
    }

    /// The peer may still send bytes.
    pub fn may_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}
