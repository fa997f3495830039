//! The fake's tcp and udp: delivers bytes from page to page.

use super::slots::{DomainSlots, GEOMETRY, Id, Slot};
use super::sys::Watched;
use super::{dns, sys};
use eft_base::{ComponentId, Endpoint, WireAddress};
use eft_channel::notify::Mode;
use eft_channel::socket::{
    AcceptRecord, DatagramHeader, Geometry, Opt, SocketPage, Urgent, datagram_record_len, early, flag, wish,
};
use eft_channel::status::{STATUS_LEN, Status};
use eft_messages::control::Request;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes that go with a SYN.
const SYN_ROOM: u64 = 1000;
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));
const SILENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 99));
const CONNECT_TIME: Duration = Duration::from_micros(300);
const HEADER_LEN: usize = size_of::<DatagramHeader>();

pub struct Network {
    domains: Vec<DomainSlots>,
    status: [(OwnedFd, Status); 2],
    connecting: Vec<(Instant, Id, Endpoint)>,
    /// Ports whose Fast Open cookie is known: those that were connected to.
    cookies: Vec<u16>,
    generation: u32,
    /// Connections that were ever accepted, for tests that count.
    pub delivered_bytes: u64,
}

/// Tells the receiver of the sender's urgent byte, if it has come with those up to `end`. Returns whether that is new.
fn show_urgent(from: &SocketPage, to: &SocketPage, end: u64) -> bool {
    let urgent = from.send_urgent();
    if from.wishes() & wish::SENDS_URGENT == 0 || urgent > end || urgent <= to.receive_end() {
        return false;
    }
    to.set_urgent(Urgent::word(Some(Urgent { at: urgent - 1, arrived: true })));
    true
}

type Answer = Result<(u32, u16), i32>;

impl Network {
    pub fn new() -> Network {
        let page = || {
            let (fd, segment) = sys::memory(STATUS_LEN);
            (fd, Status::new(segment).unwrap())
        };
        Network {
            domains: Vec::new(),
            status: [page(), page()],
            connecting: Vec::new(),
            cookies: Vec::new(),
            generation: 1,
            delivered_bytes: 0,
        }
    }

    pub fn add_domain(&mut self) -> usize {
        self.domains.push(DomainSlots::new(self.generation));
        self.domains.len() - 1
    }

    pub fn domain_memory(&self, domain: usize) -> (Geometry, [RawFd; 4]) {
        let [tcp, udp] = [&self.status[0].0, &self.status[1].0].map(|fd| fd.as_raw_fd());
        let domain = &self.domains[domain];
        (GEOMETRY, [domain.memory.as_raw_fd(), domain.bell.as_raw_fd(), tcp, udp])
    }

    pub fn reborn(&mut self) {
        self.generation += 1;
        for domain in &self.domains {
            domain.write_info(self.generation);
        }
    }

    fn slot(&mut self, (domain, slot): Id) -> Option<&mut Slot> {
        self.domains.get_mut(domain)?.get(slot)
    }

    pub fn open(&mut self, domain: usize, kind: u32, far: impl FnOnce(u32) -> Watched) -> Answer {
        let slot = self.domains[domain].allocate(kind == 1).ok_or(libc::EMFILE)?;
        self.slot((domain, slot)).unwrap().far = Some(far(slot));
        Ok((slot, 0))
    }

    fn ephemeral(&self) -> u16 {
        // Below the kernel's own range, and different in every network of this test program: the
        // shadows on the kernel's loopback must not meet.
        static NEXT: AtomicU16 = AtomicU16::new(0);
        20000 + (NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() as u16) % 12000
    }

    fn sockets(&self) -> impl Iterator<Item = (Id, &Slot)> {
        self.domains.iter().enumerate().flat_map(|(f, domain)| {
            domain.slots.iter().enumerate().filter_map(move |(s, slot)| Some(((f, s as u32), slot.as_ref()?)))
        })
    }

    pub fn open_sockets(&self) -> usize {
        self.sockets().count()
    }

