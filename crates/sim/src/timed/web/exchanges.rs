//! How long requests and answers are. Nobody reads a request, so the program knows it from who wrote it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::trace::Exchange;

/// By the client's port: what was asked and has not come. Clients and the program have the same.
#[derive(Clone, Debug, Default)]
pub struct Exchanges(Rc<RefCell<BTreeMap<u16, VecDeque<Exchange>>>>);

impl Exchanges {
    pub fn ask(&self, port: u16, exchange: Exchange) {
        self.0.borrow_mut().entry(port).or_default().push_back(exchange);
    }

    /// The next request of a connection, if so many bytes have it whole.
    pub fn take(&self, port: u16, bytes: u64) -> Option<Exchange> {
        let is_whole = |asked: &mut Exchange| asked.request_bytes <= bytes;
        self.0.borrow_mut().get_mut(&port)?.pop_front_if(is_whole)
    }

    /// The connection has ended.
    pub fn forget(&self, port: u16) {
        self.0.borrow_mut().remove(&port);
    }
}
