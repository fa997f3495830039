//! One component before it has a process: its memory, new or a predecessor's.

use super::StackConfig;
use crate::memory::{self, Both};
use crate::supervisor::changes::Changes;
use crate::supervisor::inheritance::Inheritance;
use crate::supervisor::member::Member;
use crate::supervisor::placement::check_cpu;
use crate::{Doing, Error, Result};
use eft_channel::notify::Doorbell;
use eft_channel::status::{STATUS_LEN, Status};
use eft_messages::{ComponentId, Role};
use rustix::event::{EventfdFlags, eventfd};
use std::rc::Rc;

/// All components of a stack.
pub fn all(
    config: &StackConfig,
    inherited: &mut Option<Inheritance>,
    changes: &Rc<Changes>,
) -> Result<Vec<Member>> {
    let mut peers = config.topology.peers(config.devices.len());
    if config.topology.has("cores") {
        peers.push(ComponentId::CORES);
    }
    peers.into_iter().enumerate().map(|(n, peer)| member(config, peer, inherited, changes, n)).collect()
}

fn member(
    config: &StackConfig,
    peer: ComponentId,
    inherited: &mut Option<Inheritance>,
    changes: &Rc<Changes>,
    number: usize,
) -> Result<Member> {
    let name = match peer.role {
        Role::Nic => format!("nic:{}", config.devices[peer.instance as usize].interface),
        _ => peer.to_string(),
    };
    let inherited = inherited.as_mut().and_then(|all| all.take::<u32>(&format!("member/{name}")));
    let (generation, mut fds) = inherited.unwrap_or_default();
    let mut fds = fds.drain(..);
    let status_fd = match fds.next() {
        Some(fd) => fd,
        None => memory::create(&format!("eft-status-{name}"), STATUS_LEN)?,
    };
    let status =
        Status::new(memory::map(&status_fd, false)?).map_err(|_| Error::Protocol("status page".into()))?;
    let bell_fd = memory::create(&format!("eft-bell-{name}"), 4096)?;
    // SAFETY: Doorbell is one atomic.
    let bell = unsafe { memory::map(&bell_fd, true)?.shared::<Doorbell>(0) }
        .map_err(|_| Error::Protocol("bell".into()))?;
    let bell_fd = Both::of(bell_fd)?;
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).doing("eventfd")?;
    let status_fd = Both::of(status_fd)?;
    let mut member =
        Member::new(peer, name, status_fd, status, event, bell_fd, bell, changes.clone(), number);
    if let Some(spec) = config.topology.spec(peer) {
        if let Some(cpu) = spec.cpu {
            check_cpu(cpu).map_err(|e| Error::Invalid(format!("component {}: {e}", member.name)))?;
        }
        member.cpu = spec.cpu;
        member.dedicated = spec.dedicated;
        member.process = spec.process.clone();
        member.standby.is_wanted = config.topology.has_standby(spec);
    }
    member.generation = generation;
    let arena_len = (config.arena_len)(peer, &config.topology);
    if arena_len > 0 {
        member.arena = match fds.next() {
            Some(fd) => {
                // An older eft may have written it.
                member.spare = Some(memory::create(&format!("eft-arena-{}", member.name), arena_len)?);
                Some(fd)
            }
            None => Some(memory::create(&format!("eft-arena-{}", member.name), arena_len)?),
        };
    }
    Ok(member)
}
