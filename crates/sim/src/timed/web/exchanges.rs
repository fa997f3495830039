//! How long requests and answers are. Nobody reads a request, so the program knows it from who wrote it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::trace::Exchange;

/// By the client's port: what was asked and has not come.
pub type Asked = Rc<RefCell<BTreeMap<u16, VecDeque<Exchange>>>>;

pub enum Exchanges {
    /// All are equal.
    Same(Exchange),
    Asked(Asked),
}

impl Exchanges {
    /// The next request of a connection, if so many bytes have it whole.
    pub fn take(&self, port: u16, bytes: u64) -> Option<Exchange> {
        let is_whole = |asked: &mut Exchange| asked.request_bytes <= bytes;
        match self {
            Self::Same(exchange) => Some(*exchange).filter(|asked| asked.request_bytes <= bytes),
            Self::Asked(asked) => asked.borrow_mut().get_mut(&port)?.pop_front_if(is_whole),
        }
    }
}
