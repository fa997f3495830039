//! The custodian of a domain: a small process beside its programs that outlives their stack.
//!
//! An eft descriptor is one end of a socket pair, and its program sees what the far end does. If all far ends were
//! closed with the stack, every listener would be readable for good with nothing to accept, and programs would spin. So
//! `eft run` leaves a custodian behind. sockets tells it about every socket that can be made anew (listeners, datagram
//! sockets) and gives it the far ends; see [`eft_messages::control::Reply`]. When the stack ends, these descriptors
//! stay silent, connections are reported as ended, and calls that need a stack fail ([`Arena::stacks`] is odd). When a
//! stack of that name is there again, the custodian brings it the domain's arena and the far ends, and repeats the
//! programs' requests for them: the programs notice nothing.
//!
//! It runs with the rights of the user who called `eft run`, and the stack judges its requests by these rights. It must
//! never keep a descriptor's last close from being seen, and it must not outlive its domain.

mod kept;
mod link;

use crate::descriptors::shadow_ready;
use crate::{Doing, Result, operator};
use eft_base::errno::{ECONNRESET, ENETUNREACH};
use eft_base::{ComponentId, Role};
use eft_channel::dirty::DIRTY_SLOTS;
use eft_channel::socket::{Arena, KIND, OWNER, SocketPage, flag};
use eft_messages::control::{Reply, op};
use kept::Kept;
pub use link::shape;

use link::Link;
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it checks for a stack, and repeats what was refused.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a new stack may refuse: its addresses may appear a little later than the stack.
const PATIENCE: Duration = Duration::from_secs(10);

const LINK: u64 = 0;
const ROOT: u64 = 1;
const FAR: u64 = 2;
const SHADOW: u64 = 3;

/// The epoll data of a descriptor: its kind, slot and incarnation.
fn token(kind: u64, slot: u32, incarnation: u32) -> u64 {
    kind | (slot as u64) << 8 | (incarnation as u64) << 32
}

/// Kind, slot and incarnation.
fn parts(token: u64) -> (u64, u32, u32) {
    (token & 0xff, (token >> 8) as u32 & 0xff_ffff, (token >> 32) as u32)
}
const _: () = assert!(DIRTY_SLOTS <= 1 << 24);

/// What the custodian gets from `eft run`.
pub struct Charge {
    pub stack: String,
    /// The connection over which the domain was made.
    pub link: OwnedFd,
    /// The far end of the socket that the domain's processes inherit.
    pub root: OwnedFd,
    pub arena: Arena,
    pub arena_fd: OwnedFd,
    /// The eventfd by which the domain wakes its transports.
    pub bell: OwnedFd,
}

struct Custodian {
    stack: String,
    root: OwnedFd,
    arena: Arena,
    arena_fd: OwnedFd,
    bell: OwnedFd,
    link: Option<Link>,
    set: OwnedFd,
    kept: BTreeMap<u32, Kept>,
    /// Until when refused requests are repeated.
    until: Instant,
}

/// Runs until the domain's last process is gone.
pub fn run(charge: Charge) -> Result<()> {
    let Charge { stack, link, root, arena, arena_fd, bell } = charge;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?;
    let now = Instant::now();
    let mut custodian =
        Custodian { stack, root, arena, arena_fd, bell, link: None, set, kept: BTreeMap::new(), until: now };
    custodian.watch(custodian.root.as_fd(), ROOT, epoll::EventFlags::RDHUP);
    custodian.hold(Link::new(link));
    while custodian.turn()? {}
    Ok(())
}

impl Custodian {
    fn watch(&self, fd: BorrowedFd<'_>, token: u64, events: epoll::EventFlags) {
        let _ = epoll::add(&self.set, fd, epoll::EventData::new_u64(token), events);
    }

    fn hold(&mut self, link: Link) {
        self.watch(link.fd(), LINK, epoll::EventFlags::IN);
        self.link = Some(link);
    }

