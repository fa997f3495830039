//! An application's page, as its transport uses it within a turn.
//!
//! Words for the application are staged here, and written when the turn is committed ([`Stage::commit`]): nothing of a turn that
//! does not end is ever seen. Bytes of a ring beyond its published end are not visible yet and are written at once.
//!
//! A transport reads its own words here and not in the page, which every program of the domain can write. A page with
//! a staged reset reads as if it were reset already: its content is that of the slot's last user.

mod keys;
mod queues;
mod room;
mod words;

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use eft_base::{ComponentId, Endpoint, PacketRef, PoolId, SocketId};
use eft_channel::socket::{Opt, SocketInfo, SocketPage, SocketStatistics};
use eft_channel::{Copied, Segment};

use words::{Seldom, word};

/// Bytes of a staged record.
pub(crate) const RECORD_MAX: usize = 64;

pub(crate) use keys::Keys;

struct Inner {
    page: SocketPage,
    socket: SocketId,
    /// Index of the socket's block.
    owner: u32,
    /// A weak reference: the stage owns the pages that wait.
    stage: Weak<RefCell<Vec<Page>>>,
    staged: Cell<u32>,
    receive_end: Cell<u64>,
    send_released: Cell<u64>,
    send_sent: Cell<u64>,
    send_room: Cell<u32>,
    errors_end: Cell<u64>,
    received_at: Cell<u64>,
    info_answered: Cell<u32>,
    receive_notify: Cell<u64>,
    urgent: Cell<u64>,
    flags: Cell<u32>,
    seldom: RefCell<Seldom>,
}

/// The page of one socket.
#[derive(Clone)]
pub(crate) struct Page(Rc<Inner>);

/// The pages with words that wait for the commit.
#[derive(Default)]
pub(crate) struct Stage(Rc<RefCell<Vec<Page>>>);

impl Stage {
    /// Writes what was staged. `late` is called with the owner of each page whose application had already read past
    /// the notify position.
    pub fn commit(&self, mut late: impl FnMut(u32)) {
        let mut pages = self.0.borrow_mut();
        if pages.is_empty() {
            return;
        }
        // A listener's ring may name a slot that is reset in the same turn: the reset must be written first.
        pages.iter().for_each(Page::prepare);
        for page in pages.drain(..) {
            if page.publish() {
                late(page.0.owner);
            }
        }
    }

    /// The incarnation that a slot is about to get.
    fn pending_incarnation(&self, socket: SocketId) -> Option<u32> {
        let pages = self.0.borrow();
        let of_slot = pages.iter().filter(|p| p.0.socket == socket);
        of_slot.filter_map(|p| p.0.seldom.borrow().reset).map(|(_, incarnation)| incarnation).next_back()
    }
}

impl Page {
    /// The page of `socket`, whose block is `owner`, with the words last published there.
    pub fn new(
        stage: &Stage,
        page: SocketPage,
        socket: SocketId,
        owner: u32,
        (receive_end, send_released): (u64, u64),
    ) -> Page {
        Page(Rc::new(Inner {
            // The value from before a crash, if the socket is from before a crash. A wrong one hurts its own domain
            // alone.
            errors_end: Cell::new(page.errors_end()),
            info_answered: Cell::new(page.info_answered()),
            send_room: Cell::new(page.send_room_set()),
            received_at: Cell::new(0),
            page,
            socket,
            owner,
            stage: Rc::downgrade(&stage.0),
            staged: Cell::new(0),
            receive_end: Cell::new(receive_end),
            send_released: Cell::new(send_released),
            send_sent: Cell::new(send_released),
            receive_notify: Cell::new(0),
            urgent: Cell::new(0),
            flags: Cell::new(0),
            seldom: RefCell::default(),
        }))
    }

    fn mark(&self, words: u32) {
        let before = self.0.staged.get();
        self.0.staged.set(before | words);
        if before == 0
            && let Some(stage) = self.0.stage.upgrade()
        {
            stage.borrow_mut().push(self.clone());
        }
    }

    fn seldom(&self, change: impl FnOnce(&mut Seldom)) {
        change(&mut self.0.seldom.borrow_mut());
        self.mark(word::SELDOM);
    }

    /// Whether the application does not use the page yet.
    fn is_fresh(&self) -> bool {
        self.0.staged.get() & word::SELDOM != 0 && self.0.seldom.borrow().reset.is_some()
    }

