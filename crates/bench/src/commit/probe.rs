//! The cost of imaging, summing and sealing alone, without an engine: CPU time of the thread, so that other programs on
//! the CPU do not count.

use crate::figure::{Aim, Figure};
use crate::observe::thread_cpu;
use anyhow::Result;
use eft_channel::Segment;
use eft_transport::tcp::{self, TcpConfig};
use std::hint::black_box;

/// Control blocks of the arena: as many as a stack has by default.
const BLOCKS: u32 = 16384;
const CHANGES: u64 = 2_000_000;
/// Blocks of one turn: what a batch of segments touches.
const BATCH: u32 = 16;

pub fn run(rounds: usize) -> Result<Vec<Figure>> {
    let config = TcpConfig { connections: BLOCKS as usize, ..TcpConfig::default() };
    let arena = Segment::heap(tcp::arena_len(&config));
    let mut probe = tcp::CommitProbe::open(arena, &config)?;
    let mut time = |batch: u32, reach: u32| {
        assert!(reach.is_power_of_two(), "a remainder by division would be a part of the figure");
        let turns = CHANGES / batch as u64;
        let mut next = 0u32;
        let start = thread_cpu();
        for _ in 0..turns {
            let first = next;
            // A step that is prime to the reach visits every block, and no neighbours.
            next = next.wrapping_add(batch * 4099) & (reach - 1);
            probe.turn((0..batch).map(|n| (first + n * 4099) & (reach - 1)));
        }
        (thread_cpu() - start).as_nanos() as f64 / (turns * batch as u64) as f64
    };
    let (mut alone, mut batch, mut cold, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.push(time(1, 1));
        batch.push(time(BATCH, 64));
        cold.push(time(BATCH, BLOCKS));
        plain.push(copy_ns());
    }
    let baseline = "copy of 256 bytes";
    Ok(vec![
        Figure::new("turn of one hot block", "ns", alone).aim(Aim::AtMost(30.0)),
        Figure::new(format!("hot block in a turn of {BATCH}"), "ns", batch.clone()).aim(Aim::AtMost(30.0)),
        Figure::new(format!("hot block in a turn of {BATCH}, beside a copy"), "ns", batch)
            .beside(baseline, plain.clone()),
        Figure::new(format!("the same, of {BLOCKS} blocks that no cache holds"), "ns", cold)
            .beside(baseline, plain),
    ])
}

/// The least that keeping an image can cost.
fn copy_ns() -> f64 {
    let (mut from, mut to) = ([1u64; 32], [0u64; 32]);
    let start = thread_cpu();
    for _ in 0..CHANGES {
        black_box(&mut to).copy_from_slice(black_box(&from));
        from[3] = to[5];
    }
    (thread_cpu() - start).as_nanos() as f64 / CHANGES as f64
}
