use super::*;
use crate::program::SYN;

fn ends(source: &str, destination: &str) -> Ends {
    Ends {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        source_port: 5,
        destination_port: 700,
    }
}

#[test]
fn a_segment_is_read_as_it_was_made() {
    for ends in [ends("192.0.2.1", "192.168.0.1"), ends("fd00::1", "fd00::2")] {
        let offer = Offer { mss: 1000, sack: true, scale: Some(7), timestamps: true };
        let segment = Tcp {
            sequence: 7,
            acknowledgment: 9,
            flags: SYN | ACK,
            window: 100,
            options: options(&offer, Some((1, 2))),
            data: vec![1, 2, 3],
        };
        let packet = tcp(ends, &segment, false);
        assert_eq!(parse(&packet), Some(Packet::Tcp(ends, segment)));
    }
}

#[test]
fn a_checksum_is_right_unless_it_shall_be_wrong() {
    let ends = ends("192.0.2.1", "192.168.0.1");
    let sum = |packet: &[u8]| {
        Checksum::new()
            .add_pseudo_header(ends.source, ends.destination, TCP, (packet.len() - 20) as u32)
            .add_bytes(&packet[20..])
            .finish()
    };
    let segment = Tcp { data: vec![1, 2, 3], ..Tcp::default() };
    assert_eq!(sum(&tcp(ends, &segment, false)), 0);
    assert_ne!(sum(&tcp(ends, &segment, true)), 0);
}

#[test]
fn options_of_any_length_are_read_without_a_panic() {
    assert_eq!(each_option(&[2, 4, 5, 180, 1, 4, 2]), [(2, vec![5, 180]), (4, vec![])]);
    for broken in [&[2][..], &[2, 0], &[2, 1, 1], &[2, 200, 0]] {
        assert!(each_option(broken).is_empty(), "{broken:?}");
    }
}

#[test]
fn a_complaint_quotes_the_packet() {
    let ends = ends("fd00::1", "fd00::2");
    let about = udp(ends, &[1; 50]);
    let packet = complaint(Complaint::TooBig { mtu: 1280 }, &about, ends.destination, ends.source);
    assert_eq!(parse(&packet), Some(Packet::Icmp(2, 0)));
    assert_eq!(packet[48..], about);
}