    pub fn bind(&mut self, domain: usize, request: &Request) -> Answer {
        let id = (domain, request.slot);
        let address: IpAddr = request.address.into();
        let stream = self.slot(id).ok_or(libc::EBADF)?.stream;
        let port = match request.port {
            0 => self.ephemeral(),
            port => port,
        };
        let reuse_port = request.args[0] & 2 != 0 || !stream && request.args[0] & 1 != 0;
        let taken = self.sockets().any(|(other, slot)| {
            other != id
                && slot.stream == stream
                && !slot.closed
                && (slot.listening || !slot.stream)
                && slot.bound.is_some_and(|b| b.port == port)
                && !(reuse_port && slot.reuse_port)
        });
        if taken {
            return Err(libc::EADDRINUSE);
        }
        let slot = self.slot(id).unwrap();
        slot.reuse_port = reuse_port;
        slot.bound = Some(Endpoint::new(address, port));
        slot.page.set_local(Endpoint::new(address, port));
        Ok((request.slot, port))
    }

    pub fn listen(&mut self, domain: usize, slot: u32, hidden: Option<Watched>) -> Answer {
        let slot_ref = self.slot((domain, slot)).ok_or(libc::EBADF)?;
        slot_ref.listening = true;
        slot_ref.hidden[0] = hidden;
        slot_ref.set_flags(flag::LISTENING);
        Ok((slot, 0))
    }

    pub fn connect(&mut self, domain: usize, request: &Request) -> Answer {
        let id = (domain, request.slot);
        let to = Endpoint::new(request.address.into(), request.port);
        let unbound = self.slot(id).ok_or(libc::EBADF)?.bound.is_none();
        let port = if unbound { self.ephemeral() } else { 0 };
        let known = self.cookies.contains(&to.port);
        let slot = self.slot(id).unwrap();
        let port = slot.bound.map_or(port, |b| b.port);
        let source = match to.address {
            IpAddr::V4(v4) if v4.octets()[0] == 10 || to.port == 0 => HOST,
            loopback if loopback.is_loopback() && !slot.stream => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => return Err(libc::ENETUNREACH),
        };
        let wish = slot.page.option(Opt::FastOpenConnect);
        if slot.stream && wish == early::DEFER && known {
            return Err(libc::EAGAIN);
        }
        slot.bound = Some(Endpoint::new(HOST, port));
        slot.page.set_local(Endpoint::new(source, port));
        slot.page.set_remote(to);
        if slot.stream {
            slot.set_flags(flag::CONNECTING);
            self.connecting.push((Instant::now() + CONNECT_TIME, id, to));
            if matches!(wish, early::DATA | early::FITTING) && !known {
                return Err(libc::EINPROGRESS);
            }
        }
        Ok((request.slot, port))
    }

    /// How much of the bytes that lie in the ring of a stream that connects is taken.
    pub fn taken(&mut self, domain: usize, slot: u32) -> u64 {
        let Some(s) = self.slot((domain, slot)).filter(|s| s.stream) else { return 0 };
        match s.page.option(Opt::FastOpenConnect) {
            early::FITTING => s.page.send_end().min(SYN_ROOM),
            _ => s.page.send_end(),
        }
    }

    pub fn accepted(&mut self, domain: usize, request: &Request, far: Watched) -> Answer {
        // One that was held is not waiting any more, and its page may not say yet that it has a descriptor.
        let slot = self.slot((domain, request.slot)).filter(|s| s.far.is_none()).ok_or(libc::EINVAL)?;
        assert_eq!(slot.page.incarnation(), request.args[0]);
        if slot.waiting && slot.page.holder().is_none() {
            assert_eq!(slot.page.inode(), request.value);
        }
        slot.far = Some(far);
        slot.waiting = false;
        if slot.page.receivable() > 0 {
            slot.post();
        }
        slot.show_end();
        Ok((request.slot, 0))
    }

