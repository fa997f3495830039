use super::*;

const TARGET: Ipv6Addr = Ipv6Addr::new(0xfe80, 2, 0, 0, 0, 0, 0, 9);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

fn written(kind: u8, mac: Option<MacAddress>) -> Vec<u8> {
    let m = NeighbourMessage { target: TARGET, flags: SOLICITED, mac };
    message(kind, m, (TARGET, Ipv6Addr::new(0xfe80, 2, 0, 0, 0, 0, 0, 1)))
}

#[test]
fn what_is_written_is_read_again() {
    for kind in [ICMPV6_NEIGHBOUR_SOLICITATION, ICMPV6_NEIGHBOUR_ADVERTISEMENT] {
        for mac in [None, Some(MAC)] {
            let bytes = written(kind, mac);
            assert_eq!(bytes.len(), if mac.is_some() { 32 } else { 24 });
            // No zone on the wire.
            assert_eq!(bytes[8..12], [0xfe, 0x80, 0, 0]);
            assert_eq!(parse(&bytes, 2), Some(NeighbourMessage { target: TARGET, flags: SOLICITED, mac }));
        }
    }
}

#[test]
fn malformed_messages_are_refused() {
    let good = written(ICMPV6_NEIGHBOUR_SOLICITATION, Some(MAC));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        parse(&bytes, 2)
    };
    assert!(with(9, 0x80).is_some());
    assert_eq!(with(0, 137), None);
    assert_eq!(with(1, 1), None);
    assert_eq!(with(8, 0xff), None);
    assert_eq!(with(10, 1), None, "a zone");
    assert_eq!(with(25, 0), None, "an option without length");
    assert_eq!(with(25, 2), None, "an option that is longer than the packet");
    assert_eq!(with(24, 7).unwrap().mac, None, "an unknown option");
    for len in (0..24).chain(25..32) {
        assert_eq!(parse(&good[..len], 2), None, "{len}");
    }
}
