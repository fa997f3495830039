//! The Xen credit scheduler of the paper's time (3.4), on cores that may differ.
//!
//! Xen's `sched_credit.c` in short: a run queue per core, sorted by priority; 100 credits are charged at each 10 ms
//! tick to the running vCPU; every 30 ms new credits are dealt out by the weight of the domain, split over its active
//! vCPUs; a core without vCPUs that still have credits steals them from others, and an idle core steals any.

/// Milliseconds.
pub const TICK: u64 = 10;
pub const SLICE: u64 = 30;
pub const ACCOUNTING: u64 = 30;
const CREDITS_PER_TICK: i64 = 100;
const CREDITS_PER_ACCOUNTING: i64 = 300;
const CREDITS_MAX: i64 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Over,
    Under,
    Boost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Blocked,
    Queued(usize),
    Running(usize),
}

#[derive(Clone, Debug)]
pub struct Vcpu {
    pub domain: usize,
    pub state: State,
    pub priority: Priority,
    pub credit: i64,
    /// Takes part in the accounting.
    pub active: bool,
    /// Cores where it may run, one bit each.
    pub allowed: u128,
    /// Cores where it queues, as chosen by a policy. An idle core elsewhere may still take it, as a visitor.
    pub home: u128,
    pub last_core: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Core {
    pub current: Option<usize>,
    pub queue: Vec<usize>,
    /// Of the present slice, in milliseconds.
    pub used: u64,
}

#[derive(Clone, Debug)]
pub struct Credit {
    pub cores: Vec<Core>,
    pub vcpus: Vec<Vcpu>,
    /// Of each domain.
    pub weights: Vec<i64>,
    /// Sum of the active vCPUs' credits after the last accounting; a deficit is dealt out in addition.
    balance: i64,
}

impl Credit {
    pub fn new(cores: usize) -> Self {
        Self { cores: vec![Core::default(); cores], vcpus: Vec::new(), weights: Vec::new(), balance: 0 }
    }

    /// Adds a domain whose vCPUs begin on `placement` and are blocked.
    pub fn add_domain(&mut self, weight: i64, placement: &[usize]) {
        let domain = self.weights.len();
        self.weights.push(weight);
        self.vcpus.extend(placement.iter().map(|core| Vcpu {
            domain,
            state: State::Blocked,
            priority: Priority::Under,
            credit: 0,
            active: false,
            allowed: u128::MAX,
            home: u128::MAX,
            last_core: *core,
        }));
    }

    fn may(&self, vcpu: usize, core: usize) -> bool {
        self.vcpus[vcpu].allowed >> core & 1 == 1
    }

    fn is_home(&self, vcpu: usize, core: usize) -> bool {
        self.may(vcpu, core) && self.vcpus[vcpu].home >> core & 1 == 1
    }

    fn is_idle(&self, core: usize) -> bool {
        self.cores[core].current.is_none() && self.cores[core].queue.is_empty()
    }

    fn has_visitor(&self, core: usize) -> bool {
        self.cores[core].current.is_some_and(|running| !self.is_home(running, core))
    }

    /// The core that a vCPU queues on: where it was if that is idle, else an idle one, else one that only a visitor
    /// uses, else where it was, else the least crowded.
    fn pick(&self, vcpu: usize) -> usize {
        let (last, cores) = (self.vcpus[vcpu].last_core, self.cores.len());
        let home = || (0..cores).map(|i| (last + i) % cores).filter(|core| self.is_home(vcpu, *core));
        let free = |core: &usize| self.has_visitor(*core) && self.cores[*core].queue.is_empty();
        home()
            .find(|core| self.is_idle(*core))
            .or_else(|| home().find(free))
            .or_else(|| home().find(|core| *core == last))
            .or_else(|| home().min_by_key(|core| self.cores[*core].queue.len()))
            .unwrap_or(last)
    }

    /// Inserts a vCPU behind all others of its priority.
    fn insert(&mut self, core: usize, vcpu: usize) {
        let priority = self.vcpus[vcpu].priority;
        let behind = |other: &usize| self.vcpus[*other].priority < priority;
        let at = self.cores[core].queue.iter().position(behind).unwrap_or(self.cores[core].queue.len());
        self.cores[core].queue.insert(at, vcpu);
        self.vcpus[vcpu].state = State::Queued(core);
    }

