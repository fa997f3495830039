//! Messages to queue lines and back.

use eft_base::{DomainId, MacAddress, PacketRef, PoolId, RequestId, SocketId, WireAddress};

/// A message as it lies in a queue line: seven little-endian words.
pub type Encoded = [u64; 7];

/// Bytes that fit.
pub const ENCODED_LEN: usize = 56;

/// Writes fields one after another.
pub struct Writer {
    bytes: [u8; ENCODED_LEN],
    at: usize,
}

impl Writer {
    pub fn new(tag: u8) -> Writer {
        let mut bytes = [0; ENCODED_LEN];
        bytes[0] = tag;
        Writer { bytes, at: 1 }
    }

    #[inline]
    pub fn put(&mut self, b: &[u8]) {
        self.bytes[self.at..self.at + b.len()].copy_from_slice(b);
        self.at += b.len();
    }

    #[inline]
    pub fn finish(self) -> Encoded {
        core::array::from_fn(|i| {
            let mut w = [0; 8];
            w.copy_from_slice(&self.bytes[i * 8..i * 8 + 8]);
            u64::from_le_bytes(w)
        })
    }
}

/// Reads fields one after another; a message that is too short for its fields is `None`.
pub struct Reader {
    bytes: [u8; ENCODED_LEN],
    at: usize,
}

impl Reader {
    #[inline]
    pub fn new(line: &Encoded) -> (u8, Reader) {
        let mut bytes = [0; ENCODED_LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip(line) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        (bytes[0], Reader { bytes, at: 1 })
    }

    #[inline]
    pub fn get<const N: usize>(&mut self) -> Option<[u8; N]> {
        let slice = self.bytes.get(self.at..self.at + N)?;
        self.at += N;
        slice.try_into().ok()
    }
}

/// A value that can be part of a message.
pub trait Field: Sized {
    fn put(&self, w: &mut Writer);
    fn get(r: &mut Reader) -> Option<Self>;
}

macro_rules! integer_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            #[inline]
            fn put(&self, w: &mut Writer) {
                w.put(&self.to_le_bytes())
            }
            #[inline]
            fn get(r: &mut Reader) -> Option<Self> {
                r.get().map(<$t>::from_le_bytes)
            }
        }
    )*};
}
integer_field!(u8, u16, u32, u64, i32);

impl Field for bool {
    fn put(&self, w: &mut Writer) {
        w.put(&[*self as u8])
    }
    fn get(r: &mut Reader) -> Option<Self> {
        match r.get::<1>()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

macro_rules! struct_field {
    ($($t:ty { $($f:tt),* })*) => {$(
        impl Field for $t {
            #[inline]
            fn put(&self, w: &mut Writer) {
                $(self.$f.put(w);)*
            }
            #[inline]
            fn get(r: &mut Reader) -> Option<Self> {
                Some(Self { $($f: Field::get(r)?),* })
            }
        }
    )*};
}
struct_field! {
    PoolId { 0 }
    DomainId { 0 }
    SocketId { domain, slot }
    RequestId { index, generation }
    PacketRef { pool, generation, slot, offset, len }
}

impl Field for WireAddress {
    fn put(&self, w: &mut Writer) {
        w.put(&self.0)
    }
    fn get(r: &mut Reader) -> Option<Self> {
        r.get().map(WireAddress)
    }
}

impl Field for MacAddress {
    fn put(&self, w: &mut Writer) {
        w.put(&self.0)
    }
    fn get(r: &mut Reader) -> Option<Self> {
        r.get().map(MacAddress)
    }
}

/// Defines an enum of messages with `encode` and `decode`. Tags are part of the contract.
#[macro_export]
macro_rules! messages {
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$vdoc:meta])* $tag:literal => $variant:ident { $($(#[$fdoc:meta])* $field:ident : $t:ty),* $(,)? }),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant { $($(#[$fdoc])* $field: $t),* }),*
        }

        impl $name {
            #[inline]
            pub fn encode(&self) -> $crate::codec::Encoded {
                match self {
                    $($name::$variant { $($field),* } => {
                        #[allow(unused_mut)]
                        let mut w = $crate::codec::Writer::new($tag);
                        $($crate::codec::Field::put($field, &mut w);)*
                        w.finish()
                    })*
                }
            }

            #[inline]
            pub fn decode(line: &$crate::codec::Encoded) -> Option<$name> {
                #[allow(unused_mut, unused_variables)]
                let (tag, mut r) = $crate::codec::Reader::new(line);
                match tag {
                    $($tag => Some($name::$variant { $($field: $crate::codec::Field::get(&mut r)?),* }),)*
                    _ => None,
                }
            }
        }
    };
}
