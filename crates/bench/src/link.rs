//! A wire between two TAP devices that loses, delays and reorders: for kernels without netem.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use eft_base::Random;

/// How a wire behaves, in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// One way.
    pub delay: Duration,
    pub loss: f64,
    /// Share of frames that arrive half a round trip late, so that others overtake them.
    pub reorder: f64,
    /// Share of frames that arrive twice.
    pub duplicate: f64,
    /// Bytes a second; 0: unlimited.
    pub rate: u64,
    /// The most bytes that wait; frames beyond are lost.
    pub queue: u64,
    /// Of the chances that are taken.
    pub seed: u64,
}

impl Wire {
    /// Nothing is lost or delayed.
    pub const CLEAR: Wire =
        Wire { delay: Duration::ZERO, loss: 0.0, reorder: 0.0, duplicate: 0.0, rate: 0, queue: 0, seed: 0 };
}

const FRAME_MAX: usize = 2048;

/// A frame on its way; the earliest is the greatest, for the heap.
struct Flying {
    at: Instant,
    order: u64,
    to: usize,
    frame: Vec<u8>,
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Flying {}

/// A wire that is up until it is dropped.
pub struct Link {
    shared: Arc<(Mutex<Wire>, AtomicBool)>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Joins two TAP devices, given by their descriptors.
    pub fn start(ends: [File; 2]) -> Link {
        let shared = Arc::new((Mutex::new(Wire::CLEAR), AtomicBool::new(false)));
        let seen = shared.clone();
        let relay = Relay {
            ends,
            wire: Wire::CLEAR,
            random: Random::new(0),
            flying: BinaryHeap::new(),
            order: 0,
            busy_until: [Instant::now(); 2],
        };
        Link { shared, thread: Some(std::thread::spawn(move || relay.run(&seen))) }
    }

    pub fn set(&self, wire: Wire) {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner) = wire;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.1.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Relay {
    ends: [File; 2],
    wire: Wire,
    random: Random,
    flying: BinaryHeap<Flying>,
    order: u64,
    /// When each direction has sent what it was given.
    busy_until: [Instant; 2],
}

impl Relay {
    fn run(mut self, shared: &(Mutex<Wire>, AtomicBool)) {
        while !shared.1.load(Ordering::Relaxed) {
            let wire = *shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            if wire.seed != self.wire.seed {
                self.random = Random::new(wire.seed);
            }
            self.wire = wire;
            self.take();
            self.deliver();
            self.wait();
        }
    }

    fn take(&mut self) {
        let mut buffer = [0; FRAME_MAX];
        for side in 0..2 {
            while let Ok(len) = self.ends[side].read(&mut buffer) {
                self.launch(side, &buffer[..len]);
            }
        }
    }

    fn launch(&mut self, side: usize, frame: &[u8]) {
        let (now, wire) = (Instant::now(), self.wire);
        let mut at = now.max(self.busy_until[side]);
        if wire.rate > 0 {
            let waiting = (at - now).as_secs_f64() * wire.rate as f64;
            if waiting + frame.len() as f64 > wire.queue as f64 {
                return;
            }
            at += Duration::from_secs_f64(frame.len() as f64 / wire.rate as f64);
            self.busy_until[side] = at;
        }
        if self.random.chance(wire.loss) {
            return;
        }
        let late = if self.random.chance(wire.reorder) { wire.delay } else { Duration::ZERO };
        let at = at + wire.delay + late;
        for _ in 0..1 + self.random.chance(wire.duplicate) as u8 {
            self.order += 1;
            self.flying.push(Flying { at, order: self.order, to: 1 - side, frame: frame.to_vec() });
        }
    }

    fn deliver(&mut self) {
        let now = Instant::now();
        while self.flying.peek().is_some_and(|first| first.at <= now) {
            let Some(first) = self.flying.pop() else { return };
            // A device that does not take it loses it, as a wire would.
            let _ = self.ends[first.to].write(&first.frame);
        }
    }

    /// Waits until a frame comes or is due; checks for new orders ten times a second.
    fn wait(&self) {
        let due = self.flying.peek().map(|first| first.at.saturating_duration_since(Instant::now()));
        let time = due.unwrap_or(Duration::MAX).min(Duration::from_millis(100));
        let timeout = libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
        let mut polled = [0, 1].map(|side: usize| libc::pollfd {
            fd: self.ends[side].as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: two descriptors of ours, and a timeout, that outlive the call.
        unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
    }
}

#[cfg(test)]
mod tests;
