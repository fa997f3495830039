//! Sending and receiving datagrams.
//!
//! Each lies in a ring as a record: a header, then the payload, padded to 8 bytes. One that is held
//! back for more (MSG_MORE, UDP_CORK) grows behind the published end of the send ring, so that it is
//! dropped with the socket, as in the kernel. `shadow` handles datagrams over the kernel's loopback.

use crate::buffers::Buffers;
use crate::descriptor;
use crate::domain::domain;
use crate::error_queue;
use crate::groups;
use crate::interfaces::is_broadcast;
use crate::received::{Received, quieten};
use crate::segmentation::{self, Sent};
use crate::socket::{Socket, bit};
use crate::stamps;
use crate::sys::{Errno, Result};
use crate::{readiness, shadow};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use eft_base::{Endpoint, WireAddress};
use eft_channel::socket::{DatagramHeader, Opt, PAYLOAD_MAX, datagram_record_len, flow, marks, payload_max};
use zerocopy::IntoBytes;

const HEADER_LEN: usize = size_of::<DatagramHeader>();

/// Sends one datagram to `to`, or to the socket's peer. A datagram that is held back goes to the
/// destination of its first part.
///
/// # Safety
/// `control` must be as for `sendmsg`.
pub unsafe fn send(
    fd: c_int,
    socket: &Socket,
    from: &mut Buffers,
    to: Option<Endpoint>,
    flags: c_int,
    control: Sent,
) -> Result<usize> {
    // As on Linux, over IPv6 the flag has no effect.
    let over_ipv6 = || socket.has(bit::INET6) && to.unwrap_or_else(|| socket.page.remote()).address.is_ipv6();
    if flags & libc::MSG_OOB != 0 && !over_ipv6() {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    from.touchable()?;
    let len = from.left();
    if len > payload_max(to.unwrap_or_else(|| socket.page.remote()).address) {
        // As on Linux, what is held back goes with it, unless no length field could say so much.
        if len <= usize::from(u16::MAX) {
            let _guard = socket.lock_send()?;
            socket.pending().store(0, Ordering::Relaxed);
        }
        return Err(Errno(libc::EMSGSIZE));
    }
    let begun = socket.pending().load(Ordering::Relaxed) != 0;
    if to.is_none() && !socket.has(bit::PEER) && !begun {
        return Err(Errno(libc::EDESTADDRREQ));
    }
    if to.is_some_and(|to| to.port == 0) {
        return Err(Errno(libc::EINVAL));
    }
    let forbidden = |to: Endpoint| socket.page.option(Opt::Broadcast) == 0 && is_broadcast(to.address);
    if to.is_some_and(forbidden) && !begun {
        return Err(Errno(libc::EACCES));
    }
    let to = groups::toward(socket, to.unwrap_or_else(|| socket.page.remote()));
    // What is held back is sent as its first part says.
    // SAFETY: by the caller.
    let segment = if begun { 0 } else { unsafe { segmentation::size(socket, control)? } };
    let header = DatagramHeader {
        len: len as u32,
        port: to.port,
        local_port: socket.page.local().port,
        address: WireAddress::from(to.address),
        local: WireAddress::from(groups::source(socket, to.address)),
        segment,
        ttl: groups::hops(socket, to.address),
        quiet: if socket.page.option(Opt::NoMulticastLoop) != 0 { marks::QUIET } else { 0 },
        ..DatagramHeader::default()
    }
    .with_label(flow::label(socket.page.option(Opt::FlowLabel)));
    let more = flags & libc::MSG_MORE != 0 || socket.has(bit::DATAGRAM_CORK);
    loop {
        socket.take_error().inspect_err(|_| quieten(fd, socket))?;
        if socket.wishes_shut_write() {
            return Err(Errno(libc::EPIPE));
        }
        if domain().is_some_and(|f| f.is_away()) {
            return Err(Errno(libc::ENETUNREACH));
        }
        if socket.has(bit::ORPHAN) {
            return Err(Errno(libc::ENETDOWN));
        }
        let put = put(fd, socket, from, &header, more);
        if put.map_err(|e| readiness::reentered(fd, socket, flags, e))? {
            readiness::found_something(socket);
            return Ok(len);
        }
        if readiness::must_not_wait(fd, socket, flags) {
            readiness::found_nothing(fd, socket);
            return Err(Errno(libc::EAGAIN));
        }
        readiness::wait_room(fd, socket)?;
    }
}

/// Puts the payload into the ring, behind a part that is held back, and publishes it unless `more` is
/// to come. False (and the descriptor plugged) if there is no room.
fn put(fd: c_int, socket: &Socket, from: &mut Buffers, header: &DatagramHeader, more: bool) -> Result<bool> {
    let page = &socket.page;
    let guard = socket.lock_send()?;
    let held = socket.pending().load(Ordering::Relaxed) as usize;
    let whole = held.saturating_add(header.len as usize);
    let len = datagram_record_len(whole);
    // A datagram larger than the ring (SO_SNDBUF) would never fit. A part that was held back is
    // dropped with it.
    if whole > payload_max(header.address.into()) || len > page.send_limit() {
        socket.pending().store(0, Ordering::Relaxed);
        return Err(Errno(libc::EMSGSIZE));
    }
    let end = page.send_end();
    if !more && let Err(errno) = check_segments(socket, header, whole, held != 0) {
        socket.pending().store(0, Ordering::Relaxed);
        return Err(errno);
    }
    if page.sendable() < len {
        readiness::plug(fd, socket);
        drop(guard);
        crate::domain::notify(socket);
        return Ok(false);
    }
    if held == 0 {
        let (stamps, interface) = stamps::number(socket);
        page.write_send(end, DatagramHeader { stamps, interface, ..*header }.as_bytes());
    }
    from.write_send(page, end.wrapping_add((HEADER_LEN + held) as u64), header.len as usize);
    if more {
        socket.pending().store(whole as u32, Ordering::Relaxed);
        return Ok(true);
    }
    match held {
        0 => page.set_send_end(end.wrapping_add(len as u64)),
        _ => release(socket, whole),
    }
    drop(guard);
    crate::domain::notify(socket);
    Ok(true)
}

/// Whether a record of `len` bytes may be cut as it says; one that is held back says so itself. Under the send lock.
fn check_segments(socket: &Socket, header: &DatagramHeader, len: usize, held: bool) -> Result<()> {
    let mut first = *header;
    if held {
        socket.page.read_send(socket.page.send_end(), first.as_mut_bytes());
    }
    segmentation::check(socket, &first, len)
}

/// Completes a record that was held back, with `len` bytes of payload, and publishes it. Under the
/// send lock.
fn release(socket: &Socket, len: usize) {
    let page = &socket.page;
    let end = page.send_end();
    let mut header = DatagramHeader::default();
    page.read_send(end, header.as_mut_bytes());
    header.len = len as u32;
    page.write_send(end, header.as_bytes());
    socket.pending().store(0, Ordering::Relaxed);
    page.set_send_end(end.wrapping_add(datagram_record_len(len) as u64));
}

/// UDP_CORK: while it is on, datagrams are held back; when it is taken off, what is held is published.
/// The caller notifies.
pub fn set_cork(socket: &Socket, on: bool) -> Result<()> {
    socket.put_bits(bit::DATAGRAM_CORK, on);
    if on {
        return Ok(());
    }
    // The option was set on the shadow, too, which has sent what it held back.
    socket.put_bits(bit::LOOPBACK_MORE, false);
    let _guard = socket.lock_send().map_err(|_| Errno(libc::EAGAIN))?;
    // The word is shared with the domain's other processes.
    match socket.pending().load(Ordering::Relaxed) as usize {
        0 => {}
        held if held > PAYLOAD_MAX => socket.pending().store(0, Ordering::Relaxed),
        // As on Linux nobody is told.
        held if check_segments(socket, &DatagramHeader::default(), held, true).is_err() => {
            socket.pending().store(0, Ordering::Relaxed)
        }
        held => release(socket, held),
    }
    Ok(())
}

/// Receives one datagram. As on Linux, MSG_OOB has no effect.
pub fn receive(fd: c_int, socket: &Socket, to: &mut Buffers, flags: c_int) -> Result<Received> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return match error_queue::take_notice(fd, socket) {
            Some(_) => Ok(Received::nothing()),
            None => error_queue::take(fd, socket, to),
        };
    }
    to.touchable()?;
    let mut rounds = 0;
    loop {
        socket.take_error().inspect_err(|_| quieten(fd, socket))?;
        let taken = take(socket, to, flags & libc::MSG_PEEK != 0).inspect_err(|_| quieten(fd, socket));
        if let Some(received) = taken.map_err(|e| readiness::reentered(fd, socket, flags, e))? {
            readiness::found_something(socket);
            if flags & libc::MSG_PEEK == 0 {
                match socket.page.receivable() {
                    0 if !socket.shadow_due() => quieten(fd, socket),
                    _ => readiness::took_a_part(fd, socket),
                }
            }
            return Ok(received);
        }
        quieten(fd, socket);
        if socket.wishes_shut_read() && !readiness::must_not_wait(fd, socket, flags) {
            return Ok(Received::nothing());
        }
        if socket.is_ended() {
            return Err(Errno(libc::ENETDOWN));
        }
        if socket.has(bit::ORPHAN) {
            descriptor::fall_silent(fd, socket)?;
        }
        if readiness::must_not_wait(fd, socket, flags) {
            readiness::found_nothing(fd, socket);
            return Err(Errno(libc::EAGAIN));
        }
        readiness::wait_datagram(fd, socket)?;
        rounds += 1;
        if rounds % 8 == 0 {
            readiness::examine(fd, socket);
        }
    }
}

