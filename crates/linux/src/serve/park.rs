//! How the servers of a process sleep.
//!
//! On a shared core they go to the kernel at once; on a dedicated core they watch their bells for a bounded time first.
//! Engines with peers only sleep in `futex_waitv` on all bells; those that also wait for descriptors sleep in
//! `epoll_wait`, and peers wake them through their eventfd. The supervisor rings the bell after it has sent something; nobody rings
//! it when neither supervisor nor keeper lives, so who sleeps on bells looks now and then, and when a neighbour says so.

mod control;
mod crowd;
mod place;
mod watch;

pub use place::place;

use crate::futex::WaitSet;
use crate::{Doing, Result};
use crowd::Crowd;
use eft_base::Instant;
use eft_channel::Shared;
use eft_channel::account::{Account, Phase};
use eft_channel::notify::{Doorbell, Mode, StateWord};
use eft_channel::status::Status;
use eft_component::server::counter;
use eft_host::clock;
use rustix::event::epoll;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// After a sleep shorter than this, polling would have been cheaper than sleeping.
const SHORT_SLEEP: Duration = Duration::from_micros(150);
/// How long to poll on a shared core.
const LINGER: Duration = Duration::from_micros(80);

/// How often a process that sleeps on bells looks whether its control sockets have ended.
const LOOK: Duration = Duration::from_secs(2);

/// What the process needs to sleep for one server.
pub struct Sleeper<'a> {
    pub status: Status,
    pub eventfd: OwnedFd,
    pub control: BorrowedFd<'a>,
    /// The descriptors of its surroundings.
    pub descriptors: Vec<BorrowedFd<'a>>,
    /// Its counters of bytes that it has moved.
    pub bytes: Vec<usize>,
}

/// What is known of a server while it sleeps.
struct Asleep {
    status: Status,
    state: Shared<StateWord>,
    control: i32,
    /// Stays open as long as it is in the set.
    _eventfd: OwnedFd,
    /// The surroundings' descriptors in the set.
    devices: Vec<i32>,
    /// Whether they are waited for.
    devices_watched: bool,
    /// Whether they may be ready.
    ready: bool,
    /// Whether it has ended and so sleeps for good.
    retired: bool,
    /// Its counters of bytes that it has moved.
    bytes: Vec<usize>,
}

impl Asleep {
    /// Bytes that it has moved so far.
    fn moved(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, counter| sum.wrapping_add(self.status.get(*counter)))
    }
}

/// What a descriptor of the set is to its server; the other bits hold the server's number.
const CONTROL: u64 = 0;
/// It only ends the sleep.
pub const EVENTFD: u64 = 1;
const SURROUNDINGS: u64 = 2;

/// Puts the servers of a process to sleep.
pub struct Parking {
    servers: Vec<Asleep>,
    /// Present if the surroundings of any server have descriptors.
    epoll: Option<Arc<OwnedFd>>,
    dedicated: bool,
    control_readable: bool,
    /// When it woke to work, or looked at its control sockets, last.
    worked: Instant,
    waits: WaitSet,
    /// How long polling pays before going to the kernel; see [`Parking::linger`].
    patience: Duration,
    crowd: Crowd,
    /// The values of the bells at the last watch.
    rung: Vec<u32>,
    /// The index of the bell that rang then.
    likely: usize,
}

