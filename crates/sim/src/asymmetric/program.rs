//! A VM's program and its guest kernel: threads, phases, barriers, requests.
//!
//! Work is counted in nanoseconds on a fast core that has the memory to itself. The guest kernel knows nothing of
//! fast and slow cores: thread `i` of a parallel program lives on vCPU `i`.

use eft_base::random::Random;

use super::calibration::Program;

/// What a thread does between two phases of different IPC.
const PHASE_NS: u64 = 1_500_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One thread.
    Single,
    /// A part of the work for each thread, a barrier, a serial section.
    Static,
    /// Tasks from a pool, each behind some I/O; then a serial section.
    Pool,
    /// Requests without end.
    Server,
}

#[derive(Clone, Debug)]
pub struct Running {
    program: Program,
    shape: Shape,
    /// Work that each vCPU has to do before it asks again.
    todo_ns: Vec<u64>,
    /// When a vCPU that sleeps wakes, in milliseconds.
    wakes_at: Vec<Option<u64>>,
    /// Work of each vCPU so far.
    pub done_ns: Vec<u64>,
    chunks_left: u64,
    pool_left: u64,
    in_serial: bool,
    pub finished_at: Option<u64>,
    random: Random,
    wander_seed: u64,
}

/// What becomes of a vCPU that has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Goes,
    Sleeps,
}

impl Running {
    /// A program that takes some `seconds` when a third of its cycles are fast.
    pub fn start(program: Program, vcpus: usize, seconds: u64, clock_ratio_milli: u64, seed: u64) -> Self {
        let shape = match (program.run_ms > 0, program.chunk_ms > 0) {
            (false, false) => Shape::Single,
            (false, true) => Shape::Static,
            (true, true) => Shape::Pool,
            (true, false) => Shape::Server,
        };
        let slow_milli = (1000 - program.memory) * clock_ratio_milli / 1000 + program.memory;
        let rate_milli = 1000 / 3 + 2 * 1_000_000 / 3 / slow_milli;
        let work_ms = seconds * rate_milli;
        let round_ms = match shape {
            Shape::Single | Shape::Server => 1000,
            _ => program.chunk_ms + program.serial * program.chunk_ms * vcpus as u64 / 1000,
        };
        let mut running = Self {
            program,
            shape,
            todo_ns: vec![0; vcpus],
            wakes_at: vec![None; vcpus],
            done_ns: vec![0; vcpus],
            chunks_left: work_ms.div_ceil(round_ms),
            pool_left: 0,
            in_serial: false,
            finished_at: None,
            random: Random::new(seed),
            wander_seed: Random::new(seed ^ 0x5eed).next_u64(),
        };
        match shape {
            Shape::Server => {
                (0..vcpus).for_each(|v| running.wakes_at[v] = Some(1 + running.random.below(20)))
            }
            _ => running.next_round(),
        }
        running
    }

    pub fn is_server(&self) -> bool {
        self.shape == Shape::Server
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn has_work(&self, vcpu: usize) -> bool {
        self.todo_ns[vcpu] > 0
    }

    /// Wakes whoever slept long enough.
    pub fn wake(&mut self, now_ms: u64) {
        for vcpu in 0..self.wakes_at.len() {
            if self.wakes_at[vcpu].is_some_and(|at| at <= now_ms) {
                self.wakes_at[vcpu] = None;
                self.todo_ns[vcpu] = self.program.run_ms * 1_000_000;
            }
        }
    }

    /// A vCPU did some work; what is left of it goes to what it does next.
    pub fn work(&mut self, vcpu: usize, ns: u64, now_ms: u64) -> Next {
        self.done_ns[vcpu] += ns.min(self.todo_ns[vcpu]);
        self.todo_ns[vcpu] = self.todo_ns[vcpu].saturating_sub(ns);
        if self.todo_ns[vcpu] > 0 {
            return Next::Goes;
        }
        match self.shape {
            Shape::Server => self.sleep(vcpu, now_ms),
            Shape::Pool if !self.in_serial && self.pool_left > 0 => {
                self.pool_left -= 1;
                self.sleep(vcpu, now_ms);
            }
            _ if self.todo_ns.iter().all(|todo| *todo == 0) && self.wakes_at.iter().all(Option::is_none) => {
                self.finish_section(now_ms);
            }
            _ => {}
        }
        if self.todo_ns[vcpu] > 0 { Next::Goes } else { Next::Sleeps }
    }

    fn sleep(&mut self, vcpu: usize, now_ms: u64) {
        let mean = self.program.sleep_ms.max(1);
        self.wakes_at[vcpu] = Some(now_ms + mean / 2 + self.random.below(mean + 1) + 1);
    }

    fn finish_section(&mut self, now_ms: u64) {
        let serial_ns = self.program.serial * self.program.chunk_ms * self.todo_ns.len() as u64 * 1000;
        if !self.in_serial && serial_ns > 0 {
            (self.in_serial, self.todo_ns[0]) = (true, serial_ns);
            return;
        }
        self.chunks_left -= 1;
        if self.chunks_left == 0 {
            self.finished_at = Some(now_ms);
        } else {
            self.next_round();
        }
    }

    fn next_round(&mut self) {
        self.in_serial = false;
        match self.shape {
            Shape::Single => self.todo_ns.fill(1_000_000_000),
            Shape::Static => self.todo_ns.fill(self.program.chunk_ms * 1_000_000),
            Shape::Pool => {
                let tasks = self.program.chunk_ms * self.todo_ns.len() as u64 / self.program.run_ms;
                self.pool_left = tasks.saturating_sub(self.todo_ns.len() as u64);
                self.todo_ns.fill(self.program.run_ms * 1_000_000);
            }
            Shape::Server => {}
        }
    }

    /// The IPC of the vCPU's present phase, per mille, on a fast core.
    pub fn ipc(&self, vcpu: usize) -> u64 {
        let phase = self.done_ns[vcpu] / PHASE_NS;
        let mut random = Random::new(self.wander_seed ^ (vcpu as u64) << 32 ^ phase);
        let wander = self.program.ipc_wander;
        let offset = random.below(2 * wander + 1);
        (self.program.ipc * (1000 + offset) - self.program.ipc * wander) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARALLEL: Program =
        Program { ipc: 1000, memory: 300, ipc_wander: 0, serial: 100, chunk_ms: 100, run_ms: 0, sleep_ms: 0 };

    /// Works off everything, one millisecond of each vCPU at a time.
    fn finish(mut running: Running) -> (u64, Vec<u64>) {
        for now in 1..1_000_000 {
            running.wake(now);
            for vcpu in 0..running.todo_ns.len() {
                if running.has_work(vcpu) {
                    running.work(vcpu, 1_000_000, now);
                }
            }
            if let Some(at) = running.finished_at {
                return (at, running.done_ns);
            }
        }
        panic!("never finished");
    }

    #[test]
    fn a_barrier_waits_for_the_slowest_and_one_thread_does_the_serial_part() {
        let running = Running::start(PARALLEL, 4, 3, 2375, 1);
        let chunks = running.chunks_left;
        let (at, done) = finish(running);
        assert_eq!(done[1], chunks * 100_000_000);
        assert_eq!(done[0], chunks * 140_000_000, "10% of 400 ms are serial");
        assert!(at.abs_diff(chunks * 140) <= 2 * chunks, "{at}");
    }

    #[test]
    fn a_pool_is_shared_and_ends() {
        let pool = Program { run_ms: 10, sleep_ms: 2, ..PARALLEL };
        let (_, done) = finish(Running::start(pool, 4, 3, 2375, 1));
        assert!(done.iter().all(|ns| *ns > 0));
    }
}