/// Takes the next datagram, from the ring or from the shadow.
fn take(socket: &Socket, to: &mut Buffers, peek: bool) -> Result<Option<Received>> {
    let page = &socket.page;
    // Before the lock: a process that does not have the shadow yet waits for it.
    let shadow = shadow::due(socket);
    let guard = socket.lock_receive()?;
    if let Some(shadow) = first_the_shadow(socket, shadow)
        && let Some(received) = shadow::take(socket, shadow, to, peek)?
    {
        socket.set_shadow_turn(peek);
        return Ok(Some(received));
    }
    let available = page.receivable();
    if available == 0 {
        return Ok(None);
    }
    let taken = page.receive_taken();
    let mut header = DatagramHeader::default();
    if available >= HEADER_LEN {
        page.read_receive(taken, header.as_mut_bytes());
    }
    let len = header.len as usize;
    let whole = header.received_len();
    if available < HEADER_LEN || len > page.receive_len() || whole > available {
        // No transport writes this: the domain has overwritten its ring. Start anew.
        page.set_receive_taken(page.receive_end());
        return Ok(None);
    }
    let copied = len.min(to.left());
    to.read_receive(page, taken.wrapping_add(HEADER_LEN as u64), copied);
    let mut at = [0; 8];
    if header.stamps != 0 {
        page.read_receive(taken.wrapping_add((whole - at.len()) as u64), &mut at);
    }
    let at = u64::from_ne_bytes(at);
    socket.set_shadow_turn(!peek);
    if !peek {
        page.set_receive_taken(taken.wrapping_add(whole as u64));
    }
    drop(guard);
    if !peek {
        crate::domain::notify_taken(socket);
    }
    Ok(Some(Received {
        len,
        copied,
        from: Endpoint::new(header.address.into(), header.port),
        header,
        at,
        error: None,
    }))
}

/// The shadow, if it may have something and comes first: the ring is empty, or had its turn.
fn first_the_shadow(socket: &Socket, shadow: Option<c_int>) -> Option<c_int> {
    shadow.filter(|_| socket.shadow_turn() || socket.page.receivable() == 0)
}

/// Length of the next datagram, for FIONREAD. It stays the next one, as after a peek.
pub fn next_len(socket: &Socket) -> usize {
    let shadow = shadow::due(socket);
    let Ok(_guard) = socket.lock_receive() else {
        return 0;
    };
    if let Some(len) = first_the_shadow(socket, shadow).and_then(|shadow| shadow::next_len(socket, shadow)) {
        socket.set_shadow_turn(true);
        return len;
    }
    if socket.page.receivable() < HEADER_LEN {
        return 0;
    }
    socket.set_shadow_turn(false);
    let mut header = DatagramHeader::default();
    socket.page.read_receive(socket.page.receive_taken(), header.as_mut_bytes());
    header.len as usize
}
