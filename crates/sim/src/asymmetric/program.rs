//! A VM's program and its guest kernel: threads, phases, barriers, requests.
//!
//! Work is counted in nanoseconds on a fast core that has the memory to itself. The guest kernel knows nothing of
//! fast and slow cores: thread `i` of a parallel program lives on vCPU `i`.

use eft_base::random::Random;

use super::calibration::Program;

/// Work of a thread between two phases of different IPC.
const PHASE_NS: u64 = 1_500_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One thread.
    Single,
    /// A part of the work for each thread, a barrier, a serial section.
    Static,
    /// Tasks from a pool, each behind some I/O; then a serial section.
    Pool,
    /// A closed-loop load without end: each request follows the answer to the last.
    Server,
    /// An open-loop load: requests come whether or not earlier ones are answered; the network bounds them.
    Open,
}

/// Most batches of requests that wait for a vCPU; clients hold the rest back.
const BACKLOG_MAX: u64 = 32;

#[derive(Clone, Debug)]
pub struct Running {
    program: Program,
    shape: Shape,
    /// Work that remains for each vCPU before it asks for more.
    todo_ns: Vec<u64>,
    /// When a vCPU that sleeps wakes, in milliseconds.
    wakes_at: Vec<Option<u64>>,
    /// Work of each vCPU so far.
    pub done_ns: Vec<u64>,
    /// Each vCPU's last phase and its IPC.
    phases: Vec<(u64, u64)>,
    /// Batches of requests that wait for each vCPU.
    backlog: Vec<u64>,
    chunks_left: u64,
    pool_left: u64,
    in_serial: bool,
    pub finished_at: Option<u64>,
    random: Random,
    wander_seed: u64,
}

/// What a vCPU does after its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Goes,
    Sleeps,
}

impl Running {
    /// Starts a program that takes some `seconds` when a third of its cycles are fast.
    pub fn start(program: Program, vcpus: usize, seconds: u64, clock_ratio_milli: u64, seed: u64) -> Self {
        let shape = match (program.run_ms > 0, program.chunk_ms > 0) {
            _ if program.arrive_ms > 0 => Shape::Open,
            (false, false) => Shape::Single,
            (false, true) => Shape::Static,
            (true, true) => Shape::Pool,
            (true, false) => Shape::Server,
        };
        let slow_milli = (1000 - program.memory) * clock_ratio_milli / 1000 + program.memory;
        let rate_milli = 1000 / 3 + 2 * 1_000_000 / 3 / slow_milli;
        let work_ms = seconds * rate_milli;
        let round_ms = match shape {
            Shape::Single | Shape::Server | Shape::Open => 1000,
            _ => program.chunk_ms + program.serial * program.chunk_ms * vcpus as u64 / 1000,
        };
        let mut running = Self {
            program,
            shape,
            todo_ns: vec![0; vcpus],
            wakes_at: vec![None; vcpus],
            done_ns: vec![0; vcpus],
            phases: vec![(u64::MAX, 0); vcpus],
            backlog: vec![0; vcpus],
            chunks_left: work_ms.div_ceil(round_ms),
            pool_left: 0,
            in_serial: false,
            finished_at: None,
            random: Random::new(seed),
            wander_seed: Random::new(seed ^ 0x5eed).next_u64(),
        };
        match shape {
            Shape::Server | Shape::Open => {
                (0..vcpus).for_each(|v| running.wakes_at[v] = Some(1 + running.random.below(20)))
            }
            _ => running.next_round(),
        }
        running
    }

    pub fn is_server(&self) -> bool {
        matches!(self.shape, Shape::Server | Shape::Open)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn has_work(&self, vcpu: usize) -> bool {
        self.todo_ns[vcpu] > 0
    }

    /// Wakes the vCPUs that slept long enough.
    pub fn wake(&mut self, now_ms: u64) {
        for vcpu in 0..self.wakes_at.len() {
            if self.wakes_at[vcpu].is_some_and(|at| at <= now_ms) {
                self.wakes_at[vcpu] = None;
                if self.shape == Shape::Open {
                    self.backlog[vcpu] = (self.backlog[vcpu] + 1).min(BACKLOG_MAX);
                    self.sleep(vcpu, now_ms, self.program.arrive_ms);
                    self.next_batch(vcpu);
                } else {
                    self.todo_ns[vcpu] = self.program.run_ms * 1_000_000;
                }
            }
        }
    }

    /// Begins the next batch if the last is done and one waits.
    fn next_batch(&mut self, vcpu: usize) {
        if self.todo_ns[vcpu] == 0 && self.backlog[vcpu] > 0 {
            self.backlog[vcpu] -= 1;
            self.todo_ns[vcpu] = self.program.run_ms * 1_000_000;
        }
    }

    /// A vCPU ran for `ns`; time left after its present work goes to its next.
    pub fn work(&mut self, vcpu: usize, ns: u64, now_ms: u64) -> Next {
        self.done_ns[vcpu] += ns.min(self.todo_ns[vcpu]);
        self.todo_ns[vcpu] = self.todo_ns[vcpu].saturating_sub(ns);
        if self.todo_ns[vcpu] > 0 {
            return Next::Goes;
        }
        match self.shape {
            Shape::Server => self.sleep(vcpu, now_ms, self.program.sleep_ms),
            Shape::Open => self.next_batch(vcpu),
            Shape::Pool if !self.in_serial && self.pool_left > 0 => {
                self.pool_left -= 1;
                self.sleep(vcpu, now_ms, self.program.sleep_ms);
            }
            _ if self.todo_ns.iter().all(|todo| *todo == 0) && self.wakes_at.iter().all(Option::is_none) => {
                self.finish_section(now_ms);
            }
            _ => {}
        }
        if self.todo_ns[vcpu] > 0 { Next::Goes } else { Next::Sleeps }
    }

    fn sleep(&mut self, vcpu: usize, now_ms: u64, mean: u64) {
        let mean = mean.max(1);
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
            Shape::Server | Shape::Open => {}
        }
    }

    /// The IPC of the vCPU's present phase, per mille, on a fast core.
    pub fn ipc(&mut self, vcpu: usize) -> u64 {
        let phase = self.done_ns[vcpu] / PHASE_NS;
        if self.phases[vcpu].0 != phase {
            self.phases[vcpu] = (phase, self.ipc_of(vcpu, phase));
        }
        self.phases[vcpu].1
    }

    fn ipc_of(&self, vcpu: usize, phase: u64) -> u64 {
        let mut random = Random::new(self.wander_seed ^ (vcpu as u64) << 32 ^ phase);
        let wander = self.program.ipc_wander;
        let offset = random.below(2 * wander + 1);
        (self.program.ipc * (1000 + offset) - self.program.ipc * wander) / 1000
    }
}

#[cfg(test)]
mod tests;
