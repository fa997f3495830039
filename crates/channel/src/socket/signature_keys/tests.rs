use super::*;
use crate::segment::Segment;
use crate::socket::Geometry;
use zerocopy::FromZeros;

fn key(address: &str, bits_from_the_end: u8, name: u8) -> SignatureKey {
    let address: IpAddr = address.parse().unwrap();
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[0] = name;
    SignatureKey {
        address: address.into(),
        prefix_len: 128 - bits_from_the_end,
        len: 1,
        bytes,
        ..SignatureKey::new_zeroed()
    }
}

fn address(text: &str) -> WireAddress {
    text.parse::<IpAddr>().unwrap().into()
}

#[test]
fn a_prefix_covers_the_addresses_of_its_network_and_no_others() {
    let host = key("10.1.2.3", 0, 1);
    assert!(host.is_for(address("10.1.2.3")) && !host.is_for(address("10.1.2.2")));
    let network = key("10.1.2.0", 8, 1);
    assert!(network.is_for(address("10.1.2.200")) && !network.is_for(address("10.1.3.0")));
    let all4 = key("0.0.0.0", 32, 1);
    assert!(all4.is_for(address("192.0.2.1")) && !all4.is_for(address("2001:db8::1")));
    let all6 = key("::", 128, 1);
    assert!(all6.is_for(address("2001:db8::1")) && !all6.is_for(address("192.0.2.1")));
}

#[test]
fn keys_come_back_from_their_places_and_the_word_tells_of_changes() {
    let geometry = Geometry { slots: 1, send_len: 4096, receive_len: 4096 };
    let page = SocketPage::alone(Segment::heap(geometry.stride()), geometry).unwrap();
    assert_eq!((page.signature_keys_max(false), page.signature_keys_max(true)), (5, 5 + 36));
    for number in 0..41 {
        page.write_signature_key(number, &key("10.1.2.3", 0, number as u8));
    }
    for number in 0..41 {
        assert_eq!(page.signature_key(number), key("10.1.2.3", 0, number as u8));
    }
    page.tell_signature_keys(41);
    let before = page.option(Opt::SignatureKeys);
    page.tell_signature_keys(41);
    let after = page.option(Opt::SignatureKeys);
    assert_eq!((count(before), count(after)), (41, 41));
    assert_ne!(before, after);
}