    fn remove(&mut self, core: usize, vcpu: usize) {
        self.cores[core].queue.retain(|other| *other != vcpu);
    }

    pub fn wake(&mut self, vcpu: usize) {
        if self.vcpus[vcpu].state != State::Blocked {
            return;
        }
        if self.vcpus[vcpu].priority == Priority::Under {
            self.vcpus[vcpu].priority = Priority::Boost;
        }
        // It queues where it was. An idle core is woken to take a vCPU that then waits there.
        let last = self.vcpus[vcpu].last_core;
        let core = if self.is_home(vcpu, last) { last } else { self.pick(vcpu) };
        self.insert(core, vcpu);
        if self.has_visitor(core) || self.is_preempted(core) {
            self.schedule(core);
        }
        if !self.cores[core].queue.is_empty() {
            for idle in 0..self.cores.len() {
                if self.is_idle(idle) {
                    self.schedule(idle);
                }
            }
        }
    }

    pub fn block(&mut self, vcpu: usize) {
        match self.vcpus[vcpu].state {
            State::Blocked => {}
            State::Queued(core) => {
                self.remove(core, vcpu);
                self.vcpus[vcpu].state = State::Blocked;
            }
            State::Running(core) => {
                self.cores[core].current = None;
                self.vcpus[vcpu].state = State::Blocked;
                self.schedule(core);
            }
        }
    }

    /// Whether the head of a core's queue comes before the vCPU that runs there.
    fn is_preempted(&self, core: usize) -> bool {
        let Some(head) = self.cores[core].queue.first() else { return false };
        self.cores[core]
            .current
            .is_none_or(|running| self.vcpus[*head].priority > self.vcpus[running].priority)
    }

    /// Sets the home cores of the first vCPUs. A vCPU that is elsewhere moves at once. All leave before any core
    /// searches for work, so that two vCPUs that change places never share a core.
    pub fn settle(&mut self, homes: &[u128]) {
        for (vcpu, home) in self.vcpus.iter_mut().zip(homes) {
            vcpu.home = *home;
        }
        let mut moving = Vec::new();
        for vcpu in 0..homes.len() {
            match self.vcpus[vcpu].state {
                State::Blocked => continue,
                State::Queued(core) | State::Running(core) if self.is_home(vcpu, core) => continue,
                State::Queued(core) => self.remove(core, vcpu),
                State::Running(core) => self.cores[core].current = None,
            }
            moving.push(vcpu);
        }
        for vcpu in &moving {
            let core = self.pick(*vcpu);
            self.insert(core, *vcpu);
        }
        if !moving.is_empty() {
            // Cores with a queue first: a visitor must not take a core for which a vCPU at home there waits.
            let free = |credit: &Self, core: usize| credit.cores[core].current.is_none();
            for core in 0..self.cores.len() {
                if free(self, core) && !self.cores[core].queue.is_empty() {
                    self.schedule(core);
                }
            }
            for core in 0..self.cores.len() {
                if free(self, core) {
                    self.schedule(core);
                }
            }
        }
    }

    /// Chooses who runs next on a core: the head of its queue, or a vCPU of higher priority from another queue.
    pub fn schedule(&mut self, core: usize) {
        if let Some(running) = self.cores[core].current.take() {
            // A visitor goes home; it waits there for its turn.
            let queue = if self.is_home(running, core) { core } else { self.pick(running) };
            self.insert(queue, running);
        }
        let own = self.cores[core].queue.first().copied();
        let next = match own {
            Some(head) if self.vcpus[head].priority > Priority::Over => Some(head),
            _ => self.steal(core, own.map(|head| self.vcpus[head].priority)).or(own),
        };
        let Some(next) = next else { return };
        if let State::Queued(from) = self.vcpus[next].state {
            self.remove(from, next);
        }
        self.cores[core].current = Some(next);
        self.cores[core].used = 0;
        self.vcpus[next].state = State::Running(core);
    }

