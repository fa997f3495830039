//! tcp's streams: how much it may copy, send and keep.

use super::profile::Profile;
use crate::hardware::PS_PER_MS;

/// How long tcp waits for room for a larger piece: half a round trip, within these bounds.
const PATIENCE_PS: (u64, u64) = (PS_PER_MS, 10 * PS_PER_MS);

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Bytes written and not acknowledged.
    kept: u64,
    /// Bytes that a turn of tcp gives back: programs see them when it ends.
    freed: u64,
    unsent: u64,
    in_flight: u64,
    /// Most bytes in flight: begins small, and grows by the acknowledged bytes up to the peer's window.
    window: u64,
    /// Of a write, bytes that are not in the ring; and whether its program is to be told of room.
    left: u64,
    waits: bool,
    /// Bytes written into a ring that tcp has not seen.
    unseen: u64,
    /// Bytes sent so far, and the end of the last segment that was not full.
    sent: u64,
    small_end: u64,
    /// It waits for room for a larger piece; how often it has waited; and whether it has waited long enough.
    waits_for_piece: bool,
    wait: u64,
    is_impatient: bool,
    /// Round trips are measured by one segment at a time: its end, and when it was sent; and smoothed (RFC 6298, section 2).
    timed: Option<(u64, u64)>,
    round_trip_ps: u64,
}

pub struct Streams {
    all: Vec<Stream>,
    /// Those that the present turn gives bytes back to.
    freed: Vec<usize>,
    /// When the present turn began.
    pub now_ps: u64,
    pub acknowledged_bytes: u64,
}

impl Streams {
    pub fn new(profile: &Profile) -> Self {
        let fresh = Stream { window: profile.initial_window_bytes, ..Stream::default() };
        Self { all: vec![fresh; profile.streams], freed: Vec::new(), now_ps: 0, acknowledged_bytes: 0 }
    }

    /// A new connection takes the place of one that is over.
    pub fn begin_anew(&mut self, profile: &Profile, stream: usize) {
        self.all[stream] = Stream { window: profile.initial_window_bytes, ..Stream::default() };
    }

    /// A program's write, or the rest of one: as much as there is room for goes into the ring. Returns how much, and
    /// whether that was all.
    pub fn write(&mut self, profile: &Profile, stream: usize) -> (u64, bool) {
        if self.all[stream].left == 0 {
            self.all[stream].left = profile.write_bytes;
        }
        let put = self.fill(profile, stream, self.all[stream].left);
        let state = &mut self.all[stream];
        state.left -= put;
        (put, state.left == 0)
    }

    /// A program puts `bytes` into its ring as far as there is room, and is told of more; returns how many.
    pub fn fill(&mut self, profile: &Profile, stream: usize, bytes: u64) -> u64 {
        let state = &mut self.all[stream];
        let put = bytes.min(profile.buffer_bytes.saturating_sub(state.kept + state.freed + state.unseen));
        state.waits = put < bytes;
        state.unseen += put;
        put
    }

    /// tcp reads a ring; returns how much is new.
    pub fn see(&mut self, stream: usize) -> u64 {
        let state = &mut self.all[stream];
        let bytes = std::mem::take(&mut state.unseen);
        state.kept += bytes;
        state.unsent += bytes;
        bytes
    }

    /// Returns whether a program that waits for room is told of it: when a third of its ring is free.
    pub fn acknowledge(&mut self, profile: &Profile, stream: usize, bytes: u64) -> bool {
        let now_ps = self.now_ps;
        let state = &mut self.all[stream];
        state.in_flight -= bytes;
        state.measure(now_ps);
        state.kept -= bytes;
        if state.freed == 0 {
            self.freed.push(stream);
        }
        state.freed += bytes;
        state.window = (state.window + bytes).min(profile.window_bytes);
        self.acknowledged_bytes += bytes;
        let is_worth_it = (profile.buffer_bytes.saturating_sub(state.kept)) * 3 >= profile.buffer_bytes;
        state.waits && is_worth_it && {
            state.waits = false;
            true
        }
    }