    /// The hidden kernel socket beside a datagram socket, or the second one beside a listener: brings it, or asks for it.
    pub fn shadow(
        &mut self,
        domain: usize,
        (slot, which): (u32, usize),
        brought: Option<Watched>,
    ) -> Result<Option<RawFd>, i32> {
        let slot = self.slot((domain, slot)).ok_or(libc::EBADF)?;
        match (brought, &slot.hidden[which]) {
            (Some(_), Some(_)) => Err(libc::EEXIST),
            (Some(shadow), None) => {
                slot.hidden[which] = Some(shadow);
                Ok(None)
            }
            (None, Some(shadow)) => Ok(Some(shadow.as_raw_fd())),
            (None, None) => Err(libc::ENOENT),
        }
    }

    pub fn owner(&mut self, domain: usize, slot: u32, owner: Option<OwnedFd>) -> Answer {
        owner.iter().for_each(sys::greet_owner);
        self.slot((domain, slot)).ok_or(libc::EBADF)?.owner = owner;
        Ok((slot, 0))
    }

    /// Something came to the hidden kernel socket.
    pub fn kernel_ready(&mut self, domain: usize, slot: u32) {
        if let Some(slot) = self.slot((domain, slot)) {
            slot.page.add_shadow_arrival();
            if slot.hidden.iter().flatten().any(sys::is_readable) {
                slot.post_anyway();
            }
        }
    }

    /// Something happened at a far end; only a hang-up matters.
    pub fn far_end(&mut self, domain: usize, slot: u32) {
        let id = (domain, slot);
        let Some(s) = self.slot(id) else { return };
        if s.far.take_if(|far| sys::is_closed(far.as_raw_fd())).is_some() {
            self.close(id);
        }
    }

    /// The process with this connection to sockets is gone: closes what it held.
    pub fn release_held(&mut self, domain: usize, holder: u64) {
        let held = |(id, s): (Id, &Slot)| (id.0 == domain && s.page.holder() == Some(holder)).then_some(id);
        let held: Vec<Id> = self.sockets().filter_map(held).collect();
        held.into_iter().for_each(|id| self.close(id));
    }

    /// Closes what was held without a descriptor, if its page says so.
    fn close_held(&mut self, id: Id) {
        let Some(s) = self.slot(id).filter(|s| s.page.holder().is_some() && !s.closed) else { return };
        s.waiting = false;
        if s.page.wishes() & wish::CLOSED != 0 {
            self.close(id);
        }
    }

    fn close(&mut self, id: Id) {
        let (domain, _) = id;
        let Some(s) = self.slot(id) else { return };
        s.closed = true;
        // As tcp's `is_aborted_by_close`.
        let aborts = s.page.receivable() > 0 || s.page.option(Opt::Linger) == 1;
        if s.listening {
            // A program that is just being started may have inherited it for a moment.
            s.hidden.iter().flatten().for_each(|hidden| sys::shutdown(hidden, libc::SHUT_RDWR));
            let port = s.page.local().port;
            self.drop_waiting(domain, port);
        }
        let Some(peer) = self.slot(id).and_then(|s| s.peer) else {
            return self.free(id);
        };
        if aborts {
            self.reset_connection(peer, libc::ECONNRESET);
            return self.free(id);
        }
        self.pump(id);
        self.finish(id);
    }

    /// Drops connections that were not accepted with their listener.
    fn drop_waiting(&mut self, domain: usize, port: u16) {
        let waiting: Vec<Id> = self
            .sockets()
            .filter(|(id, s)| {
                id.0 == domain && s.waiting && s.page.holder().is_none() && s.page.local().port == port
            })
            .map(|(id, _)| id)
            .collect();
        for id in waiting {
            if let Some(peer) = self.slot(id).and_then(|s| s.peer) {
                self.reset_connection(peer, libc::ECONNRESET);
            }
            self.free(id);
        }
    }

    fn free(&mut self, (domain, slot): Id) {
        if let Some(s) = self.slot((domain, slot)) {
            s.page.set_inode(0);
            s.page.set_free();
        }
        self.domains[domain].slots[slot as usize] = None;
        self.connecting.retain(|&(_, id, _)| id != (domain, slot));
    }