    /// From the next core on, the first waiting vCPU of a higher priority than `than`.
    fn steal(&self, core: usize, than: Option<Priority>) -> Option<usize> {
        let others = (1..self.cores.len()).map(|i| (core + i) % self.cores.len());
        let better =
            |vcpu: &&usize| than.is_none_or(|p| self.vcpus[**vcpu].priority > p) && self.may(**vcpu, core);
        others.into_iter().find_map(|other| self.cores[other].queue.iter().find(better).copied())
    }

    /// Each 10 ms: the running vCPU is charged, loses a boost, and its core is picked again.
    pub fn tick(&mut self, core: usize) {
        let Some(running) = self.cores[core].current else {
            self.schedule(core);
            return;
        };
        let vcpu = &mut self.vcpus[running];
        vcpu.active = true;
        vcpu.credit -= CREDITS_PER_TICK;
        if vcpu.priority == Priority::Boost {
            vcpu.priority = Priority::Under;
        }
        self.repick(core, running);
    }

    /// Xen asks at each tick whether a running vCPU would be better off elsewhere: on an idle core that has more idle
    /// threads or cores around it than its own. On one package without hardware threads, as the paper's machine is to
    /// Xen, no core ever has; so only a visitor leaves, for an idle core that is its home.
    fn repick(&mut self, core: usize, running: usize) {
        if self.is_home(running, core) {
            return;
        }
        let idle = (0..self.cores.len()).find(|other| self.is_home(running, *other) && self.is_idle(*other));
        if let Some(idle) = idle {
            self.cores[core].current = None;
            self.insert(idle, running);
            self.schedule(idle);
            self.schedule(core);
        }
    }

    /// Each 30 ms: new credits by weight of the domains that have active vCPUs.
    pub fn account(&mut self) {
        let mut active = vec![0i64; self.weights.len()];
        self.vcpus.iter().filter(|vcpu| vcpu.active).for_each(|vcpu| active[vcpu.domain] += 1);
        // Credits converge to zero again when their sum is negative.
        let lacking = (-self.balance).max(0);
        let mut left = CREDITS_PER_ACCOUNTING * self.cores.len() as i64 + lacking;
        let mut weight: i64 = (0..active.len()).filter(|d| active[*d] > 0).map(|d| self.weights[d]).sum();
        let mut share = vec![0i64; active.len()];
        // Domains with the least use for credits first, so that the credits they leave go to the others.
        let mut order: Vec<usize> = (0..active.len()).filter(|d| active[*d] > 0).collect();
        order.sort_by_key(|d| (active[*d] * 1_000_000 / self.weights[*d].max(1), *d));
        let all = weight.max(1);
        for domain in order {
            let fair = left * self.weights[domain] / weight.max(1);
            let peak = active[domain] * CREDITS_PER_ACCOUNTING + lacking * self.weights[domain] / all;
            let given = fair.min(peak);
            left -= given;
            weight -= self.weights[domain];
            share[domain] = given / active[domain];
        }
        self.balance = 0;
        for vcpu in self.vcpus.iter_mut().filter(|vcpu| vcpu.active) {
            vcpu.credit = (vcpu.credit + share[vcpu.domain]).max(-CREDITS_MAX);
            if vcpu.credit < 0 {
                vcpu.priority = Priority::Over;
            } else {
                vcpu.priority = Priority::Under;
                if vcpu.credit > CREDITS_MAX {
                    (vcpu.credit, vcpu.active) = (0, false);
                }
            }
            self.balance += vcpu.credit;
        }
        for core in 0..self.cores.len() {
            let mut queue = std::mem::take(&mut self.cores[core].queue);
            queue.sort_by_key(|vcpu| std::cmp::Reverse(self.vcpus[*vcpu].priority));
            self.cores[core].queue = queue;
        }
    }

    /// A millisecond has passed on each core: a vCPU whose slice ends goes behind those of its priority.
    pub fn pass(&mut self) {
        for core in 0..self.cores.len() {
            self.cores[core].used += 1;
            let leaves = self.has_visitor(core) && !self.cores[core].queue.is_empty();
            let is_idle = self.cores[core].current.is_none();
            if is_idle || leaves || self.cores[core].used >= SLICE || self.is_preempted(core) {
                self.schedule(core);
            }
        }
    }
}

#[cfg(test)]
mod tests;
