//! What a server gets before its engine is made.

use super::queues::inspect_queue;
use super::tell;
use crate::protocol::{AHEAD, CONTROL_FD, FromServer, Identity, PACKET_MAX, ToServer};
use crate::sandbox::{self, Users};
use crate::{Doing, Error, Result, heap, life, memory, scm, ticks, warm};
use eft_arena::docket;
use eft_channel::notify::Doorbell;
use eft_channel::queue::Inspection;
use eft_channel::status::Status;
use eft_channel::{Pool, PoolView, Segment, Shared};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// What this program knows about the layouts of its engines' arenas.
pub struct Versions {
    /// Whether a server of this program could take up what another uses, and which length its own arena has.
    pub suits: fn(&Identity, Option<Segment>) -> Result<usize>,
    /// Whether a server of this program could take up this arena; returns the length of its own arena.
    pub revert: fn(&Identity, &Segment, &Segment, Segment) -> Result<()>,
}

/// Everything an engine's constructor may need.
pub struct Setup {
    pub identity: Identity,
    pub control: OwnedFd,
    pub status: Status,
    pub bell: Shared<Doorbell>,
    pub eventfd: OwnedFd,
    pub device: Vec<OwnedFd>,
    /// Where it is recorded.
    pub recording: Option<OwnedFd>,
    pub pools: Vec<Pool>,
    /// What a predecessor left in the last pool that has a journal.
    left: Option<LeftPool>,
    arena: Option<ArenaMemory>,
    /// An empty arena, for the content of `arena` if that has an older layout.
    spare: Option<ArenaMemory>,
}

/// A pool of a dead predecessor.
pub struct LeftPool {
    pub view: PoolView,
    /// The queue by which its reader heard of what lies there, if that one lives.
    pub queue: Option<Inspection>,
}

impl LeftPool {
    fn map(slot_size: usize, mut fds: impl Iterator<Item = OwnedFd>) -> Result<Option<LeftPool>> {
        let Some(segment) = fds.next().map(|fd| memory::map(&fd, false)).transpose()? else {
            return Ok(None);
        };
        let slots = segment.len() / slot_size.max(1);
        let queue = match (fds.next(), fds.next()) {
            (Some(lines), Some(position)) => {
                Some(inspect_queue(&memory::map(&lines, false)?, &memory::map(&position, false)?)?)
            }
            _ => None,
        };
        Ok(Some(LeftPool { view: PoolView::new(segment, 0, slot_size, slots), queue }))
    }
}

/// The memory of an arena, and its file.
pub struct ArenaMemory {
    pub segment: Segment,
    file: OwnedFd,
}

impl ArenaMemory {
    fn map(file: OwnedFd) -> Result<ArenaMemory> {
        Ok(ArenaMemory { segment: memory::map(&file, true)?, file })
    }

    /// See [`memory::each_written`].
    pub fn each_written(&self, heed: &mut dyn FnMut(Range<usize>)) {
        memory::each_written(&self.file, self.segment.len(), heed);
    }
}

