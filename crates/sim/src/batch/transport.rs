//! tcp's streams: what it may copy, send and keep.

use super::profile::Profile;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Written and not acknowledged.
    kept: u64,
    unsent: u64,
    in_flight: u64,
    /// A write waits for room.
    waits: bool,
}

/// What a message had tcp do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub copied_bytes: u64,
    /// A program's write is over.
    pub accepted: bool,
    pub segments: Vec<u64>,
}

pub struct Streams {
    all: Vec<Stream>,
    pub acknowledged_bytes: u64,
}

impl Streams {
    pub fn new(count: usize) -> Self {
        Self { all: vec![Stream::default(); count], acknowledged_bytes: 0 }
    }

    pub fn write(&mut self, profile: &Profile, stream: usize) -> Done {
        self.all[stream].waits = true;
        self.go_on(profile, stream)
    }

    pub fn acknowledge(&mut self, profile: &Profile, stream: usize, bytes: u64) -> Done {
        let state = &mut self.all[stream];
        state.in_flight -= bytes;
        state.kept -= bytes;
        self.acknowledged_bytes += bytes;
        self.go_on(profile, stream)
    }

    fn go_on(&mut self, profile: &Profile, stream: usize) -> Done {
        let mut done = Done::default();
        let state = &mut self.all[stream];
        if state.waits && state.kept + profile.write_bytes <= profile.buffer_bytes {
            state.waits = false;
            state.kept += profile.write_bytes;
            state.unsent += profile.write_bytes;
            done.copied_bytes += profile.write_bytes;
            done.accepted = true;
        }
        if !profile.flushes {
            done.segments = self.emit(profile, stream);
        }
        done
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Segments that may go now.
    pub fn emit(&mut self, profile: &Profile, stream: usize) -> Vec<u64> {
        let (state, mut segments) = (&mut self.all[stream], Vec::new());
        loop {
            let room = profile.window_bytes - state.in_flight;
            let bytes = state.unsent.min(room).min(profile.segment_bytes);
            // No small segment while an acknowledgement is due (RFC 1122, section 4.2.3.4).
            if bytes == 0 || bytes < profile.maximum_segment && state.in_flight > 0 {
                return segments;
            }
            state.unsent -= bytes;
            state.in_flight += bytes;
            segments.push(bytes);
        }
    }
}
