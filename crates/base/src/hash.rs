//! Keyed hashing: peers choose what we hash, so the key is secret (SipHash-1-3).

use core::hash::{BuildHasher, Hash, Hasher};
use siphasher::sip::SipHasher13;
pub use siphasher::sip::SipHasher24;

/// A secret key of two words.
#[derive(Clone, Copy)]
pub struct Key(pub [u64; 2]);

impl BuildHasher for Key {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

impl Key {
    /// The keyed hash of a value; `domain` keeps different uses of one key apart.
    pub fn hash(&self, domain: u8, value: &impl Hash) -> u64 {
        let mut h = self.build_hasher();
        h.write_u8(domain);
        value.hash(&mut h);
        h.finish()
    }
}

/// A hash map that an adversary cannot degrade.
pub type Map<K, V> = hashbrown::HashMap<K, V, Key>;
