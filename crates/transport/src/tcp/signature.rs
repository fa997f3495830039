//! Signatures of segments: by an MD5 digest over its addresses, its header, its data, and a key that both ends were told (RFC 2385),
//! or by TCP-AO ([`super::ao`]). Their use is in [`super::signing`].

use super::ao::AoSigner;
use super::ao_keys::AoKeys;
use super::covered::Covered;
use super::options::{AUTHENTICATION_LEN, Builder, SIGNATURE_LEN, Signature};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use eft_channel::socket::SignatureKey;
use md5::{Digest as _, Md5};

/// What a connection knows of its keys.
#[derive(Default)]
pub(crate) struct Signing {
    pub key: Option<Rc<SignatureKey>>,
    pub ao: Option<Box<AoKeys>>,
    /// [`Opt::SignatureKeys`](eft_channel::socket::Opt) when they were chosen.
    pub seen: u32,
}

/// What signs a segment.
#[derive(Clone)]
pub(super) enum Signer {
    Md5(Rc<SignatureKey>),
    Ao(AoSigner),
}

/// What signs an outgoing segment.
pub(super) struct Signed {
    pub signer: Signer,
    /// The segment's payload.
    pub data: Vec<u8>,
}

impl Signed {
    /// For a segment without payload.
    pub fn bare(signer: Signer) -> Signed {
        Signed { signer, data: Vec::new() }
    }

    /// Bytes of options that it takes.
    pub fn len(&self) -> usize {
        match self.signer {
            Signer::Md5(_) => SIGNATURE_LEN,
            Signer::Ao(_) => AUTHENTICATION_LEN,
        }
    }

    /// Writes the option in front of the others, which are in `options` already.
    pub fn sign(&self, covered: &Covered, options: &mut [u8]) {
        match &self.signer {
            Signer::Md5(key) => {
                let digest = digest(key, covered);
                options[..SIGNATURE_LEN].copy_from_slice(&Builder::signature(&digest));
            }
            Signer::Ao(by) => {
                let option = |code| Builder::authentication(by.key_id, by.next_id, by.mac_len, code);
                options[..AUTHENTICATION_LEN].copy_from_slice(&option(&[0; _]));
                let code = by.key.code(covered, by.extension, options, by.covers_options);
                options[..AUTHENTICATION_LEN].copy_from_slice(&option(&code));
            }
        }
    }
}

/// The digest of a segment (RFC 2385 §2.0).
pub(super) fn digest(key: &SignatureKey, covered: &Covered) -> Signature {
    let mut sum = Md5::new();
    covered.pseudo_header(|bytes| sum.update(bytes));
    sum.update(covered.header);
    sum.update(covered.data);
    sum.update(key.bytes());
    sum.finalize().into()
}

/// Whether two digests are equal, in the same time whichever byte differs first.
pub(super) fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | a ^ b) == 0
}

#[cfg(test)]
mod tests;
