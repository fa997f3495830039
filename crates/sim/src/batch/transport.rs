//! tcp's streams: how much it may copy, send and keep.

use super::profile::Profile;
use crate::hardware::PS_PER_MS;

/// How long tcp waits for room for a larger piece: half a round trip, and a millisecond at least, which is more here.
pub const PATIENCE_PS: u64 = PS_PER_MS;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Bytes written and not acknowledged.
    kept: u64,
    unsent: u64,
    in_flight: u64,
    /// Most bytes in flight: begins small, and grows by the acknowledged bytes up to the peer's window.
    window: u64,
    /// A write waits for room.
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
}

/// What tcp did for a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub copied_bytes: u64,
    /// A program's write is over, or it has room to write.
    pub accepted: bool,
}

pub struct Streams {
    all: Vec<Stream>,
    pub acknowledged_bytes: u64,
}

impl Streams {
    pub fn new(profile: &Profile) -> Self {
        let fresh = Stream { window: profile.initial_window_bytes, ..Stream::default() };
        Self { all: vec![fresh; profile.streams], acknowledged_bytes: 0 }
    }

    /// A new connection takes the place of one that is over.
    pub fn begin_anew(&mut self, profile: &Profile, stream: usize) {
        self.all[stream] = Stream { window: profile.initial_window_bytes, ..Stream::default() };
    }

    pub fn write(&mut self, profile: &Profile, stream: usize) -> Done {
        self.all[stream].waits = true;
        self.go_on(profile, stream)
    }

    /// A program writes `bytes`, at most a write's length, into its ring; false: it waits for room.
    pub fn fill(&mut self, profile: &Profile, stream: usize, bytes: u64) -> bool {
        let state = &mut self.all[stream];
        state.waits = state.kept + state.unseen + profile.write_bytes > profile.buffer_bytes;
        if !state.waits {
            state.unseen += bytes;
        }
        !state.waits
    }

    /// tcp reads a ring.
    pub fn see(&mut self, stream: usize) -> Done {
        let state = &mut self.all[stream];
        let bytes = std::mem::take(&mut state.unseen);
        state.kept += bytes;
        state.unsent += bytes;
        Done { copied_bytes: bytes, accepted: false }
    }

    pub fn acknowledge(&mut self, profile: &Profile, stream: usize, bytes: u64) -> Done {
        let state = &mut self.all[stream];
        state.in_flight -= bytes;
        state.kept -= bytes;
        state.window = (state.window + bytes).min(profile.window_bytes);
        self.acknowledged_bytes += bytes;
        self.go_on(profile, stream)
    }

    fn go_on(&mut self, profile: &Profile, stream: usize) -> Done {
        let mut done = Done::default();
        let state = &mut self.all[stream];
        let has_room = state.kept + state.unseen + profile.write_bytes <= profile.buffer_bytes;
        if !state.waits || !has_room {
            return done;
        }
        (state.waits, done.accepted) = (false, true);
        // Without calls the program itself then writes.
        if profile.call.is_some() {
            state.kept += profile.write_bytes;
            state.unsent += profile.write_bytes;
            done.copied_bytes += profile.write_bytes;
        }
        done
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

    /// It has waited long enough; false: it no longer waits.
    pub fn lose_patience(&mut self, stream: usize, wait: u64) -> bool {
        let state = &mut self.all[stream];
        state.is_impatient = state.waits_for_piece && state.wait == wait;
        state.is_impatient
    }

    /// Segments that may be sent now, by the rules of eft's tcp.
    pub fn emit(&mut self, profile: &Profile, stream: usize) -> Vec<u64> {
        let (state, mut segments) = (&mut self.all[stream], Vec::new());
        while let Some(bytes) = state.next_segment(profile) {
            state.unsent -= bytes;
            state.in_flight += bytes;
            state.sent += bytes;
            if !bytes.is_multiple_of(profile.maximum_segment) {
                state.small_end = state.sent;
            }
            segments.push(bytes);
        }
        segments
    }
}

impl Stream {
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
        let largest = largest(profile);
        let bytes = if self.unsent > largest { largest } else { self.unsent - tail };
        (bytes > 0).then_some(bytes)
    }

    /// If the window ends before the data does: the part that fits, and whether to wait for more room. It waits, for
    /// [`PATIENCE_PS`], if enough is in flight to bring more acknowledgements.
    fn piece(&self, profile: &Profile) -> Option<(u64, bool)> {
        let room = self.window - self.in_flight;
        if room >= self.unsent {
            return None;
        }
        let full = (room - room % profile.maximum_segment).min(largest(profile));
        let is_small = full < largest(profile) && full * 3 < self.window;
        Some((full, full > 0 && is_small && self.in_flight > 0 && !self.is_impatient))
    }
}

/// The largest segment to the device.
fn largest(profile: &Profile) -> u64 {
    (profile.segment_bytes / profile.maximum_segment).max(1) * profile.maximum_segment
}

#[cfg(test)]
mod tests;
