//! The load of benchmarks: its masks must be final when it says "ready", since benchmarks compare them afterwards.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use eft_host::sensors::{Tree, tasks, topology};
use support::{Running, eft};

/// Threads of a load with masks of one CPU, as soon as it says that it is ready.
fn bound(threads: usize) -> usize {
    let tree = Tree::live();
    let mut load = Command::new(eft());
    load.args(["bench", "load", &threads.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut load = Running(load.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(load.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    let pid = load.0.id() as i32;
    // The youngest first: it is the one that may not have come to it.
    let threads = tasks::threads(&tree, pid).into_iter().rev();
    threads.filter_map(|tid| tasks::affinity(&tree, pid, tid)).filter(|mask| mask.len() == 1).count()
}

#[test]
fn its_threads_are_bound_when_it_says_that_it_is_ready() {
    if topology::online(&Tree::live()).unwrap().len() < 2 {
        println!("left out: with one CPU a thread that is bound looks like the others");
        return;
    }
    // Of fifty threads the last is bound. Once is no proof, since the thread may be quick.
    for _ in 0..10 {
        assert_eq!(bound(50), 1);
    }
}
