//! Where a recorder writes.

use crate::last_words::LastWords;
use crate::recording::{End, Entry, Recording};
use std::cell::RefCell;
use std::rc::Rc;

/// A recording that is being made.
pub trait Log {
    fn note(&mut self, entry: Entry);

    /// Notes the call in which the server dies. A log that outlives the process allocates nothing here and takes no lock: this
    /// may be the handler of a fatal signal.
    fn note_last(&mut self, words: &LastWords);

    /// Whether nothing more is recorded.
    fn is_full(&self) -> bool;
}

impl Log for Recording {
    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Pool(id, cut) => self.pools.push((self.calls.len(), id, cut)),
            Entry::Call(call) => {
                self.count(&call);
                self.calls.push(call)
            }
            Entry::End(end) => self.end = end,
            Entry::Last(last) => self.last = Some(last),
        }
    }

    fn note_last(&mut self, words: &LastWords) {
        let bytes = postcard::to_allocvec(words).expect("a memory has room");
        self.note(postcard::from_bytes(&bytes).expect("it is written as it is read"));
        if let LastWords::Call(_, cause) = words {
            self.end = End::InCall(*cause);
        }
    }

    fn is_full(&self) -> bool {
        Recording::is_full(self)
    }
}

impl<L: Log> Log for Rc<RefCell<L>> {
    fn note(&mut self, entry: Entry) {
        self.borrow_mut().note(entry);
    }

    fn note_last(&mut self, words: &LastWords) {
        self.borrow_mut().note_last(words);
    }

    fn is_full(&self) -> bool {
        self.borrow().is_full()
    }
}
