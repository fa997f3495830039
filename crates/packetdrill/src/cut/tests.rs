use super::*;

/// A TCP segment over IPv4 or IPv6, with options, FIN, PSH, ACK and CWR, and no checksums.
fn segment(v6: bool, payload: &[u8]) -> Vec<u8> {
    let mut tcp =
        vec![0, 80, 0, 81, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x60, 0x99, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1];
    tcp.extend_from_slice(payload);
    let mut ip = vec![0; if v6 { 40 } else { 20 }];
    if v6 {
        (ip[0], ip[6], ip[7], ip[23], ip[39]) = (0x60, TCP, 64, 1, 2);
    } else {
        (ip[0], ip[5], ip[8], ip[9], ip[15], ip[19]) = (0x45, 0xff, 64, TCP, 1, 2);
    }
    [ip, tcp].concat()
}

fn is_whole(packet: &[u8], tcp: usize) -> bool {
    let (addresses, told) = match packet[0] >> 4 {
        4 => (12..20, usize::from(u16::from_be_bytes([packet[2], packet[3]]))),
        _ => (8..40, 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]))),
    };
    let pseudo = [[0, 0], ((packet.len() - tcp) as u16).to_be_bytes(), [0, TCP]].concat();
    let header = packet[0] >> 4 == 6 || checksum(&[&packet[..tcp]]) == [0, 0];
    header && told == packet.len() && checksum(&[&packet[addresses], &pseudo, &packet[tcp..]]) == [0, 0]
}

#[test]
fn a_large_segment_is_cut_as_a_device_cuts_it() {
    let payload: Vec<u8> = (0..250).collect();
    for v6 in [false, true] {
        let tcp = if v6 { 40 } else { 20 };
        let pieces = cut(segment(v6, &payload), 100);
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|piece| is_whole(piece, tcp)));
        let data: Vec<u8> = pieces.iter().flat_map(|piece| piece[tcp + 24..].to_vec()).collect();
        assert_eq!(data, payload);
        let sequences: Vec<u32> =
            pieces.iter().map(|p| u32::from_be_bytes(p[tcp + 4..tcp + 8].try_into().unwrap())).collect();
        assert_eq!(sequences, [0xffff_fff0, 0x54, 0xb8], "they wrap");
        let flags: Vec<u8> = pieces.iter().map(|p| p[tcp + 13]).collect();
        assert_eq!(flags, [0x90, 0x10, 0x19]);
    }
}

#[test]
fn a_segment_that_fits_gets_its_checksum_only() {
    for size in [0, 100, 200] {
        let pieces = cut(segment(false, &[7; 100]), size);
        assert_eq!(pieces.len(), 1);
        assert!(is_whole(&pieces[0], 20));
    }
}

#[test]
fn what_is_no_whole_tcp_header_stays_as_it_is() {
    let whole = segment(false, &[]);
    for len in 0..44 {
        let part = whole[..len].to_vec();
        assert_eq!(cut(part.clone(), 10), [part]);
    }
    let mut udp = whole.clone();
    udp[9] = 17;
    assert_eq!(cut(udp.clone(), 1), [udp]);
}

#[test]
fn what_is_too_large_for_the_wire_arrives_as_put_together() {
    for (v6, kind, tcp) in [(false, 1, 20), (true, 4, 40)] {
        let whole = cut(segment(v6, &[7; 4000]), 0).remove(0);
        let (header, packet) = merged(whole.clone(), 14, 1500);
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        assert_eq!((header[0], header[1]), (1, kind));
        assert_eq!((word(2), word(4), word(6), word(8)), (14 + tcp + 24, 1000, 14 + tcp, 16));
        // The checksum over the segment, with the partial sum in its checksum field, is the checksum of the whole
        // segment.
        let tcp = usize::from(tcp);
        assert_eq!(checksum(&[&packet[tcp..]]), [whole[tcp + 16], whole[tcp + 17]]);
        let small = cut(segment(v6, &[7; 1000]), 0).remove(0);
        assert_eq!(merged(small.clone(), 14, 1500), ([0; VNET_LEN], small));
    }
}