    /// Sleeps until something happens, and handles it. False if the domain is gone.
    fn turn(&mut self) -> Result<bool> {
        let impatient = self.link.is_none() || self.has_due();
        let pause =
            rustix::time::Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos() as rustix::time::Nsecs };
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 64];
        let tokens: Vec<u64> = match epoll::wait(&self.set, &mut events, impatient.then_some(&pause)) {
            Ok((ready, _)) => ready.iter().map(|e| e.data.u64()).collect(),
            Err(rustix::io::Errno::INTR) => Vec::new(),
            Err(e) => return Err(e).doing("epoll"),
        };
        for token in tokens {
            let (kind, slot, incarnation) = parts(token);
            match kind {
                ROOT => return Ok(false),
                LINK => self.hear(),
                FAR => self.closed(slot, incarnation),
                SHADOW => self.shadow_ready(slot, incarnation),
                _ => {}
            }
        }
        match self.link {
            None => self.find_stack(),
            Some(_) => self.ask_for_due(),
        }
        Ok(true)
    }

    /// Reads what sockets says; notices when the connection ends.
    fn hear(&mut self) {
        loop {
            match self.link.as_mut().map(Link::receive) {
                Some(Ok(Some((reply, fd)))) => self.note(&reply, fd),
                Some(Ok(None)) => return,
                Some(Err(_)) => return self.stack_ended(),
                None => return,
            }
        }
    }

    /// Records a request that the stack granted to a program of the domain, to repeat it later. An answer to the
    /// custodian itself has a sequence number and is not recorded.
    fn note(&mut self, note: &Reply, fd: Option<OwnedFd>) {
        if note.sequence != 0 || self.arena.socket(note.slot).is_none() {
            return;
        }
        let (slot, incarnation, operation) = (note.slot, note.args[3], note.value as u32);
        let known = self.kept.get(&slot).is_some_and(|k| k.incarnation == incarnation);
        if !known && matches!(operation, op::BIND | op::CONNECT) {
            let Some(far) = fd else { return };
            self.forget(slot);
            self.watch(far.as_fd(), token(FAR, slot, incarnation), epoll::EventFlags::RDHUP);
            self.kept.insert(slot, Kept::new(incarnation, far, note));
        } else if let Some(kept) = self.kept.get_mut(&slot)
            && (known || operation == op::SHADOW)
        {
            kept.note(note, fd);
        }
    }

    /// The socket's last descriptor was closed.
    fn closed(&mut self, slot: u32, incarnation: u32) {
        if self.kept.get(&slot).is_some_and(|k| k.incarnation == incarnation) {
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: u32) {
        if let Some(kept) = self.kept.remove(&slot) {
            // The stack holds duplicates of the far end, so it would stay in the epoll set if it were only closed here.
            let _ = epoll::delete(&self.set, &kept.far);
            self.unwatch_shadow(&kept);
        }
    }

    fn unwatch_shadow(&self, kept: &Kept) {
        for shadow in kept.shadows.iter().flatten() {
            let _ = epoll::delete(&self.set, shadow);
        }
    }

    /// Does what the dead stack could not do: reports connections as ended, and shows in the arena that there is no
    /// stack.
    fn stack_ended(&mut self) {
        self.link = None;
        self.arena.stacks().fetch_or(1, Ordering::SeqCst);
        for slot in 0..self.arena.touched() {
            if self.owner(slot).is_some_and(|owner| owner.role == Role::Tcp) {
                self.end_connection(slot);
            }
        }
        for (slot, kept) in &self.kept {
            for shadow in kept.shadows.iter().flatten() {
                let events = epoll::EventFlags::IN | epoll::EventFlags::ET;
                self.watch(shadow.as_fd(), token(SHADOW, *slot, kept.incarnation), events);
            }
        }
    }

    /// The owner of a slot. It is read without mapping the slot, because an unused slot takes no memory.
    fn owner(&self, slot: u32) -> Option<ComponentId> {
        let word = |offset: usize| {
            let at = self.arena.geometry().offset_of(slot) + offset;
            let mut bytes = [0; 4];
            let read = rustix::io::pread(&self.arena_fd, &mut bytes, at as u64);
            (read == Ok(bytes.len())).then(|| u32::from_le_bytes(bytes))
        };
        SocketPage::owner_of(word(OWNER)?, word(KIND)?)
    }

    fn end_connection(&mut self, slot: u32) {
        let Some(page) = self.arena.socket(slot) else { return };
        let flags = page.flags();
        let live = flags & (flag::CONNECTED | flag::CONNECTING);
        if page.kind() == 0 || live == 0 {
            return;
        }
        if flags & flag::DEAD == 0 {
            page.set_error(if flags & flag::CONNECTED != 0 { ECONNRESET } else { ENETUNREACH });
            page.set_flags(flags | flag::DEAD | flag::RECEIVE_END | flag::SEND_CLOSED);
        }
        // Its far end is closed, so the descriptor is no longer silent.
        self.forget(slot);
    }

    /// While there is no stack, what arrives over the kernel's loopback still wakes the program.
    fn shadow_ready(&self, slot: u32, incarnation: u32) {
        if self.link.is_none()
            && let Some(kept) = self.kept.get(&slot).filter(|k| k.incarnation == incarnation)
            && let Some(page) = self.arena.socket(slot)
        {
            kept.shadows.iter().flatten().for_each(|shadow| shadow_ready(&page, &kept.far, shadow));
        }
    }

    /// Brings the domain to a stack of its name, if there is one. All slots are claimed before a program can ask for
    /// new ones.
    fn find_stack(&mut self) {
        let Ok(fd) = operator::connect(&self.stack, &operator::applications_path(&self.stack)) else {
            return;
        };
        let mut link = Link::new(fd);
        if link.bring_domain(&self.arena, &self.arena_fd, &self.bell).is_err() {
            return;
        }
        for (slot, kept) in &mut self.kept {
            let Some(page) = self.arena.socket(*slot) else { continue };
            if kept.restore(&mut link, *slot, &page).is_err() {
                return;
            }
        }
        let stacks = self.arena.stacks().load(Ordering::SeqCst);
        self.arena.stacks().store((stacks | 1).wrapping_add(1), Ordering::SeqCst);
        let _ = link.pass_root(&self.root);
        for kept in self.kept.values() {
            self.unwatch_shadow(kept);
        }
        self.until = Instant::now() + PATIENCE;
        self.hold(link);
        self.ask_for_due();
    }

    fn has_due(&self) -> bool {
        Instant::now() < self.until && self.kept.values().any(Kept::is_due)
    }

    /// Repeats the requests of restored sockets: bind, listen, connect.
    fn ask_for_due(&mut self) {
        if !self.has_due() {
            return;
        }
        let Some(mut link) = self.link.take() else { return };
        let lost = self.kept.iter_mut().any(|(slot, kept)| kept.settle(&mut link, *slot).is_err());
        let early = link.take_early();
        self.link = Some(link);
        for (note, fd) in early {
            self.note(&note, fd);
        }
        if lost {
            self.stack_ended();
        }
    }
}

#[cfg(test)]
mod tests;