    /// A turn of tcp ends: programs see its effects.
    pub fn end_turn(&mut self) {
        self.freed.drain(..).for_each(|stream| self.all[stream].freed = 0);
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// If a stream begins to wait for a larger piece: the number of this wait.
    pub fn begins_to_wait(&mut self, profile: &Profile, stream: usize) -> Option<u64> {
        let state = &mut self.all[stream];
        state.is_impatient = false;
        let waits = state.unsent > 0 && state.piece(profile).is_some_and(|(_, waits)| waits);
        let begins = waits && !state.waits_for_piece;
        state.waits_for_piece = waits;
        state.wait += u64::from(begins);
        begins.then_some(state.wait)
    }

    /// How long a stream waits that begins to.
    pub fn patience_ps(&self, stream: usize) -> u64 {
        (self.all[stream].round_trip_ps / 2).clamp(PATIENCE_PS.0, PATIENCE_PS.1)
    }

    /// It has waited long enough; false: it no longer waits.
    pub fn lose_patience(&mut self, stream: usize, wait: u64) -> bool {
        let state = &mut self.all[stream];
        state.is_impatient = state.waits_for_piece && state.wait == wait;
        state.is_impatient
    }

    /// Segments that may be sent now, by the rules of eft's tcp.
    pub fn emit(&mut self, profile: &Profile, stream: usize) -> impl Iterator<Item = u64> {
        let (now_ps, state) = (self.now_ps, &mut self.all[stream]);
        std::iter::from_fn(move || {
            let bytes = state.next_segment(profile)?;
            state.unsent -= bytes;
            state.in_flight += bytes;
            state.sent += bytes;
            state.timed.get_or_insert((state.sent, now_ps));
            if !bytes.is_multiple_of(profile.maximum_segment) {
                state.small_end = state.sent;
            }
            Some(bytes)
        })
    }
}

impl Stream {
    /// A round trip ends when the segment is acknowledged by which it is measured.
    fn measure(&mut self, now_ps: u64) {
        let acknowledged = self.sent - self.in_flight;
        let Some((_, sent_ps)) = self.timed.take_if(|(end, _)| *end <= acknowledged) else { return };
        let sample = now_ps - sent_ps;
        self.round_trip_ps =
            if self.round_trip_ps == 0 { sample } else { (7 * self.round_trip_ps + sample) / 8 };
    }

    fn next_segment(&self, profile: &Profile) -> Option<u64> {
        let mss = profile.maximum_segment;
        if self.unsent == 0 {
            return None;
        }
        if let Some((bytes, waits)) = self.piece(profile) {
            return (bytes > 0 && !waits).then_some(bytes);
        }
        // No second small segment before the first is acknowledged (RFC 896, with Minshall's refinement).
        let is_small_in_flight = self.small_end + self.in_flight > self.sent;
        let tail = if profile.nagle && is_small_in_flight { self.unsent % mss } else { 0 };
        let largest = self.largest(profile);
        let bytes = if self.unsent > largest { largest } else { self.unsent - tail };
        (bytes > 0).then_some(bytes)
    }

    /// If the window ends before the data does: the part that fits, and whether to wait for more room. It waits for a
    /// while if enough is in flight to bring more acknowledgements.
    fn piece(&self, profile: &Profile) -> Option<(u64, bool)> {
        let room = self.window - self.in_flight;
        if room >= self.unsent {
            return None;
        }
        let full = (room - room % profile.maximum_segment).min(self.largest(profile));
        let is_small = full < self.largest(profile) && full * 3 < self.window;
        Some((full, full > 0 && is_small && self.in_flight > 0 && !self.is_impatient))
    }

    /// The largest segment to the device: half of the window at most, so that acknowledgements come while the other half
    /// is under way.
    fn largest(&self, profile: &Profile) -> u64 {
        let bytes = profile.segment_bytes.min(self.window / 2);
        (bytes / profile.maximum_segment).max(1) * profile.maximum_segment
    }
}

#[cfg(test)]
mod tests;