impl Parking {
    pub fn new(sleepers: Vec<Sleeper>) -> Result<Parking> {
        let mut set = None;
        if sleepers.iter().any(|sleeper| !sleeper.descriptors.is_empty()) {
            let e = epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?;
            for (i, sleeper) in sleepers.iter().enumerate() {
                let add = |fd: BorrowedFd, what: u64, how: epoll::EventFlags| {
                    let token = epoll::EventData::new_u64((i as u64) << 2 | what);
                    epoll::add(&e, fd, token, epoll::EventFlags::IN | how).doing("epoll")
                };
                add(sleeper.control, CONTROL, epoll::EventFlags::empty())?;
                // Each write is an event of its own, so the eventfd need not be read.
                add(sleeper.eventfd.as_fd(), EVENTFD, epoll::EventFlags::ET)?;
                let add = |d: &BorrowedFd| add(*d, SURROUNDINGS, epoll::EventFlags::empty());
                sleeper.descriptors.iter().try_for_each(add)?;
            }
            set = Some(Arc::new(e));
        }
        let servers = sleepers.into_iter().map(|sleeper| {
            let state = sleeper.status.state();
            state.awake();
            Asleep {
                devices: sleeper.descriptors.iter().map(AsRawFd::as_raw_fd).collect(),
                status: sleeper.status,
                state,
                control: sleeper.control.as_raw_fd(),
                _eventfd: sleeper.eventfd,
                devices_watched: true,
                ready: true,
                retired: false,
                bytes: sleeper.bytes,
            }
        });
        Ok(Parking {
            servers: servers.collect(),
            epoll: set,
            dedicated: false,
            control_readable: false,
            worked: clock::now(),
            waits: WaitSet::default(),
            patience: Duration::ZERO,
            crowd: Crowd::default(),
            rung: Vec::new(),
            likely: 0,
        })
    }

    /// The epoll set on which the process sleeps, if it sleeps on descriptors.
    pub fn set(&self) -> Option<&Arc<OwnedFd>> {
        self.epoll.as_ref()
    }

    pub fn set_dedicated(&mut self, dedicated: bool) {
        self.dedicated = dedicated;
    }

    /// Whether the last sleep ended because the supervisor sent something.
    pub fn control_is_readable(&self) -> bool {
        self.control_readable
    }

    /// Whether the descriptors of a server's surroundings may be ready: false only if the last check showed that they
    /// are not.
    pub fn is_ready(&self, server: usize) -> bool {
        self.servers[server].ready
    }

    /// Whether a server's surroundings have descriptors to sleep on.
    pub fn has_devices(&self, server: usize) -> bool {
        !self.servers[server].devices.is_empty()
    }

    /// Asks the kernel which descriptors are ready, without sleeping.
    pub fn check_descriptors(&mut self) {
        self.poll_descriptors(Some(Duration::ZERO));
    }