    fn reset_connection(&mut self, id: Id, errno: i32) {
        if let Some(s) = self.slot(id) {
            s.page.set_error(errno);
            s.set_flags(flag::DEAD | flag::RECEIVE_END | flag::SEND_CLOSED);
            s.unplug();
            s.post();
            s.show_end();
            s.peer = None;
            if s.closed {
                self.free(id);
            }
        }
    }

    /// Sends FIN when everything is sent and the application wants to; frees closed sockets.
    fn finish(&mut self, id: Id) {
        let Some(s) = self.slot(id) else { return };
        let (closed, peer) = (s.closed, s.peer);
        let wants_fin = closed || s.page.wishes() & wish::SHUT_WRITE != 0;
        let all_sent = s.page.send_end() == s.page.send_released();
        if !wants_fin || !all_sent {
            return;
        }
        let first = !std::mem::replace(&mut s.fin_sent, true);
        if let Some(p) = peer.and_then(|p| self.slot(p)) {
            if first {
                p.set_flags(flag::RECEIVE_END);
                p.show_end();
            }
            if closed {
                p.peer = None;
            }
        }
        if closed {
            self.free(id);
            // The other end may have waited for this one to read.
            if let Some(peer) = peer {
                self.pump(peer);
                self.finish(peer);
            }
        }
    }

    fn establish(&mut self, from: Id, to: Endpoint) {
        if to.address == SILENT {
            return;
        }
        if to.port == 53 {
            let Some(s) = self.slot(from) else { return };
            s.name_server = true;
            s.page.set_flags(flag::CONNECTED);
            s.unplug();
            return;
        }
        let listener = self.sockets().find(|(_, s)| {
            s.listening
                && s.bound.is_some_and(|b| {
                    b.port == to.port && (b.address.is_unspecified() || b.address == to.address)
                })
        });
        let Some((listener, _)) = listener else {
            let Some(s) = self.slot(from) else { return };
            s.page.set_error(libc::ECONNREFUSED);
            s.page.set_flags(flag::DEAD | flag::SEND_CLOSED | flag::RECEIVE_END);
            s.unplug();
            s.post();
            s.show_end();
            return;
        };
        let client = self.slot(from).unwrap().bound.unwrap();
        let record_len = size_of::<AcceptRecord>();
        let full = self.slot(listener).unwrap().receive_room() < record_len;
        let domain = listener.0;
        let Some(slot) = (!full).then(|| self.domains[domain].allocate(true)).flatten() else {
            // Try again later, as a SYN would be sent again.
            self.connecting.push((Instant::now() + Duration::from_millis(20), from, to));
            return;
        };
        let server = (domain, slot);
        let s = self.slot(server).unwrap();
        s.bound = Some(to);
        s.page.set_local(to);
        s.page.set_remote(client);
        s.page.set_flags(flag::CONNECTED);
        s.peer = Some(from);
        s.waiting = true;
        let incarnation = s.page.incarnation();
        let c = self.slot(from).unwrap();
        c.peer = Some(server);
        c.page.set_flags(flag::CONNECTED);
        c.unplug();
        let record = AcceptRecord {
            slot,
            incarnation,
            remote: WireAddress::from(client.address),
            local: WireAddress::from(to.address),
            remote_port: client.port,
            local_port: to.port,
            reserved: [0; 20],
        };
        let l = self.slot(listener).unwrap();
        let end = l.page.receive_end();
        l.page.write_receive(end, record.as_bytes());
        l.page.set_receive_end(end + record_len as u64);
        l.post();
        if !self.cookies.contains(&to.port) {
            self.cookies.push(to.port);
        }
        self.pump(from);
    }

