//! How a server sleeps.
//!
//! On a shared core it goes to the kernel at once; on a dedicated core it watches its bells for a
//! bounded time first. Engines with peers only sleep in `futex_waitv` on all bells; those that also
//! wait for descriptors sleep in `epoll_wait`, and peers wake them through their eventfd.

use crate::futex::WaitSet;
use crate::{Doing, Result, monitor};
use eft_base::Instant;
use eft_channel::Shared;
use eft_channel::account::Phase;
use eft_channel::notify::{Doorbell, Mode, StateWord};
use eft_channel::status::Status;
use eft_host::clock;
use eft_machine::CpuId;
use rustix::event::epoll;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long a dedicated server watches before it goes to the kernel. Longer than waking a sleeper on
/// another core takes (35 us measured), so that a steady stream never pays for a wake.
const WATCH: Duration = Duration::from_micros(100);

/// A sleep shorter than this would better have been spent looking around.
const SHORT_SLEEP: Duration = Duration::from_micros(150);
/// How long to look around on a shared core.
const LINGER: Duration = Duration::from_micros(80);

const CONTROL: u64 = 0;
const EVENTFD: u64 = 1;
const SURROUNDINGS: u64 = 2;

/// The means of sleeping of one server.
pub struct Parking {
    status: Status,
    state: Shared<StateWord>,
    eventfd: OwnedFd,
    /// Present if the surroundings have descriptors.
    epoll: Option<OwnedFd>,
    dedicated: bool,
    control_readable: bool,
    descriptors_ready: bool,
    waits: WaitSet,
    /// How long it pays to look around before going to the kernel; see [`Parking::linger`].
    patience: Duration,
    /// The surroundings' descriptors in the set, and whether they are waited for.
    devices: Vec<i32>,
    devices_watched: bool,
    /// The values of the bells at the last watch, and the place of the one that rang.
    rung: Vec<u32>,
    likely: usize,
}

impl Parking {
    pub fn new(
        status: Status,
        eventfd: OwnedFd,
        control: &OwnedFd,
        dedicated: bool,
        descriptors: &[BorrowedFd],
    ) -> Result<Parking> {
        let state = status.state();
        state.awake();
        let mut set = None;
        let mut devices = Vec::new();
        if !descriptors.is_empty() {
            let e = epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?;
            let level = epoll::EventFlags::IN;
            epoll::add(&e, control, epoll::EventData::new_u64(CONTROL), level).doing("epoll")?;
            epoll::add(&e, &eventfd, epoll::EventData::new_u64(EVENTFD), level).doing("epoll")?;
            for d in descriptors {
                devices.push(d.as_raw_fd());
                epoll::add(&e, d, epoll::EventData::new_u64(SURROUNDINGS), level).doing("epoll")?;
            }
            set = Some(e);
        }
        Ok(Parking {
            status,
            state,
            eventfd,
            epoll: set,
            dedicated,
            control_readable: false,
            descriptors_ready: true,
            waits: WaitSet::default(),
            patience: Duration::ZERO,
            devices,
            devices_watched: true,
            rung: Vec::new(),
            likely: 0,
        })
    }

    pub fn set_dedicated(&mut self, dedicated: bool) {
        self.dedicated = dedicated;
    }

    /// Whether the last sleep ended because the supervisor sent something.
    pub fn control_is_readable(&self) -> bool {
        self.control_readable
    }

    /// Whether the surroundings' descriptors may have something: false only if the last sleep showed
    /// that they have not.
    pub fn descriptors_ready(&self) -> bool {
        self.descriptors_ready
    }