    /// Writes the words that no application reads before another word tells it to.
    fn prepare(&self) {
        if self.0.staged.get() & word::SELDOM == 0 {
            return;
        }
        let page = &self.0.page;
        let seldom = core::mem::take(&mut *self.0.seldom.borrow_mut());
        if let Some((owner, incarnation)) = seldom.reset {
            page.reset_as(owner, incarnation);
        }
        if seldom.freed {
            page.set_free();
        }
        seldom.signature_keys.iter().enumerate().for_each(|(n, key)| page.write_signature_key(n, key));
        seldom.options.iter().for_each(|(option, value)| page.set_option(*option, *value));
        seldom.local.inspect(|e| page.set_local(*e));
        seldom.remote.inspect(|e| page.set_remote(*e));
        seldom.info.inspect(|info| page.set_info(info));
        seldom.statistics.inspect(|statistics| page.set_statistics(statistics));
        seldom.authentication.inspect(|status| page.set_authentication_status(status));
        seldom.error.inspect(|errno| page.set_error(*errno));
        seldom.records.iter().for_each(|(at, record)| page.write_receive(*at, record));
    }

    /// Writes the words that applications watch. True if the application has already passed the notify position.
    fn publish(&self) -> bool {
        let staged = self.0.staged.replace(0);
        let page = &self.0.page;
        if staged & word::RECEIVED_AT != 0 {
            page.set_received_at(self.0.received_at.get());
        }
        // Who sees the byte sees that it is urgent.
        if staged & word::URGENT != 0 {
            page.set_urgent(self.0.urgent.get());
        }
        if staged & word::RECEIVE_END != 0 {
            page.set_receive_end(self.0.receive_end.get());
        }
        if staged & word::SEND_RELEASED != 0 {
            page.set_send_released(self.0.send_released.get());
        }
        if staged & word::SEND_SENT != 0 {
            page.set_send_sent(self.0.send_sent.get());
        }
        if staged & word::SEND_ROOM != 0 {
            page.set_send_room(self.0.send_room.get());
        }
        if staged & word::ERRORS_END != 0 {
            page.set_errors_end(self.0.errors_end.get());
        }
        if staged & word::INFO_ANSWERED != 0 {
            page.set_info_answered(self.0.info_answered.get());
        }
        if staged & word::FLAGS != 0 {
            page.set_flags(self.0.flags.get());
        }
        let notify = self.0.receive_notify.get();
        match staged & (word::RECEIVE_NOTIFY | word::ARMED) {
            0 => false,
            word::RECEIVE_NOTIFY => {
                page.set_receive_notify(notify);
                false
            }
            _ => page.arm_receive_notify(notify) >= notify,
        }
    }

    // What the application wrote.

    pub fn send_end(&self) -> u64 {
        if self.is_fresh() { 0 } else { self.0.page.send_end() }
    }

    pub fn receive_taken(&self) -> u64 {
        if self.is_fresh() { 0 } else { self.0.page.receive_taken() }
    }

    pub fn wishes(&self) -> u32 {
        if self.is_fresh() { 0 } else { self.0.page.wishes() }
    }

    /// Whether the application waits for fresh numbers.
    pub fn is_info_asked(&self) -> bool {
        !self.is_fresh() && self.0.page.info_asked() != self.0.info_answered.get()
    }

    pub fn is_plugged(&self) -> bool {
        !self.is_fresh() && self.0.page.is_plugged()
    }

    #[inline]
    pub fn option(&self, option: Opt) -> u32 {
        let staged = if self.0.staged.get() & word::SELDOM != 0 { self.staged_option(option) } else { None };
        staged.unwrap_or_else(|| self.0.page.option(option))
    }

    #[cold]
    fn staged_option(&self, option: Opt) -> Option<u32> {
        let seldom = self.0.seldom.borrow();
        let set = seldom.options.iter().rev().find(|(o, _)| *o == option).map(|(_, value)| *value);
        set.or_else(|| seldom.reset.map(|_| 0))
    }

    /// The end of a record, by its number; see [`SocketPage::record`].
    pub fn record(&self, number: u32) -> u32 {
        self.0.page.record(number)
    }

    // Its rings.

    pub fn receive_len(&self) -> usize {
        self.0.page.receive_len()
    }

    /// Bytes that the application may take.
    pub fn receivable(&self) -> usize {
        let unread = self.0.receive_end.get().saturating_sub(self.receive_taken()) as usize;
        unread.min(self.receive_len())
    }

    pub fn read_send(&self, offset: u64, to: &mut [u8]) {
        self.0.page.read_send(offset, to)
    }

    pub fn send_refs(&self, pool: PoolId, slot: u32, offset: u64, len: usize) -> [PacketRef; 2] {
        self.0.page.send_refs(pool, slot, offset, len)
    }

