//! The surroundings of an engine besides its peers: applications, operators, descriptors.

use crate::capture::{CaptureSlot, CaptureWriter};
use crate::protocol::{ArenaShape, FromServer, ToServer};
use crate::{Error, Result, memory};
use eft_base::{DomainId, Instant, PoolId, SocketId};
use eft_channel::Shared;
use eft_channel::notify::Doorbell;
use eft_channel::socket::{Arena, Geometry};
use eft_component::{Answer, Component};
use std::collections::HashMap;
use std::convert::Infallible;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The hooks of the live loop of a component.
pub trait Surroundings<C: Component> {
    /// Called when the engine has been told everything that it must know before it begins. Returns whether the process entered a
    /// Landlock domain now.
    fn begin(&mut self, _engine: &C) -> Result<bool> {
        Ok(false)
    }

    /// Carries out an effect of the engine.
    fn perform(&mut self, effect: C::Effect);

    /// Emits events. Called once per turn. `ready`: the descriptors may be ready.
    fn poll(&mut self, _ready: bool, _emit: &mut dyn FnMut(C::Event)) {}

    /// Called after each turn of the engine, when its effects were carried out. Returns when [`Self::poll`] wants to be called
    /// again at the latest.
    fn end_turn(&mut self) -> Option<Instant> {
        None
    }

    /// Whether events are waiting: a part of the last check before sleeping.
    fn pending(&self) -> bool {
        false
    }

    /// More bells to sleep on.
    fn bells(&self, _watch: &mut dyn FnMut(&Shared<Doorbell>)) {}

    /// Descriptors to sleep on. With any, the server sleeps in `epoll_wait` instead of `futex_waitv`.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// The process sleeps on the descriptors of this set, because some server of it has descriptors.
    fn sleeps_on(&mut self, _set: &Arc<OwnedFd>) {}

    /// `bell` is given to a server that may write to the arena.
    fn domain_opened(&mut self, _domain: DomainId, _arena: &Arena, _fd: OwnedFd, _bell: Option<OwnedFd>) {}

    fn domain_closed(&mut self, _domain: DomainId) {}

    /// A setting of the stack, which the engine gets, too.
    fn configure(&mut self, _key: &str, _value: &[u8]) {}

    /// A control message that the loop does not handle itself.
    fn control(&mut self, _message: ToServer, _fds: Vec<OwnedFd>, _emit: &mut dyn FnMut(C::Event)) {}

    /// Sockets whose far ends are missing, and are to be asked for now.
    fn lacking(&mut self) -> Vec<SocketId> {
        Vec::new()
    }

    /// System calls on applications' descriptors since the last call.
    fn take_calls(&mut self) -> u64 {
        0
    }
}

/// The surroundings of an engine with peers only (ip), or of one that also sleeps on a device (nic).
#[derive(Default)]
pub struct Plain {
    device: Option<(OwnedFd, CaptureSlot)>,
}

impl Plain {
    /// `device` becomes readable when a frame can be received; captures are put into `slot`.
    pub fn with_device(device: &impl AsFd, slot: CaptureSlot) -> Result<Plain> {
        let fd = device.as_fd().try_clone_to_owned().map_err(|e| Error::System(format!("device: {e}")))?;
        Ok(Plain { device: Some((fd, slot)) })
    }
}

impl<C: Component<Effect = Infallible>> Surroundings<C> for Plain {
    fn perform(&mut self, effect: Infallible) {
        match effect {}
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.device.iter().map(|(d, _)| d.as_fd()).collect()
    }

    fn control(&mut self, message: ToServer, fds: Vec<OwnedFd>, _emit: &mut dyn FnMut(C::Event)) {
        if let (ToServer::Capture, Some((_, slot))) = (message, &self.device) {
            *slot.borrow_mut() = fds.first().and_then(|fd| CaptureWriter::new(fd).ok());
        }
    }
}

/// The surroundings of the filter and ip: they answer operators through the supervisor.
pub struct Answering {
    control: OwnedFd,
}

impl Answering {
    pub fn new(control: &OwnedFd) -> Result<Answering> {
        Ok(Answering {
            control: control.try_clone().map_err(|e| Error::System(format!("control socket: {e}")))?,
        })
    }
}

impl<C: Component<Effect = Answer>> Surroundings<C> for Answering {
    fn perform(&mut self, Answer { key, value }: Answer) {
        super::tell(&self.control, &FromServer::Answer { key, value }, &[]);
    }
}

/// The domains whose arenas a server has mapped.
#[derive(Default)]
pub struct Domains {
    pools: HashMap<DomainId, PoolId>,
}

impl Domains {
    pub fn open(
        &mut self,
        domain: DomainId,
        pool: PoolId,
        shape: ArenaShape,
        fd: &OwnedFd,
        writable: bool,
    ) -> Result<Arena> {
        let ArenaShape { slots, send_len, receive_len } = shape;
        let geometry = Geometry { slots, send_len, receive_len };
        let arena = Arena::new(memory::map(fd, writable)?, geometry)
            .map_err(|_| Error::Protocol(format!("arena of domain {}: bad shape", domain.0)))?;
        self.pools.insert(domain, pool);
        Ok(arena)
    }

    /// Whether a domain has this pool.
    pub fn uses(&self, id: PoolId) -> bool {
        self.pools.values().any(|pool| *pool == id)
    }

    pub fn close(&mut self, domain: DomainId) -> Option<PoolId> {
        self.pools.remove(&domain)
    }
}
