//! One domain's memory and sockets in the fake stack.

use super::sys;
use eft_base::{Endpoint, SlotShare};
use eft_channel::lookers::{Looker, Told};
use eft_channel::segment::Segment;
use eft_channel::socket::{Arena, ERRORS_MAX, ErrorRecord, Geometry, SocketPage, flag, wish};
use eft_messages::control::{InfoHeader, InterfaceInfo};
use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

pub const GEOMETRY: Geometry = Geometry { slots: 256, send_len: 1 << 18, receive_len: 1 << 18 };

/// Names a socket in the whole network.
pub type Id = (usize, u32);

/// What the fake knows of a socket.
pub struct Slot {
    pub page: SocketPage,
    arena: Arena,
    number: u32,
    pub far: Option<sys::Watched>,
    pub stream: bool,
    pub bound: Option<Endpoint>,
    pub reuse_port: bool,
    pub listening: bool,
    pub hidden: [Option<sys::Watched>; 2],
    /// Who is signalled when urgent data come.
    pub owner: Option<OwnedFd>,
    /// A stream's other end; a datagram socket's peer lies in its page.
    pub peer: Option<Id>,
    pub fin_sent: bool,
    /// The end is shown at the descriptor.
    pub ended: bool,
    /// The application closed its last descriptor.
    pub closed: bool,
    /// A connection to the network's name server.
    pub name_server: bool,
    /// For whom a connection waits in a listener's ring.
    pub waiting: bool,
    /// When a thread was woken for input without a token.
    pub handed: Cell<Option<(Instant, u64)>>,
}

pub struct DomainSlots {
    pub arena: Arena,
    pub memory: OwnedFd,
    /// The fake always sleeps on futexes.
    pub bell: OwnedFd,
    pub slots: Vec<Option<Slot>>,
}

impl DomainSlots {
    pub fn new(generation: u32) -> DomainSlots {
        let (memory, segment): (OwnedFd, Segment) = sys::memory(GEOMETRY.arena_len());
        let domain = DomainSlots {
            arena: Arena::new(segment, GEOMETRY).unwrap(),
            memory,
            bell: sys::eventfd(),
            slots: (0..GEOMETRY.slots).map(|_| None).collect(),
        };
        domain.write_info(generation);
        domain
    }

    pub fn write_info(&self, generation: u32) {
        let address = |a: &str| a.parse::<std::net::IpAddr>().unwrap().into();
        let header =
            InfoHeader { sockets_generation: generation, interfaces: 1, nameserver: address("10.78.0.53") };
        let mut name = [0; 16];
        name[..4].copy_from_slice(b"eft0");
        let interface = InterfaceInfo {
            name,
            address: address("10.78.0.2"),
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            prefix_len: 24,
            up: 1,
            index: 7,
            gateway: [10, 78, 0, 1],
        };
        let bytes = [header.as_bytes(), interface.as_bytes()].concat();
        self.arena.write_info(&bytes).unwrap();
    }

    pub fn allocate(&mut self, stream: bool) -> Option<u32> {
        let share = if stream { SlotShare::TCP } else { SlotShare::UDP };
        let mut ours = (0..share.len(GEOMETRY.slots)).map(|i| share.slot(i) as usize);
        let slot = ours.find(|&i| self.slots[i].is_none())?;
        let page = self.arena.socket(slot as u32).unwrap();
        page.reset(share.owner);
        self.arena.touch(share.owner, slot as u32 + 1);
        page.set_receive_notify(u64::MAX);
        self.slots[slot] = Some(Slot {
            page,
            arena: self.arena.clone(),
            number: slot as u32,
            far: None,
            stream,
            bound: None,
            reuse_port: false,
            listening: false,
            hidden: [None, None],
            owner: None,
            peer: None,
            fin_sent: false,
            ended: false,
            closed: false,
            name_server: false,
            waiting: false,
            handed: Cell::new(None),
        });
        Some(slot as u32)
    }

    pub fn get(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }
}

impl Slot {
    /// Programs that may not wait for their descriptor sleep on a word of the page.
    fn wake_sleepers(&self) {
        if self.page.sleepers().silence() {
            self.wake();
        }
    }

    fn wake(&self) {
        let word = self.page.sleepers().word();
        // SAFETY: FUTEX_WAKE does not access the word.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
    }

    /// True: a thread sleeps on the page, and takes the input.
    fn hand_over(&self) -> bool {
        let sleepers = self.page.sleepers();
        let handed = self.page.receivable() > 0 && sleepers.reader().is_some_and(|r| sleepers.hand(r, None));
        if handed {
            self.note_handed();
            self.wake();
        }
        handed
    }

    /// A token is due when nobody has taken the oldest of it in time.
    fn note_handed(&self) {
        let before = self.handed.get().filter(|(_, end)| self.page.receive_taken() < *end);
        self.handed.set(before.or(Some((Instant::now(), self.page.receive_end()))));
    }

    /// Posts the token for input that nobody has taken in time.
    pub fn check_handed(&self) {
        if self.handed.get().is_some_and(|(at, _)| at.elapsed() >= Duration::from_millis(2)) {
            self.handed.set(None);
            let is_due = self.page.receivable() > 0 && !self.page.is_told(self.page.receive_end());
            if is_due && !self.hand_over() {
                self.post_token();
            }
        }
    }

