//! Keys that the application gave its transport, in its page, and what they have done.

use super::Page;
use super::words::word;
use alloc::vec::Vec;
use eft_base::WireAddress;
use eft_channel::socket::signature_keys::FIRST_KEYS;
use eft_channel::socket::{
    AuthenticationStatus, AuthenticationWishes, COOKIE_KEYS_MAX, Opt, SignatureKey, signature_keys,
};

/// The keys for one peer.
#[derive(Clone, Debug, Default)]
pub(crate) enum Keys {
    #[default]
    None,
    /// RFC 2385: the one with the longest prefix.
    Md5(SignatureKey),
    /// TCP-AO (RFC 5925): all of them.
    Ao(Vec<SignatureKey>),
}

impl Keys {
    pub fn are_none(&self) -> bool {
        matches!(self, Keys::None)
    }

    /// Whether they are of TCP-AO.
    pub fn are_ao(&self) -> bool {
        matches!(self, Keys::Ao(_))
    }
}

impl Page {
    /// See [`SocketPage::cookie_keys`](eft_channel::socket::SocketPage::cookie_keys); none in a page that the application does not
    /// use yet.
    pub fn cookie_keys(&self) -> ([u8; COOKIE_KEYS_MAX], usize) {
        if self.is_fresh() { ([0; COOKIE_KEYS_MAX], 0) } else { self.0.page.cookie_keys() }
    }

    /// The keys that sign what goes to and comes from this peer. Those of TCP-AO come before one of RFC 2385. `listens`: there may
    /// be more keys, where others have bytes to send.
    pub fn keys_for(&self, peer: WireAddress, listens: bool) -> Keys {
        let count = signature_keys::count(self.option(Opt::SignatureKeys));
        if count == 0 {
            return Keys::None;
        }
        let mut keys = self.staged_keys().unwrap_or_else(|| {
            let count = count.min(self.0.page.signature_keys_max(listens));
            (0..count).map(|number| self.0.page.signature_key(number)).collect()
        });
        keys.retain(|key| key.is_for(peer));
        let (ao, md5): (Vec<_>, Vec<_>) = keys.into_iter().partition(SignatureKey::is_ao);
        match md5.into_iter().max_by_key(|key| key.prefix_len) {
            _ if !ao.is_empty() => Keys::Ao(ao),
            Some(key) => Keys::Md5(key),
            None => Keys::None,
        }
    }

    /// Those that were given to the socket in this turn.
    fn staged_keys(&self) -> Option<Vec<SignatureKey>> {
        if self.0.staged.get() & word::SELDOM == 0 {
            return None;
        }
        let keys = &self.0.seldom.borrow().signature_keys;
        (!keys.is_empty()).then(|| keys.clone())
    }

    /// Gives the socket these keys and no others, as many as there is room for.
    pub fn set_signature_keys(&self, mut keys: Vec<SignatureKey>) {
        keys.truncate(FIRST_KEYS);
        self.set_option(Opt::SignatureKeys, signature_keys::changed(0, keys.len()));
        self.seldom(|s| s.signature_keys = keys);
    }

    /// What the application wishes of TCP-AO.
    pub fn authentication_wishes(&self) -> AuthenticationWishes {
        AuthenticationWishes::from_word(self.option(Opt::Authentication))
    }

    pub fn set_authentication_wishes(&self, wishes: &AuthenticationWishes) {
        self.set_option(Opt::Authentication, wishes.word());
    }

    pub fn set_authentication_status(&self, status: &AuthenticationStatus) {
        self.seldom(|s| s.authentication = Some(*status));
    }

    /// What a predecessor published for this socket. The application can write it: it serves only as start values of counts.
    pub fn told_authentication(&self) -> Option<AuthenticationStatus> {
        if self.is_fresh() { None } else { self.0.page.authentication_status() }
    }
}
