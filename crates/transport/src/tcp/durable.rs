//! What is checked before a block from before a crash is believed.
//!
//! Promise: a block that passes may be used in all arithmetic of the engine, and refers to no block
//! but its listener. Whether that one is what it says, [`super::rebirth`] checks.

use super::TcpConfig;
use super::block::{Block, NONE, NOWHERE, State, bit};
use super::options::SCALE_MAX;
use super::retransmit::RETRIES;
use super::route::MTU_MIN;
use crate::arena::{self, Durable};
use crate::requests::POSITION_MAX;
use eft_channel::dirty::DIRTY_SLOTS;

/// No ring is longer.
const RING_MAX: u64 = 1 << 26;
/// The largest window that there is (RFC 7323 §2.3).
const WINDOW_MAX: u64 = 65535 << SCALE_MAX;

/// The blocks of tcp's arena.
pub(super) type Blocks = arena::Blocks<Block>;

/// Bytes of the arena for `config`.
pub fn arena_len(config: &TcpConfig) -> usize {
    arena::arena_len::<Block>(config.connections)
}

impl Durable for Block {
    const MAGIC: [u8; 8] = *b"eft-tcp\0";
    const VERSION: u32 = 2;

    fn free(generation: u32) -> Block {
        Block::free(generation)
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn check(&mut self, index: u32) -> bool {
        let Some(state) = State::from_number(self.state) else {
            return false;
        };
        if state == State::Free {
            return true;
        }
        let sane = sends(self) && receives(self) && shape(self) && numbers(self) && home(self, index);
        if sane {
            let mss = self.segment_size();
            self.congestion.sanitize(mss);
            self.rtt.sanitize();
        }
        sane
    }
}

/// The send sequence space.
fn sends(b: &Block) -> bool {
    let closes = matches!(
        b.state(),
        State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
    );
    let open = matches!(b.state(), State::Established | State::CloseWait);
    b.snd_released <= b.snd_una
        && b.snd_una <= b.snd_nxt
        && b.snd_nxt <= b.snd_end.saturating_add(1)
        && b.snd_end <= POSITION_MAX
        && b.snd_end.saturating_sub(b.snd_released) <= RING_MAX
        && (b.fin_at == b.snd_end || (b.fin_at == NOWHERE && b.snd_nxt <= b.snd_end))
        && (!closes || b.fin_at != NOWHERE)
        && (!open || b.fin_at == NOWHERE)
        && b.snd_edge <= b.snd_nxt + WINDOW_MAX
        && b.snd_small <= b.snd_end
        && b.snd_wl1 <= POSITION_MAX
        && b.snd_wl2 <= b.snd_end + 1
}

/// The receive sequence space; for a listener, its ring of records.
fn receives(b: &Block) -> bool {
    b.rcv_taken <= b.rcv_nxt
        && b.rcv_nxt <= POSITION_MAX
        && b.rcv_nxt - b.rcv_taken <= RING_MAX
        && b.rcv_adv <= b.rcv_taken + 2 * RING_MAX
        && b.rcv_acked <= b.rcv_nxt
        && b.rcv_fin_at >= b.rcv_nxt
        && b.reassembly.is_sane(b.rcv_nxt, b.rcv_taken + RING_MAX)
}

/// Sizes of segments and shifts of windows.
fn shape(b: &Block) -> bool {
    let routed = b.path_mtu >= MTU_MIN && b.mss <= b.path_mtu;
    b.send_scale <= SCALE_MAX
        && b.receive_scale <= SCALE_MAX
        && b.mss >= 64
        && b.peer_mss >= 64
        && b.segment_max <= 65535
        && (routed || (b.path_mtu == 0 && !b.has(bit::ROUTED)))
}

/// Counts and codes.
fn numbers(b: &Block) -> bool {
    b.backoff <= RETRIES && b.probes <= u8::MAX as u32 && (0..4096).contains(&b.soft_error)
}

/// Where the block belongs: its slot, its listener, its port.
fn home(b: &Block, index: u32) -> bool {
    let state = b.state();
    let slot = b.slot == NONE || (b.slot.is_multiple_of(2) && (b.slot as usize) < DIRTY_SLOTS);
    let housed = b.slot != NONE || matches!(state, State::TimeWait | State::SynReceived);
    let connected = !state.is_synchronized() || b.has(bit::CONNECTED);
    let dead = !b.has(bit::DEAD) || state == State::Closed;
    let draining = !b.has(bit::DRAINING) || b.has(bit::DEAD);
    let passive = !b.has(bit::PASSIVE) || !matches!(state, State::Listen | State::SynSent);
    let listener = b.listener == NONE || (b.listener != index && state != State::Listen);
    let queued = !b.has(bit::QUEUED) || (b.has(bit::PASSIVE) && b.slot != NONE && b.listener != NONE);
    let bound = !(b.has(bit::BOUND) || state.has_connection()) || b.tuple.local_port != 0;
    let listens = state != State::Listen || b.has(bit::BOUND);
    slot && housed
        && connected
        && dead
        && draining
        && passive
        && listener
        && queued
        && bound
        && listens
        && b.accept_at <= POSITION_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Block {
        let mut b = Block::free(1);
        b.set_state(State::Established);
        b.set(bit::CONNECTED | bit::PASSIVE | bit::ROUTED);
        b.path_mtu = 1500;
        b.slot = 2;
        b.listener = 7;
        b.tuple.local_port = 80;
        b.tuple.remote_port = 4000;
        b
    }

    #[test]
    fn a_block_of_ours_passes() {
        assert!(connection().check(3));
        let mut queued = connection();
        queued.set(bit::QUEUED);
        assert!(queued.check(3));
        assert!(Block::free(9).check(3));
    }

    #[test]
    fn what_arithmetic_relies_upon_is_checked() {
        let wrong: &[(&str, fn(&mut Block))] = &[
            ("state", |b| b.state = 200),
            ("snd_una", |b| b.snd_una = 5),
            ("snd_end", |b| {
                (b.snd_released, b.snd_una, b.snd_nxt, b.snd_end) = (1 << 62, 1 << 62, 1 << 62, 1 << 62)
            }),
            ("snd_end alone", |b| b.snd_end = u64::MAX),
            ("snd_edge", |b| b.snd_edge = u64::MAX - 1),
            ("snd_small", |b| b.snd_small = u64::MAX),
            ("snd_wl1", |b| b.snd_wl1 = u64::MAX),
            ("snd_wl2", |b| b.snd_wl2 = u64::MAX),
            ("fin_at", |b| b.fin_at = 7),
            ("a fin in ESTABLISHED", |b| b.fin_at = b.snd_end),
            ("no fin in FIN-WAIT-1", |b| b.set_state(State::FinWait1)),
            ("rcv_nxt", |b| (b.rcv_nxt, b.rcv_taken) = (u64::MAX, u64::MAX)),
            ("rcv_taken", |b| b.rcv_taken = 1),
            ("rcv_adv", |b| b.rcv_adv = u64::MAX),
            ("rcv_fin_at", |b| (b.rcv_nxt, b.rcv_taken, b.rcv_fin_at) = (9, 9, 8)),
            ("path_mtu", |b| b.path_mtu = 30),
            ("path_mtu, not routed", |b| {
                b.clear(bit::ROUTED);
                b.path_mtu = 30
            }),
            ("no path_mtu", |b| b.path_mtu = 0),
            ("mss", |b| b.mss = 2000),
            ("peer_mss", |b| b.peer_mss = 0),
            ("backoff", |b| b.backoff = 255),
            ("probes", |b| b.probes = u32::MAX),
            ("soft_error", |b| b.soft_error = -1),
            ("send_scale", |b| b.send_scale = 60),
            ("receive_scale", |b| b.receive_scale = 60),
            ("odd slot", |b| b.slot = 3),
            ("far slot", |b| b.slot = 1 << 30),
            ("no slot", |b| b.slot = NONE),
            ("dead", |b| b.set(bit::DEAD)),
            ("draining", |b| b.set(bit::DRAINING)),
            ("port", |b| b.tuple.local_port = 0),
            ("its own listener", |b| b.listener = 3),
            ("a listener with a listener", |b| {
                b.clear(bit::PASSIVE);
                b.set(bit::BOUND);
                b.set_state(State::Listen)
            }),
            ("queued nowhere", |b| {
                b.set(bit::QUEUED);
                b.listener = NONE
            }),
            ("accept_at", |b| b.accept_at = u64::MAX),
        ];
        for (name, damage) in wrong {
            let mut b = connection();
            damage(&mut b);
            assert!(!b.check(3), "{name}");
        }
    }
}
