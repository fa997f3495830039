//! Keys that the application gave its transport, in its page.

use super::Page;
use super::words::word;
use eft_base::WireAddress;
use eft_channel::socket::{COOKIE_KEYS_MAX, Opt, SignatureKey, signature_keys};

impl Page {
    /// See [`SocketPage::cookie_keys`](eft_channel::socket::SocketPage::cookie_keys); none in a page that the application does not
    /// use yet.
    pub fn cookie_keys(&self) -> ([u8; COOKIE_KEYS_MAX], usize) {
        if self.is_fresh() { ([0; COOKIE_KEYS_MAX], 0) } else { self.0.page.cookie_keys() }
    }

    /// The key that signs what goes to and comes from this peer: the one with the longest prefix. `listens`: there may be more keys,
    /// where others have bytes to send.
    pub fn signature_key(&self, peer: WireAddress, listens: bool) -> Option<SignatureKey> {
        if self.0.staged.get() & word::SELDOM != 0
            && let Some(key) = self.0.seldom.borrow().signature_key
        {
            return Some(key).filter(|key| key.is_for(peer));
        }
        let count = signature_keys::count(self.option(Opt::SignatureKeys));
        let keys = (0..count.min(self.0.page.signature_keys_max(listens)))
            .map(|number| self.0.page.signature_key(number));
        keys.filter(|key| key.is_for(peer)).max_by_key(|key| key.prefix_len)
    }

    /// Gives the socket this key and no other.
    pub fn set_signature_key(&self, key: &SignatureKey) {
        self.seldom(|s| s.signature_key = Some(*key));
        self.set_option(Opt::SignatureKeys, signature_keys::changed(0, 1));
    }
}
