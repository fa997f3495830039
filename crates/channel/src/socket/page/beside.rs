//! Listeners of one descriptor: a port whose connections are spread over several transports has one at each.
//!
//! The program's socket is the first. The others have pages and rings of their own, which it reads, too; each page names the next.

use super::{REMOTE, SocketPage, option_offset, wish};
use crate::socket::{Opt, signature_keys};

const BESIDE: usize = 364;
/// A page's inode is that of its descriptor; in those of further listeners this bit is set, so that who looks for the descriptor's
/// socket finds the first.
const FURTHER: u64 = 1 << 63;
const _: () = assert!(BESIDE >= REMOTE + 18 && BESIDE + 4 <= super::INODE);

impl SocketPage {
    /// The slot of the next listener of this descriptor.
    #[inline]
    pub fn beside(&self) -> Option<u32> {
        self.load_u32(BESIDE).checked_sub(1)
    }

    /// sockets: names the next listener.
    pub fn set_beside(&self, slot: Option<u32>) {
        self.store_u32(BESIDE, slot.map_or(0, |slot| slot + 1));
    }

    /// Whether this is a further listener of the descriptor of `first`.
    pub fn is_beside(&self, first: &SocketPage) -> bool {
        self.inode() == first.inode() | FURTHER && !first.is_further()
    }

    /// Whether its descriptor has another listener before it.
    pub fn is_further(&self) -> bool {
        self.inode() & FURTHER != 0
    }

    /// sockets: makes this a further listener of the descriptor of `first`.
    pub fn join(&self, first: &SocketPage) {
        self.set_inode(first.inode() | FURTHER);
    }

    /// Takes over what the application has chosen for another one of its listeners: options, keys and wishes.
    pub fn agree_with(&self, first: &SocketPage) {
        let keys = signature_keys::count(first.option(Opt::SignatureKeys));
        let room = self.signature_keys_max(true).min(first.signature_keys_max(true));
        (0..keys.min(room)).for_each(|n| self.write_signature_key(n, &first.signature_key(n)));
        let (cookie_keys, len) = first.cookie_keys();
        self.set_cookie_keys(&cookie_keys[..len]);
        for word in 0..=Opt::LAST as usize {
            self.store_u32(option_offset(word), first.load_u32(option_offset(word)));
        }
        self.add_wish(first.wishes() & (wish::EDGES | wish::SHUT_READ));
    }
}

#[cfg(test)]
mod tests;
