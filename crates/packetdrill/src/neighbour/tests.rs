use super::*;

const STACK: [u8; 6] = [2, 1, 2, 3, 4, 5];

fn arp(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, 1];
    [&[0xff; 6][..], &STACK, &ARP, &head, &STACK, &sender, &[0; 6], &target].concat()
}

#[test]
fn it_has_every_address_that_the_stack_asks_for() {
    let reply = answer(&arp([192, 168, 0, 1], [192, 168, 0, 254])).unwrap();
    assert_eq!((&reply[..6], &reply[6..12], &reply[12..14]), (&STACK[..], &MAC[..], &ARP[..]));
    assert_eq!(reply[20..22], [0, 2], "a reply");
    assert_eq!((&reply[22..28], &reply[28..32]), (&MAC[..], &[192, 168, 0, 254][..]));
    assert_eq!((&reply[32..38], &reply[38..42]), (&STACK[..], &[192, 168, 0, 1][..]));
    assert!(answer(&arp([192, 168, 0, 1], [192, 168, 0, 1])).is_none(), "the stack tries its own out");
    assert!(answer(&arp([0; 4], [192, 168, 0, 1])).is_none());
}

fn solicitation(source: [u8; 16], target: [u8; 16]) -> Vec<u8> {
    let header = [0x60, 0, 0, 0, 0, 24, ICMPV6, 255];
    let message = [SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    [&[0x33; 6][..], &STACK, &IPV6, &header, &source, &[0xff; 16], &message, &target].concat()
}

#[test]
fn a_solicitation_is_answered_with_a_right_checksum() {
    let reply = answer(&solicitation([1; 16], [2; 16])).unwrap();
    let packet = &reply[ETHERNET_LEN..];
    assert_eq!((packet[40], &packet[8..24], &packet[24..40]), (ADVERTISEMENT, &[2; 16][..], &[1; 16][..]));
    assert_eq!((&packet[48..64], &packet[64..]), (&[2; 16][..], &[2, 1, 2, 0, 0, 0, 0, 1][..]));
    assert_eq!(checksum(&[&packet[8..40], &[0, 0, 0, 32, 0, 0, 0, ICMPV6], &packet[40..]]), [0, 0]);
    assert!(answer(&solicitation([0; 16], [2; 16])).is_none(), "the stack tries its own out");
}

#[test]
fn nothing_else_is_answered() {
    for frame in [arp([1; 4], [2; 4]), solicitation([1; 16], [2; 16])] {
        let complete = if frame[12] == 8 { ETHERNET_LEN + 28 } else { frame.len() };
        assert!((0..complete).all(|len| answer(&frame[..len]).is_none()));
    }
}