    /// Waits for the surroundings' descriptors from now on, or not. They are level-triggered: one that
    /// is readable and not read would keep the server awake.
    pub fn watch_devices(&mut self, wanted: bool) {
        let Some(set) = self.epoll.as_ref().filter(|_| wanted != self.devices_watched) else { return };
        self.devices_watched = wanted;
        let events = if wanted { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        for raw in &self.devices {
            // SAFETY: the surroundings keep their descriptors open as long as the server runs.
            let device = unsafe { BorrowedFd::borrow_raw(*raw) };
            let _ = epoll::modify(set, device, epoll::EventData::new_u64(SURROUNDINGS), events);
        }
    }

    /// Sleeps until something may have happened. `each_bell` is handed a function that takes all
    /// bells; `has_work` is the last look. Returns whether it went to sleep in the kernel.
    pub fn park(
        &mut self,
        deadline: Option<Instant>,
        each_bell: impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        has_work: impl Fn() -> bool,
    ) -> bool {
        self.control_readable = false;
        if self.dedicated && self.watch(deadline, &each_bell, &has_work) {
            return false;
        }
        if !self.dedicated && self.linger(deadline, &has_work) {
            return false;
        }
        self.status.account().leave(Phase::Sleeping);
        let fell_asleep = clock::now();
        self.status.account().enter(Phase::Sleeping, fell_asleep);
        let slept = match self.epoll {
            Some(_) => self.sleep_on_descriptors(deadline, &has_work),
            None => self.sleep_on_bells(deadline, &each_bell, &has_work),
        };
        self.state.awake();
        self.status.account().leave(Phase::Busy);
        let woke = clock::now();
        self.status.account().enter(Phase::Busy, woke);
        if slept {
            self.status.account().woke_up();
            let gap = woke.saturating_since(fell_asleep);
            self.patience = if gap < SHORT_SLEEP && !self.dedicated { LINGER } else { Duration::ZERO };
        }
        slept
    }

    /// On a shared core: while sleeps have been short (traffic flows), lets the others run and looks
    /// again for a moment, because falling asleep and being woken costs sender and sleeper more than
    /// that (13 us and 35 us measured). True if work came.
    fn linger(&mut self, deadline: Option<Instant>, has_work: &impl Fn() -> bool) -> bool {
        if self.patience.is_zero() {
            return false;
        }
        let end = clock::now() + self.patience;
        loop {
            rustix::thread::sched_yield();
            if has_work() || (self.epoll.is_some() && self.poll_descriptors(Some(Duration::ZERO))) {
                return true;
            }
            let now = clock::now();
            if deadline.is_some_and(|d| now >= d) {
                return true;
            }
            if now >= end {
                self.patience = Duration::ZERO;
                return false;
            }
        }
    }

    /// Watches the bells from user space. True if there is work.
    fn watch(
        &mut self,
        deadline: Option<Instant>,
        each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        has_work: &impl Fn() -> bool,
    ) -> bool {
        self.status.account().leave(watching());
        let start = clock::now();
        self.status.account().enter(watching(), start);
        let end = deadline.map_or(start + WATCH, |d| d.min(start + WATCH));
        let mut values = std::mem::take(&mut self.rung);
        values.clear();
        each_bell(&mut |b| values.push(b.value()));
        self.state.announce(Mode::Monitoring);
        let mut found = has_work();
        while !found && clock::now() < end {
            self.wait_for_a_ring(each_bell, &values, has_work);
            found = has_work() || (self.epoll.is_some() && self.poll_descriptors(Some(Duration::ZERO)));
        }
        if let Some(place) = first_rung(each_bell, &values) {
            self.likely = place;
        }
        self.rung = values;
        self.state.awake();
        found || deadline.is_some_and(|d| clock::now() >= d)
    }

    /// Sleeps on the line of the bell that rang last time: it is the likeliest to ring again.
    fn wait_for_a_ring(
        &self,
        each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        values: &[u32],
        has_work: &impl Fn() -> bool,
    ) {
        let changed = || first_rung(each_bell, values).is_some() || has_work();
        let likely = if self.likely < values.len() { self.likely } else { 0 };
        let only = values.len() == 1 && self.epoll.is_none();
        if values.is_empty() {
            return monitor::spin(&changed);
        }
        let mut place = 0;
        each_bell(&mut |b| {
            if place == likely {
                monitor::wait(b.word(), only, changed);
            }
            place += 1;
        });
    }

    fn sleep_on_bells(
        &mut self,
        deadline: Option<Instant>,
        each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        has_work: &impl Fn() -> bool,
    ) -> bool {
        self.waits.clear();
        let waits = &mut self.waits;
        let mut all = true;
        // The values must be read before the last look: a ring after it then ends the wait at once.
        each_bell(&mut |b| all &= waits.add(b.word(), b.value()));
        self.state.announce(Mode::Futex);
        if has_work() {
            return false;
        }
        // More bells than one call can watch: look at the rest every millisecond.
        let deadline = if all { deadline } else { Some(clock::now() + Duration::from_millis(1)) };
        self.waits.wait(deadline);
        true
    }

    fn sleep_on_descriptors(&mut self, deadline: Option<Instant>, has_work: &impl Fn() -> bool) -> bool {
        self.state.announce(Mode::Descriptor);
        if has_work() {
            return false;
        }
        let timeout = deadline.map(|d| d.saturating_since(clock::now()));
        self.poll_descriptors(timeout);
        true
    }

    /// Waits on the epoll set; true if anything is ready.
    fn poll_descriptors(&mut self, timeout: Option<Duration>) -> bool {
        let Some(set) = &self.epoll else { return false };
        let timeout = timeout
            .map(|t| rustix::time::Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos() as _ });
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 8];
        let ready = match epoll::wait(set, &mut events, timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(_) => return false,
        };
        self.descriptors_ready = false;
        let mut any = false;
        for event in ready {
            any = true;
            match event.data.u64() {
                CONTROL => self.control_readable = true,
                EVENTFD => {
                    let _ = rustix::io::read(self.eventfd.as_fd(), &mut [0u8; 8]);
                }
                _ => self.descriptors_ready = true,
            }
        }
        any
    }
}

/// The place of the first bell whose value is no longer what it was.
fn first_rung(each_bell: &impl Fn(&mut dyn FnMut(&Shared<Doorbell>)), values: &[u32]) -> Option<usize> {
    let (mut place, mut rung) = (0, None);
    each_bell(&mut |b| {
        if rung.is_none() && values.get(place).is_some_and(|value| *value != b.value()) {
            rung = Some(place);
        }
        place += 1;
    });
    rung
}

/// What the processor does while the bells are watched.
fn watching() -> Phase {
    match monitor::method() {
        monitor::Method::Pause => Phase::Polling,
        _ => Phase::Waiting,
    }
}

/// Pins this thread to a CPU, or lets it run anywhere.
pub fn place(cpu: Option<CpuId>) -> Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    match cpu {
        Some(CpuId(n)) if (n as usize) < CpuSet::MAX_CPU => set.set(n as usize),
        Some(n) => return Err(crate::Error(format!("CPU {n} does not exist"))),
        None => (0..CpuSet::MAX_CPU).for_each(|n| set.set(n)),
    }
    sched_setaffinity(None, &set).doing(match cpu {
        Some(cpu) => format!("cannot run on CPU {cpu}"),
        None => "cannot run on any CPU".into(),
    })
}
