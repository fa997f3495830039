use super::*;
use eft_base::WireAddress;
use eft_channel::socket::KEY_BYTES_MAX;
use eft_channel::socket::signature_keys::{MAC_MAX, algorithm};

fn key(id: u8) -> SignatureKey {
    SignatureKey {
        address: WireAddress::default(),
        prefix_len: 0,
        len: 1,
        algorithm: algorithm::HMAC_SHA1,
        send_id: id,
        receive_id: id + 100,
        mac_len: MAC_MAX as u8,
        excludes_options: 0,
        reserved: [0; 9],
        bytes: [id; KEY_BYTES_MAX],
    }
}

/// As RFC 5925 §6.2 counts: how often the sequence number has wrapped.
#[test]
fn an_extension_grows_when_sequence_numbers_wrap() {
    assert_eq!(extension(0, -1), 0);
    assert_eq!(extension(u32::MAX, -1), 0);
    assert_eq!(extension(u32::MAX, 0), 1);
    assert_eq!(extension(u32::MAX - 10, 9), 0);
    assert_eq!(extension(u32::MAX - 10, 10), 1);
    assert_eq!(extension(5, 1 << 32), 1);
    assert_eq!(extension(u32::MAX, (1 << 40) - 1), 256);
}

#[test]
fn keys_that_stay_keep_their_counts_and_a_successor_continues_them() {
    let mut keys = AoKeys::new(vec![key(1), key(2)]);
    keys.by_send_id(2).unwrap().count(true);
    keys.by_receive_id(102).unwrap().count(false);
    keys.count(true);
    keys.replace(vec![key(2), key(3)]);
    assert!(keys.by_send_id(1).is_none() && keys.by_receive_id(101).is_none());
    let told = keys.status();
    let counts = |status: &AuthenticationStatus| status.keys.map(|k| (k.send_id, k.good, k.bad));
    assert_eq!((told.count, told.good), (2, 1));
    assert_eq!(counts(&told)[..2], [(2, 1, 1), (3, 0, 0)]);
    let successor = AoKeys::resumed(vec![key(2), key(3)], Some(told));
    assert_eq!(successor.status(), told);
    // A key of the same names is another one.
    let other = SignatureKey { bytes: [9; KEY_BYTES_MAX], ..key(2) };
    keys.replace(vec![other]);
    assert_eq!(keys.status().keys[0].good, 0);
}