    /// See [`SocketPage::fill_receive_faithfully`]. At once: beyond the published end.
    pub fn fill_receive(&self, offset: u64, from: &Segment, from_offset: usize, len: usize) -> Copied {
        self.0.page.fill_receive_faithfully(offset, from, from_offset, len)
    }

    /// As [`Page::fill_receive`], from plain bytes.
    pub fn write_receive(&self, offset: u64, bytes: &[u8]) {
        self.0.page.write_receive(offset, bytes)
    }

    // What we tell it.

    /// Resets the slot for a new socket. Returns its incarnation.
    pub fn reset(&self, owner: ComponentId) -> u32 {
        let pending = self.0.stage.upgrade().and_then(|s| Stage(s).pending_incarnation(self.0.socket));
        let incarnation = pending.unwrap_or_else(|| self.0.page.incarnation()).wrapping_add(1);
        self.reset_as(owner, incarnation);
        incarnation
    }

    /// For a socket from before a crash: writes a reset that the predecessor decided but did not write. True if there
    /// was one: then the page is as empty as that of a new socket.
    pub fn resume(&self, owner: ComponentId, incarnation: u32) -> bool {
        let lost = self.0.page.incarnation() != incarnation;
        if lost {
            self.reset_as(owner, incarnation);
        }
        lost
    }

    fn reset_as(&self, owner: ComponentId, incarnation: u32) {
        self.0.receive_end.set(0);
        self.0.send_released.set(0);
        self.0.send_sent.set(0);
        self.0.send_room.set(0);
        self.0.errors_end.set(0);
        self.0.info_answered.set(0);
        self.0.urgent.set(0);
        self.0.staged.set(self.0.staged.get() & word::SELDOM);
        self.seldom(|s| *s = Seldom { reset: Some((owner, incarnation)), ..Seldom::default() });
    }

    pub fn set_free(&self) {
        self.seldom(|s| s.freed = true);
    }

    pub fn set_option(&self, option: Opt, value: u32) {
        self.seldom(|s| s.options.push((option, value)));
    }

    pub fn set_local(&self, e: Endpoint) {
        self.seldom(|s| s.local = Some(e));
    }

    pub fn set_remote(&self, e: Endpoint) {
        self.seldom(|s| s.remote = Some(e));
    }

    pub fn set_info(&self, info: &SocketInfo) {
        self.seldom(|s| s.info = Some(*info));
    }

    pub fn set_statistics(&self, statistics: &SocketStatistics) {
        self.seldom(|s| s.statistics = Some(*statistics));
    }

    /// The numbers of this turn answer what the application has asked.
    pub fn answer_info(&self) {
        if self.is_info_asked() {
            self.0.info_answered.set(self.0.page.info_asked());
            self.mark(word::INFO_ANSWERED);
        }
    }

    /// The statistics that a predecessor published for this socket. The application can write them: they serve only as
    /// start values of counts.
    pub fn told_statistics(&self) -> Option<SocketStatistics> {
        if self.is_fresh() { None } else { self.0.page.statistics() }
    }

    pub fn set_error(&self, errno: i32) {
        self.seldom(|s| s.error = Some(errno));
    }

    /// Puts a record into the receive ring.
    pub fn put_record(&self, offset: u64, record: [u8; RECORD_MAX]) {
        self.seldom(|s| s.records.push((offset, record)));
    }

    pub fn set_receive_end(&self, end: u64) {
        self.0.receive_end.set(end);
        self.mark(word::RECEIVE_END);
    }

    pub fn set_send_released(&self, released: u64) {
        self.0.send_released.set(released);
        self.mark(word::SEND_RELEASED);
    }

    pub fn set_send_sent(&self, sent: u64) {
        self.0.send_sent.set(sent);
        self.mark(word::SEND_SENT);
    }

    pub fn set_flags(&self, flags: u32) {
        self.0.flags.set(flags);
        self.mark(word::FLAGS);
    }

    pub fn set_receive_notify(&self, position: u64) {
        self.0.receive_notify.set(position);
        self.0.staged.set(self.0.staged.get() & !word::ARMED);
        self.mark(word::RECEIVE_NOTIFY);
    }

    /// As [`Page::set_receive_notify`]; the commit checks whether the application has read that far already.
    pub fn arm_receive_notify(&self, position: u64) {
        self.0.receive_notify.set(position);
        self.mark(word::RECEIVE_NOTIFY | word::ARMED);
    }
}

#[cfg(test)]
mod tests;