impl Setup {
    /// Takes the control socket that the supervisor left at [`CONTROL_FD`] for the `nth` server of this process, and
    /// waits for `Construct`. `None`: the process is not to be a server, and has done what it was started for.
    pub fn receive(nth: usize, versions: &Versions) -> Result<Option<Setup>> {
        let number = CONTROL_FD + nth as i32;
        // SAFETY: fcntl on a number; a bad one gives an error.
        if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(Error::Invalid("`eft serve` is started by `eft up`, not by hand".into()));
        }
        // SAFETY: the supervisor passed this descriptor to this process alone.
        let control = unsafe { OwnedFd::from_raw_fd(number) };
        if nth == 0 {
            ticks::end_with(control.as_fd());
        }
        let mut buffer = vec![0; PACKET_MAX];
        let mut next = || -> Result<(ToServer, Vec<OwnedFd>)> {
            let (n, fds) = scm::receive(&control, &mut buffer, false)
                .doing("`eft serve` is started by `eft up`, not by hand: control socket")?;
            let message = postcard::from_bytes(&buffer[..n]).doing("message of the supervisor")?;
            Ok((message, fds))
        };
        let mut first = next()?;
        if let (ToServer::Examine(identity), fds) = &first {
            let arena = fds.first().map(|fd| memory::map(fd, false)).transpose()?;
            let arena_len = (versions.suits)(identity, arena)?;
            tell(&control, &FromServer::Suits { arena_len }, &[]);
            first = next()?;
        }
        if let (ToServer::Revert(identity), fds) = &first {
            let [ours, like, to] = &fds[..] else {
                return Err(Error::Protocol("an arena is missing".into()));
            };
            let (ours, like, to) =
                (memory::map(ours, false)?, memory::map(like, false)?, memory::map(to, true)?);
            let arena_len = to.len();
            (versions.revert)(identity, &ours, &like, to)?;
            tell(&control, &FromServer::Suits { arena_len }, &[]);
            return Ok(None);
        }
        let (ToServer::Identity(identity), fds) = first else {
            return Err(Error::Protocol("the supervisor's first message is not an identity".into()));
        };
        let mut fds = fds.into_iter();
        let mut fd = || fds.next().ok_or_else(|| Error::Protocol("a descriptor is missing".into()));
        let status =
            Status::new(memory::map(&fd()?, true)?).map_err(|_| Error::Protocol("bad status page".into()))?;
        // The thread's ticks, and its death, are told by the page of the first server.
        if nth == 0 {
            ticks::count_in(&status);
            life::hold(&status);
        }
        let eventfd = fd()?;
        let bell = memory::map(&fd()?, false)?;
        // SAFETY: Doorbell is one atomic.
        let bell = unsafe { bell.shared::<Doorbell>(0) }.map_err(|_| Error::Protocol("bad bell".into()))?;
        let mut device: Vec<OwnedFd> = fds.collect();
        let recording = identity.record.and_then(|_| device.pop());
        let (mut pools, mut left, mut arena, mut spare) = (Vec::new(), None, None, None);
        loop {
            let (message, fds) = next()?;
            let mut fds = fds.into_iter();
            match message {
                ToServer::OwnPool { id, slot_size } => {
                    let fd = fds.next().ok_or_else(|| Error::Protocol("a pool without segment".into()))?;
                    pools.push(Pool::new(id, memory::map(&fd, true)?, slot_size));
                    left = LeftPool::map(slot_size, fds)?.or(left);
                }
                ToServer::Arena => {
                    let fd = fds.next().ok_or_else(|| Error::Protocol("an arena without segment".into()))?;
                    arena = Some(ArenaMemory::map(fd)?);
                    spare = fds.next().map(ArenaMemory::map).transpose()?;
                }
                ToServer::Construct => break,
                ToServer::Stop => return Err(Error::Gone("stopped during set-up".into())),
                _ => return Err(Error::Protocol("an unexpected message during set-up".into())),
            }
        }
        Ok(Some(Setup {
            identity,
            control,
            status,
            bell,
            eventfd,
            device,
            recording,
            pools,
            left,
            arena,
            spare,
        }))
    }

    /// The next pool, in the order of `control::plan::pools`.
    pub fn take_pool(&mut self) -> Result<Pool> {
        if self.pools.is_empty() {
            return Err(Error::Protocol("the supervisor gave too few pools".into()));
        }
        Ok(self.pools.remove(0))
    }

    pub fn take_left(&mut self) -> Option<LeftPool> {
        self.left.take()
    }

    pub fn has_arena(&self) -> bool {
        self.arena.is_some()
    }

    fn take_arena(&mut self) -> Result<ArenaMemory> {
        self.arena.take().ok_or_else(|| Error::Protocol("the supervisor gave no arena".into()))
    }

    /// The arena. If it `is_older`, `convert` first converts it into the empty one, which is returned. No input is to blame for the
    /// death of a predecessor that did not fail by itself.
    pub fn take_converted_arena(
        &mut self,
        is_older: impl FnOnce(&Segment) -> bool,
        convert: impl FnOnce(&Segment, Segment) -> Result<()>,
    ) -> Result<ArenaMemory> {
        let arena = self.take_arena()?;
        if !self.identity.predecessor_failed {
            docket::acquit(&arena.segment);
        }
        match self.spare.take() {
            Some(spare) if is_older(&arena.segment) => {
                convert(&arena.segment, spare.segment.clone())?;
                tell(&self.control, &FromServer::Converted, &[]);
                Ok(spare)
            }
            _ => Ok(arena),
        }
    }
}

/// What a process does before it is told which server it is to be: a standby has done it when it is needed. Without `users` it
/// enters the sandbox later. Returns whether it is in a Landlock domain.
pub fn prepare(users: Option<Users>) -> Result<bool> {
    // The kernel named the process after the link by which the program was started.
    let _ = rustix::thread::set_name(c"eft");
    ticks::start()?;
    life::prepare()?;
    die_of_faults();
    leave_no_core();
    let is_ahead = std::env::var_os(AHEAD).is_some();
    heap::make_room(is_ahead);
    if is_ahead {
        warm::map_program();
        warm::use_once();
    }
    users.map_or(Ok(false), sandbox::enter)
}

/// Restores the default action of SIGSEGV and SIGBUS. The Rust runtime's handler reports stack overflows; after any
/// other fault it returns and expects the next one to kill, so a signal sent by kill(2) would have no effect.
fn die_of_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: plain numbers; the default action is no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Limits the core file, so that no successor waits until everything that the dead server had mapped is written. A
/// limit of one byte also keeps a core from a program that receives it through a pipe; a limit of zero does not
/// (core(5), `do_coredump` of Linux). An operator who wants a core raises the limit again: `prlimit --core=unlimited
/// --pid PID`.
fn leave_no_core() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let _ =
        setrlimit(Resource::Core, Rlimit { current: Some(maximum.map_or(1, |most| most.min(1))), maximum });
}