    /// Moves what `from` has sent to its peer, as far as there is room.
    fn pump(&mut self, from: Id) {
        let Some(s) = self.slot(from) else { return };
        let (page, peer) = (s.page.clone(), s.peer);
        if matches!(page.option(Opt::FastOpenConnect), early::DATA | early::FITTING) {
            return;
        }
        if s.name_server {
            s.answer_query();
            return;
        }
        let Some(p) = peer.and_then(|p| self.slot(p)) else {
            // The receiver is gone: answer with a reset.
            if page.send_end() != page.send_released() && page.flags() & flag::CONNECTED != 0 {
                page.set_send_sent(page.send_end());
                page.set_send_released(page.send_end());
                self.reset_connection(from, libc::EPIPE);
            }
            return;
        };
        let (mut moved, mut is_urgent) = (0, false);
        loop {
            let released = page.send_released();
            let waiting = page.send_end().saturating_sub(released) as usize;
            let n = waiting.min(p.receive_room()).min(65536);
            if n == 0 {
                break;
            }
            let mut bytes = vec![0; n];
            page.read_send(released, &mut bytes);
            let end = p.page.receive_end();
            p.page.write_receive(end, &bytes);
            is_urgent |= show_urgent(&page, &p.page, end + n as u64);
            p.page.set_receive_end(end + n as u64);
            page.set_send_sent(released + n as u64);
            page.set_send_released(released + n as u64);
            moved += n;
        }
        let blocked = page.send_end() != page.send_released();
        let notify = match blocked {
            true => p.page.receive_end().saturating_sub(p.page.receive_len() as u64 / 2),
            false => u64::MAX,
        };
        p.page.set_receive_notify(notify);
        std::sync::atomic::fence(Ordering::SeqCst);
        let again = blocked && p.page.receive_taken() >= notify;
        let alone = p.page.urgent().is_some_and(|urgent| urgent.at == p.page.receive_taken());
        let alone = alone && p.page.receivable() == 1 && p.page.wishes() & wish::WANTS_URGENT == 0;
        if moved > 0 && !alone {
            p.post();
        }
        if let Some(owner) = p.owner.as_ref().filter(|_| is_urgent) {
            sys::signal_owner(owner);
        }
        self.delivered_bytes += moved as u64;
        let s = self.slot(from).unwrap();
        if page.is_worth_writing() {
            s.unplug();
        }
        if again {
            self.pump(from);
        }
    }

    fn serve_stream(&mut self, id: Id) {
        let Some(s) = self.slot(id) else { return };
        let peer = s.peer;
        s.show_end();
        self.pump(id);
        self.finish(id);
        // The receiver took something: its sender may go on.
        if let Some(peer) = peer {
            self.pump(peer);
            self.finish(peer);
        }
    }

    fn serve_datagrams(&mut self, id: Id) {
        if let Some(s) = self.slot(id) {
            s.show_end();
        }
        while let Some(s) = self.slot(id) {
            let page = s.page.clone();
            let released = page.send_released();
            if page.send_end() <= released {
                break;
            }
            let mut header = DatagramHeader::default();
            page.read_send(released, header.as_mut_bytes());
            let mut payload = vec![0; header.len as usize];
            page.read_send(released + HEADER_LEN as u64, &mut payload);
            page.set_send_released(released + datagram_record_len(payload.len()) as u64);
            s.unplug();
            let source = Endpoint::new(HOST, page.local().port);
            let to = Endpoint::new(header.address.into(), header.port);
            self.deliver(source, to, &payload);
        }
    }

