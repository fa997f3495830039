//! What waits in a page for the application besides bytes: for MSG_ERRQUEUE, and where urgent data lie.

use super::Page;
use super::words::word;
use eft_channel::socket::{ERRORS_MAX, ErrorRecord, RECORD_STAMPS_MAX, STAMPS_MAX, Stamp};

impl Page {
    /// The count of requests for times, and one of them; see [`SocketPage::stamp_request`].
    pub fn stamp_requests(&self) -> u32 {
        if self.is_fresh() { 0 } else { self.0.page.stamp_requests() }
    }

    pub fn stamp_request(&self, number: u32) -> (u32, u32) {
        self.0.page.stamp_request(number)
    }

    /// Puts an error into the queue. False if the queue is full.
    pub fn put_error(&self, record: &ErrorRecord, quote: &[u8]) -> bool {
        let end = self.0.errors_end.get();
        let taken = if self.is_fresh() { 0 } else { self.0.page.errors_taken() };
        if end.wrapping_sub(taken) >= ERRORS_MAX {
            return false;
        }
        self.0.page.write_error(end, record, quote);
        self.0.errors_end.set(end.wrapping_add(1));
        self.mark(word::ERRORS_END);
        true
    }

    /// Puts times of datagrams into the queue, and returns how many: all, or as many as one record takes. 0: the queue is full.
    pub fn put_stamps(&self, stamps: &[Stamp]) -> usize {
        let end = self.0.errors_end.get();
        let taken = if self.is_fresh() { 0 } else { self.0.page.errors_taken() };
        if end.wrapping_sub(taken) >= ERRORS_MAX {
            return 0;
        }
        let put = stamps.len().min(RECORD_STAMPS_MAX);
        self.0.page.write_stamps(end, &stamps[..put]);
        self.0.errors_end.set(end.wrapping_add(1));
        self.mark(word::ERRORS_END);
        put
    }

    /// Puts the error that ended a stream's attempt to connect into its queue, which has room for one.
    pub fn put_refusal(&self, record: &ErrorRecord, quote: &[u8]) {
        let end = self.0.errors_end.get();
        let taken = if self.is_fresh() { 0 } else { self.0.page.errors_taken() };
        if end == taken {
            self.0.page.write_refusal(record, quote);
            self.0.errors_end.set(end.wrapping_add(1));
            self.mark(word::ERRORS_END);
        }
    }

    /// Puts a time of a stream's send into its queue. False if the queue is full.
    pub fn put_stamp(&self, stamp: &Stamp) -> bool {
        let end = self.0.errors_end.get();
        let taken = if self.is_fresh() { 0 } else { self.0.page.errors_taken() };
        if end.wrapping_sub(taken) >= STAMPS_MAX {
            return false;
        }
        self.0.page.write_stamp(end, stamp);
        self.0.errors_end.set(end.wrapping_add(1));
        self.mark(word::ERRORS_END);
        true
    }

    /// When the bytes came that are published in this turn.
    pub fn set_received_at(&self, at: u64) {
        self.0.received_at.set(at);
        self.mark(word::RECEIVED_AT);
    }

    /// Where the application's last urgent byte ends; see [`SocketPage::send_urgent`].
    pub fn send_urgent(&self) -> u64 {
        if self.is_fresh() { 0 } else { self.0.page.send_urgent() }
    }

    /// The peer's urgent byte. False if the application knows already.
    pub fn set_urgent(&self, word: u64) -> bool {
        let news = self.0.urgent.replace(word) != word;
        if news {
            self.mark(word::URGENT);
        }
        news
    }
}
