use super::*;
use core::net::IpAddr;
use eft_base::WireAddress;
use eft_channel::socket::KEY_BYTES_MAX;
use zerocopy::FromZeros;

/// Port 179 to 40000, 1000, 2000, PSH and ACK, a window of 500, a header of 40 bytes.
const HEADER: [u8; 20] = [0, 179, 0x9c, 0x40, 0, 0, 3, 232, 0, 0, 7, 208, 0xa0, 0x18, 1, 0xf4, 0, 0, 0, 0];

fn key(text: &[u8]) -> SignatureKey {
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..text.len()].copy_from_slice(text);
    SignatureKey {
        address: WireAddress::default(),
        prefix_len: 0,
        len: text.len() as u8,
        bytes,
        ..SignatureKey::new_zeroed()
    }
}

fn made(
    key: SignatureKey,
    addresses: (WireAddress, WireAddress),
    header: &[u8; 20],
    len: u32,
    data: &[u8],
) -> Signature {
    digest(&key, &Covered { addresses, header, len, data })
}

fn ends(a: &str, b: &str) -> (WireAddress, WireAddress) {
    let [a, b] = [a, b].map(|text| WireAddress::from(text.parse::<IpAddr>().unwrap()));
    (a, b)
}

/// As Python's hashlib makes it of the bytes that RFC 2385 §2.0 lists.
#[test]
fn the_digest_covers_addresses_header_data_and_key() {
    let digest = made(key(b"secret"), ends("10.0.0.1", "10.0.0.2"), &HEADER, 45, b"hello");
    assert_eq!(u128::from_be_bytes(digest), 0xfdad986a32d520eb339f31e6cb8ed928);
    let digest = made(key(&[b'k'; 80]), ends("fe80::1", "2001:db8::2"), &HEADER, 40, b"");
    assert_eq!(u128::from_be_bytes(digest), 0x4c0737ad18b16e186d19c37ac7919ef8);
}

/// A zone is no part of an address on the wire.
#[test]
fn the_digest_is_that_of_the_wire() {
    let zoned = ends("fe80:3::1", "2001:db8::2");
    let digest = made(key(&[b'k'; 80]), zoned, &HEADER, 40, b"");
    assert_eq!(u128::from_be_bytes(digest), 0x4c0737ad18b16e186d19c37ac7919ef8);
}