    fn deliver(&mut self, source: Endpoint, to: Endpoint, payload: &[u8]) {
        if to.port == 53 {
            if let Some(answer) = dns::answer_datagram(payload) {
                self.deliver(to, source, &answer);
            }
            return;
        }
        // A socket connected to the sender comes before an unconnected one.
        let found = self
            .sockets()
            .filter(|(_, s)| {
                let peer = s.page.remote();
                !s.stream
                    && s.far.is_some()
                    && s.bound.is_some_and(|b| b.port == to.port)
                    && (peer.port == 0 || peer == source)
            })
            .max_by_key(|(_, s)| s.page.remote().port != 0);
        let Some((id, _)) = found else {
            // Port unreachable comes back to a connected sender, and to one that asks for errors.
            let queues = |s: &Slot| s.page.option(Opt::ReceiveErrors) != 0;
            let sender = self.sockets().find(|(_, s)| {
                let concerned = s.page.remote() == to || (s.page.remote().port == 0 && queues(s));
                !s.stream && concerned && s.bound.is_some_and(|b| b.port == source.port)
            });
            if let Some((id, _)) = sender {
                let s = self.slot(id).unwrap();
                match queues(s) {
                    true => s.queue_refusal(to, payload),
                    false => s.page.set_error(libc::ECONNREFUSED),
                }
                s.post();
            }
            return;
        };
        let s = self.slot(id).unwrap();
        let len = datagram_record_len(payload.len());
        if s.receive_room() < len {
            return;
        }
        let header = DatagramHeader {
            len: payload.len() as u32,
            port: source.port,
            local_port: to.port,
            address: WireAddress::from(source.address),
            local: WireAddress::from(to.address),
            ttl: 64,
            ..DatagramHeader::default()
        };
        let end = s.page.receive_end();
        s.page.write_receive(end, header.as_bytes());
        s.page.write_receive(end + HEADER_LEN as u64, payload);
        s.page.set_receive_end(end + len as u64);
        s.post();
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.domains.iter().flat_map(|domain| domain.slots.iter().flatten())
    }

    /// One pass over all changed sockets. True if there were any.
    fn step(&mut self) -> bool {
        let now = Instant::now();
        let (due, later) = self.connecting.drain(..).partition(|c| c.0 <= now);
        self.connecting = later;
        let due: Vec<(Instant, Id, Endpoint)> = due;
        let mut busy = !due.is_empty();
        for (_, from, to) in due {
            self.establish(from, to);
        }
        // Whose input came first gets its token first.
        let mut handed: Vec<&Slot> = self.slots().filter(|slot| slot.handed.get().is_some()).collect();
        handed.sort_by_key(|slot| slot.handed.get());
        handed.into_iter().for_each(Slot::check_handed);
        for domain in 0..self.domains.len() {
            let mut dirty = Vec::new();
            for transport in [ComponentId::TCP, ComponentId::UDP] {
                self.domains[domain]
                    .arena
                    .dirty(transport)
                    .take(usize::MAX, &mut 0, |slot| dirty.push(slot as u32));
            }
            busy |= !dirty.is_empty();
            for slot in dirty {
                if let Some(s) = self.domains[domain].get(slot)
                    && s.page.sleepers().take_wanted()
                {
                    s.post();
                }
                match self.domains[domain].get(slot).map(|s| s.stream) {
                    Some(true) => {
                        self.serve_stream((domain, slot));
                        self.close_held((domain, slot));
                    }
                    Some(false) => self.serve_datagrams((domain, slot)),
                    None => {}
                }
            }
        }
        busy
    }
}

/// The transports' loop: works, announces that it will sleep, checks again, sleeps on the
/// doorbells.
pub fn run(network: &Mutex<Network>, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let mut net = network.lock().unwrap();
        let bells: Vec<_> = net
            .domains
            .iter()
            .flat_map(|f| [ComponentId::TCP, ComponentId::UDP].map(|t| f.arena.doorbell(t)))
            .collect();
        let words: Vec<_> = bells.iter().map(|b| (b.word().as_ptr() as *const u32, b.value())).collect();
        if net.step() {
            continue;
        }
        for (_, status) in &net.status {
            status.state().announce(Mode::Futex);
        }
        let again = net.step();
        let soon = !net.connecting.is_empty() || net.slots().any(|slot| slot.handed.get().is_some());
        drop(net);
        if !again {
            match soon || words.is_empty() {
                true => std::thread::sleep(Duration::from_micros(200)),
                false => sys::futex_wait_any(&words),
            }
        }
        let net = network.lock().unwrap();
        for (_, status) in &net.status {
            status.state().awake();
        }
    }
}

/// For tests that check received bytes.
pub fn header_of(bytes: &[u8]) -> Option<DatagramHeader> {
    DatagramHeader::read_from_prefix(bytes).ok().map(|(h, _)| h)
}
