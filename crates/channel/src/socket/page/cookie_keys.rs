//! TCP_FASTOPEN_KEY, between the words that the application publishes.

use super::{RECEIVE_TAKEN, SocketPage};

const LEN: usize = 80;
const KEYS: usize = 84;
/// Most bytes of TCP_FASTOPEN_KEY: two keys.
pub const COOKIE_KEYS_MAX: usize = 32;
const _: () = assert!(KEYS + COOKIE_KEYS_MAX <= RECEIVE_TAKEN);

impl SocketPage {
    /// TCP_FASTOPEN_KEY of a listener, and how many of the bytes are valid; 0: it has no key of its own. While the
    /// application changes it, a mixture of both may be read.
    pub fn cookie_keys(&self) -> ([u8; COOKIE_KEYS_MAX], usize) {
        let len = self.load_u32(LEN) as usize;
        let mut bytes = [0; COOKIE_KEYS_MAX];
        self.read_bytes(KEYS, &mut bytes);
        (bytes, len.min(COOKIE_KEYS_MAX))
    }

    /// Sets TCP_FASTOPEN_KEY: at most [`COOKIE_KEYS_MAX`] bytes.
    pub fn set_cookie_keys(&self, keys: &[u8]) {
        self.write_bytes(KEYS, keys);
        self.store_u32(LEN, keys.len() as u32);
    }
}
