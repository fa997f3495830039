//! Connections that stand for themselves: accepted, and without a descriptor of their own.

use super::SocketPage;
use crate::socket::wish;

/// Distinguishes a holder from an inode, in whose place it stands.
const HOLDER: u64 = 1 << 63;

impl SocketPage {
    /// Application: the process with this connection to sockets has taken the connection and gives it no descriptor yet.
    pub fn hold(&self, connection: u64) {
        self.set_inode(HOLDER | connection);
        self.add_wish(wish::HELD);
    }

    /// The connection to sockets of the process that holds it.
    pub fn holder(&self) -> Option<u64> {
        self.is_held().then(|| self.inode()).filter(|inode| inode & HOLDER != 0).map(|inode| inode & !HOLDER)
    }

    /// Application: it has got a descriptor after all, with this inode. At no moment is a holder's number its inode.
    pub fn end_hold(&self, inode: u64) {
        self.set_inode(inode);
        self.drop_wish(wish::HELD);
    }

    /// Whether a process holds it, as far as its page says.
    fn is_held(&self) -> bool {
        self.wishes() & wish::HELD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Geometry;
    use super::*;
    use crate::access::AccessObserver;
    use crate::segment::Segment;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use std::sync::Mutex;

    /// What others would see at each write: whether the connection is held, and by whom.
    struct Watcher(SocketPage, Mutex<Vec<(bool, Option<u64>)>>);

    impl AccessObserver for Watcher {
        fn read(&self, _: usize, _: &mut [u8]) {}

        fn wrote(&self, _: usize, _: &[u8]) {
            self.1.lock().unwrap().push((self.0.is_held(), self.0.holder()));
        }
    }

    #[test]
    fn no_moment_shows_a_holder_as_an_inode() {
        let geometry = Geometry { slots: 1, send_len: 4096, receive_len: 4096 };
        let page = SocketPage::alone(Segment::heap(geometry.stride()), geometry).unwrap();
        page.hold(7);
        let watcher = Arc::new(Watcher(page.clone(), Mutex::default()));
        let watched = SocketPage { observer: Some(watcher.clone()), ..page };
        watched.end_hold(12345);
        assert_eq!(*watcher.1.lock().unwrap(), [(true, None)], "it has its inode before it is held no more");
        assert!(!watched.is_held());
    }

    #[test]
    fn a_holder_is_named_until_there_is_a_descriptor() {
        let geometry = Geometry { slots: 1, send_len: 4096, receive_len: 4096 };
        let page = SocketPage::alone(Segment::heap(geometry.stride()), geometry).unwrap();
        assert_eq!((page.holder(), page.is_held()), (None, false));
        page.hold(1 << 32 | 7);
        assert_eq!((page.holder(), page.is_held()), (Some(1 << 32 | 7), true));
        page.end_hold(12345);
        assert_eq!((page.holder(), page.is_held(), page.inode()), (None, false, 12345));
        // An inode is no holder, whatever the program says.
        page.add_wish(wish::HELD);
        assert_eq!(page.holder(), None);
    }
}