    /// What the marks of the set say that the program waits for this socket in.
    fn tell(&self) -> (Told, Option<&Looker>) {
        let looker = self.page.looker().and_then(|number| self.arena.looker(number));
        let told =
            looker.filter(|_| self.page.receivable() > 0).map(|looker| self.page.tell(self.number, looker));
        (told.unwrap_or(Told::Absent), looker)
    }

    /// Makes the descriptor readable, unless a thread or a program that looks is told otherwise.
    pub fn post(&self) {
        if self.ended || self.hand_over() || self.far.is_none() {
            return;
        }
        match self.tell() {
            (Told::Marked, _) => self.note_handed(),
            (Told::Asleep(sleep), Some(looker)) if self.post_token() => looker.rang(sleep),
            (Told::Asleep(_), _) => {}
            (Told::Absent, _) => drop(self.post_token()),
        }
    }

    /// True: a message was needed.
    fn post_token(&self) -> bool {
        let Some(far) = self.far.as_ref().filter(|_| !self.ended) else { return false };
        let due = {
            self.page.read_token().post(self.page.receive_end())
                // An error, which no position shows.
                || ((self.page.error() != 0 || self.page.has_errors()) && self.page.read_token().post_anyway())
                || self.page.post_edge()
        };
        if due {
            sys::send(far.as_raw_fd(), &[], &[]);
            self.wake_sleepers();
        }
        due
    }

    /// "Port unreachable" about a datagram to `to`, for the error queue.
    pub fn queue_refusal(&self, to: Endpoint, payload: &[u8]) {
        let number = self.page.errors_end();
        if number - self.page.errors_taken() >= ERRORS_MAX {
            return;
        }
        let record = ErrorRecord {
            destination: to.address.into(),
            offender: to.address.into(),
            local: self.page.local().address.into(),
            port: to.port,
            errno: libc::ECONNREFUSED,
            kind: 3,
            code: 3,
            ttl: 64,
            ..ErrorRecord::default()
        };
        self.page.write_error(number, &record, payload);
        self.page.set_error(libc::ECONNREFUSED);
        self.page.set_errors_end(number + 1);
    }

    /// As [`Slot::post`], for what came to the hidden kernel socket.
    pub fn post_anyway(&self) {
        if let Some(far) = &self.far
            && (self.page.read_token().post_anyway() || self.page.post_edge())
        {
            sys::send(far.as_raw_fd(), &[], &[]);
            self.wake_sleepers();
        }
    }

    /// Makes the descriptor writable.
    pub fn unplug(&self) {
        if let Some(far) = &self.far
            && self.page.write_plug().clear()
        {
            let mut bytes = [0; 2000];
            match sys::receive(far.as_raw_fd(), &mut bytes) {
                // It is missing only if its sender died at the wrong moment; the program may have closed by now.
                None => {}
                Some((0, _)) => {
                    assert!(sys::is_hung_up(far.as_raw_fd()), "an empty message instead of a plug")
                }
                Some((n, _)) => assert_eq!(n, 1500, "a plug has 1500 bytes"),
            }
            self.wake_sleepers();
        }
    }

    pub fn set_flags(&self, more: u32) {
        self.page.set_flags(self.page.flags() | more);
    }

    /// Makes the descriptor stay readable, if the socket has ended, and hang up if it is over in both directions. The
    /// message that is sent before distinguishes that from the application's own close.
    pub fn show_end(&mut self) {
        let (flags, wishes) = (self.page.flags(), self.page.wishes());
        let ended = flags & (flag::RECEIVE_END | flag::DEAD) != 0 || wishes & wish::SHUT_READ != 0;
        let over = flags & flag::DEAD != 0 || ended && wishes & wish::SHUT_WRITE != 0;
        if ended && !self.listening && self.page.holder().is_some() {
            self.wake_sleepers();
        }
        let Some(far) = self.far.as_ref().filter(|_| ended && !self.listening) else { return };
        if !std::mem::replace(&mut self.ended, true) {
            sys::send(far.as_raw_fd(), &[], &[]);
            sys::shutdown(far, libc::SHUT_WR);
        }
        if over {
            self.unplug();
            sys::shutdown(far, libc::SHUT_RDWR);
        }
        self.wake_sleepers();
    }

    /// Answers a query that came whole, with its length before it.
    pub fn answer_query(&self) {
        let mut query = vec![0; (self.page.send_end() - self.page.send_released()) as usize];
        self.page.read_send(self.page.send_released(), &mut query);
        let Some(answer) = query.get(2..).and_then(super::dns::answer) else { return };
        self.page.set_send_released(self.page.send_end());
        let framed = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
        let end = self.page.receive_end();
        self.page.write_receive(end, &framed);
        self.page.set_receive_end(end + framed.len() as u64);
        self.post();
    }

    pub fn receive_room(&self) -> usize {
        let used = self.page.receive_end().saturating_sub(self.page.receive_taken()) as usize;
        self.page.receive_len().saturating_sub(used)
    }
}
