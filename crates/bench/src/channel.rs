//! `eft bench channel`: messages between two cores, beside a raw cache-line round trip.

use super::Common;
use super::figure::{Aim, Figure};
use super::report::print;
use super::stolen::Stolen;
use anyhow::{Result, bail};
use eft_channel::Shared;
use eft_channel::queue::{Line as QueueLine, Position, queue};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[derive(clap::Args)]
pub struct ChannelArguments {
    #[command(flatten)]
    common: Common,
}

const MESSAGES: u64 = 5_000_000;
const TRIPS: u64 = 500_000;

pub fn run(arguments: &ChannelArguments) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        bail!("needs two CPUs");
    }
    let stolen = Stolen::begin(None);
    let (mut one_way, mut trip, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.common.rounds {
        raw.push(raw_round_trip());
        one_way.push(one_way_ns());
        trip.push(message_round_trip());
    }
    let baseline = "cache-line round trip";
    // There and back is two one-way trips, each of which should take 1.3 times half of the line's own.
    let figures = [
        Figure::new("message, one way, batched", "ns", one_way).beside(baseline, raw.clone()),
        Figure::new("message there and back", "ns", trip).beside(baseline, raw).aim(Aim::AtMost(1.3)),
    ];
    print("channel", &figures, &[stolen.describe()], arguments.common.json)
}

fn pin(cpu: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

/// Two threads hand one cache line back and forth.
fn raw_round_trip() -> f64 {
    #[repr(align(128))]
    struct Word(AtomicU64);
    let word = Word(AtomicU64::new(0));
    std::thread::scope(|s| {
        s.spawn(|| {
            pin(1);
            for i in 0..TRIPS {
                while word.0.load(Ordering::Acquire) != i * 2 + 1 {
                    std::hint::spin_loop();
                }
                word.0.store(i * 2 + 2, Ordering::Release);
            }
        });
        s.spawn(|| {
            pin(0);
            let start = Instant::now();
            for i in 0..TRIPS {
                word.0.store(i * 2 + 1, Ordering::Release);
                while word.0.load(Ordering::Acquire) != i * 2 + 2 {
                    std::hint::spin_loop();
                }
            }
            start.elapsed().as_nanos() as f64 / TRIPS as f64
        })
        .join()
        .unwrap_or(f64::NAN)
    })
}

fn new_queue() -> (eft_channel::Producer, eft_channel::Consumer) {
    let lines: Vec<QueueLine> = (0..1024).map(|_| QueueLine::empty()).collect();
    queue(Shared::heap_slice(lines), Shared::heap(Position::zero()))
}

fn one_way_ns() -> f64 {
    let (mut p, mut c) = new_queue();
    std::thread::scope(|s| {
        s.spawn(move || {
            pin(1);
            let mut n = 0;
            while n < MESSAGES {
                match c.pop() {
                    Some(_) => n += 1,
                    None => std::hint::spin_loop(),
                }
            }
            c.publish();
        });
        s.spawn(move || {
            pin(0);
            let start = Instant::now();
            let mut n = 0;
            while n < MESSAGES {
                match p.push(&[n; 7]) {
                    Ok(()) => n += 1,
                    Err(_) => std::hint::spin_loop(),
                }
            }
            while p.in_flight() > 0 {
                std::hint::spin_loop();
            }
            start.elapsed().as_nanos() as f64 / MESSAGES as f64
        })
        .join()
        .unwrap_or(f64::NAN)
    })
}

fn message_round_trip() -> f64 {
    let ((mut p, mut c), (mut back_p, mut back_c)) = (new_queue(), new_queue());
    std::thread::scope(|s| {
        s.spawn(move || {
            pin(1);
            for _ in 0..TRIPS {
                let m = loop {
                    if let Some(m) = c.pop() {
                        break m;
                    }
                    std::hint::spin_loop();
                };
                let _ = back_p.push(&m);
            }
        });
        s.spawn(move || {
            pin(0);
            let start = Instant::now();
            for i in 0..TRIPS {
                let _ = p.push(&[i; 7]);
                while back_c.pop().is_none() {
                    std::hint::spin_loop();
                }
            }
            start.elapsed().as_nanos() as f64 / TRIPS as f64
        })
        .join()
        .unwrap_or(f64::NAN)
    })
}