    /// Begins or ends to wait for the descriptors of a server's surroundings. They are level-triggered: one that is
    /// readable and not read would keep the process awake.
    pub fn watch_devices(&mut self, server: usize, wanted: bool) {
        let Some(set) = &self.epoll else { return };
        let asleep = &mut self.servers[server];
        if wanted == asleep.devices_watched {
            return;
        }
        asleep.devices_watched = wanted;
        let events = if wanted { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        for raw in &asleep.devices {
            // SAFETY: the surroundings keep their descriptors open as long as the server runs.
            let device = unsafe { BorrowedFd::borrow_raw(*raw) };
            let token = epoll::EventData::new_u64((server as u64) << 2 | SURROUNDINGS);
            let _ = epoll::modify(set, device, token, events);
        }
    }

    /// Marks a server as ended: its status shows it asleep from now on.
    pub fn retire(&mut self, server: usize) {
        let asleep = &mut self.servers[server];
        asleep.retired = true;
        asleep.state.announce(Mode::Descriptor);
    }

    fn announce(&self, mode: Mode) {
        self.servers.iter().filter(|s| !s.retired).for_each(|s| s.state.announce(mode));
    }

    fn awake(&self) {
        self.servers.iter().filter(|s| !s.retired).for_each(|s| s.state.awake());
    }

    /// Sleeps until something may have happened. `each_bell` passes every bell to the function that it gets; `has_urgent_work`
    /// ends a look around, and `has_work` is the last check before the sleep. The time goes to `account`.
    pub fn park(
        &mut self,
        account: Account,
        deadline: Option<Instant>,
        each_bell: impl Fn(&mut dyn FnMut(&Shared<Doorbell>)),
        has_urgent_work: impl Fn() -> bool,
        has_work: impl Fn() -> bool,
    ) {
        self.control_readable = false;
        if self.dedicated && self.watch(account, deadline, &each_bell, &has_urgent_work) {
            return;
        }
        if !self.dedicated && self.linger(account, deadline, &has_urgent_work) {
            return;
        }
        account.leave(Phase::Sleeping);
        let fell_asleep = clock::now();
        account.enter(Phase::Sleeping, fell_asleep);
        let slept = match self.epoll {
            Some(_) => self.sleep_on_descriptors(deadline, &has_work),
            None => {
                let end = deadline.into_iter().fold(fell_asleep + LOOK, Instant::min);
                self.sleep_on_bells(Some(end), &each_bell, &has_work)
            }
        };
        self.awake();
        account.leave(Phase::Busy);
        let woke = clock::now();
        account.enter(Phase::Busy, woke);
        // Who has work does not look: that costs a call, and the work ends when nobody is left. Timers do not.
        let works = self.epoll.is_some() || has_work();
        if works || woke >= self.worked + LOOK {
            self.worked = woke;
            self.control_readable |= !works && self.look();
        }
        if slept {
            account.woke_up();
            let gap = woke.saturating_since(fell_asleep);
            self.patience = if gap < SHORT_SLEEP && !self.dedicated { LINGER } else { Duration::ZERO };
            self.servers.iter().filter(|s| !s.retired).for_each(|s| s.status.add(counter::SLEEPS, 1));
        }
    }

    /// On a shared core: while sleeps have been short (traffic flows), yields to other threads and checks again for a
    /// moment, because falling asleep and being woken costs sender and sleeper more than that (13 us and 35 us
    /// measured). True if there is work.
    fn linger(&mut self, account: Account, deadline: Option<Instant>, has_work: &impl Fn() -> bool) -> bool {
        if self.patience.is_zero() {
            return false;
        }
        account.leave(Phase::Polling);
        let start = clock::now();
        account.enter(Phase::Polling, start);
        if self.crowd.is_there(start) {
            return false;
        }
        let end = start + self.patience;
        let mut before = start;
        loop {
            rustix::thread::sched_yield();
            let now = clock::now();
            let servers = &self.servers;
            self.crowd.yielded(before, now, || servers.iter().map(Asleep::moved).sum());
            before = now;
            if has_work() || (self.epoll.is_some() && self.poll_descriptors(Some(Duration::ZERO))) {
                return true;
            }
            if deadline.is_some_and(|d| now >= d) {
                return true;
            }
            if now >= end || self.crowd.is_there(now) {
                self.patience = Duration::ZERO;
                return false;
            }
        }
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
        // The values must be read before the last check: a ring after the check then ends the wait at once.
        each_bell(&mut |b| all &= waits.add(b.word(), b.value()));
        self.announce(Mode::Futex);
        if has_work() {
            return false;
        }
        // There are more bells than one call can watch: check the rest every millisecond.
        let deadline = if all { deadline } else { Some(clock::now() + Duration::from_millis(1)) };
        self.waits.wait(deadline);
        true
    }

    fn sleep_on_descriptors(&mut self, deadline: Option<Instant>, has_work: &impl Fn() -> bool) -> bool {
        self.announce(Mode::Descriptor);
        if has_work() {
            return false;
        }
        let timeout = deadline.map(|d| d.saturating_since(clock::now()));
        // The time is over by the kernel's clock: ours may stand still, or go too slowly.
        if !self.poll_descriptors(timeout) && deadline.is_some_and(|d| clock::now() < d) {
            clock::confirmed();
        }
        true
    }

    /// Waits on the epoll set; true if any descriptor is ready.
    fn poll_descriptors(&mut self, timeout: Option<Duration>) -> bool {
        let Some(set) = &self.epoll else { return false };
        let timeout = timeout
            .map(|t| rustix::time::Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos() as _ });
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
        let ready = match epoll::wait(set, &mut events, timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(_) => return false,
        };
        self.servers.iter_mut().for_each(|s| s.ready = false);
        let mut any = false;
        for event in ready {
            any = true;
            let token = event.data.u64();
            let Some(server) = self.servers.get_mut((token >> 2) as usize) else { continue };
            match token & 3 {
                CONTROL => self.control_readable = true,
                EVENTFD => {}
                _ => server.ready = true,
            }
        }
        any
    }
}

#[cfg(test)]
mod tests;
