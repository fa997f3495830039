//! Answers to senders of blocked packets, and what the filter is told of ICMP errors.

use super::*;
use eft_base::errno::EPERM;

/// A TCP segment of THEM to US's port 80, with `len` bytes.
fn tcp_segment(flags: u8, seq: u32, ack: u32, len: usize) -> Vec<u8> {
    let mut h = TcpHeader::new_zeroed();
    h.source_port = 4000.into();
    h.destination_port = 80.into();
    h.sequence = seq.into();
    h.acknowledgment = ack.into();
    h.data_offset = 0x50;
    h.flags = flags;
    let mut p = h.as_bytes().to_vec();
    p.resize(20 + len, 7);
    p
}

/// The answers to a blocked arrival: frames that left without a question to the filter.
fn blocked(b: &mut Bench, frame: &[u8], how: Judgement) -> Vec<Vec<u8>> {
    let p = b.arrive(frame);
    let id = asked(&b.drain()[0]);
    b.judgement(id, how);
    let out = b.drain();
    let back = |m: &ToPeer| matches!(m, ToPeer::Nic(0, IpToNic::Done { packet }) if packet.slot == p.slot);
    assert!(out.iter().any(back), "{out:?}");
    let sends = |m: &&ToPeer| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }));
    let frames: Vec<Vec<u8>> = out.iter().filter(sends).map(|m| b.frame(m)).collect();
    assert_eq!(frames.len() + 1, out.len(), "{out:?}");
    b.confirm(&out);
    b.drain();
    b.nic.free(p);
    b.assert_idle();
    frames
}

#[test]
fn a_segment_is_answered_with_a_reset_that_its_sender_accepts() {
    let mut b = Bench::met(true);
    // RFC 9293 §3.10.7.1: without ACK, what it occupies is acknowledged; with ACK, that is the sequence.
    for (flags, len, expected) in [
        (TCP_SYN, 0, (TCP_RST | TCP_ACK, 0, 1001)),
        (TCP_SYN | TCP_FIN, 9, (TCP_RST | TCP_ACK, 0, 1011)),
        (TCP_ACK, 5, (TCP_RST, 77, 0)),
    ] {
        let f = packet(PROTOCOL_TCP, 0, 1, &tcp_segment(flags, 1000, 77, len));
        let frames = blocked(&mut b, &f, Judgement::Reset);
        let [reset] = &frames[..] else { panic!("{frames:?}") };
        let (h, _) = TcpHeader::ref_from_prefix(&reset[34..]).unwrap();
        assert_eq!((h.flags, h.sequence.get(), h.acknowledgment.get()), expected);
        assert_eq!((h.source_port.get(), h.destination_port.get()), (80, 4000));
        assert_eq!((&reset[26..30], &reset[30..34]), (&US.octets()[..], &THEM.octets()[..]));
        assert!(checksum_holds(reset));
    }
    assert_eq!(b.count(Counter::FilterReturned), 3);
}

#[test]
fn a_reset_and_nonsense_are_not_answered() {
    let mut b = Bench::met(true);
    let reset = packet(PROTOCOL_TCP, 0, 1, &tcp_segment(TCP_RST | TCP_ACK, 1, 2, 0));
    assert!(blocked(&mut b, &reset, Judgement::Reset).is_empty());
    let mut long_header = tcp_segment(TCP_SYN, 1, 2, 0);
    long_header[12] = 0xf0;
    let f = packet(PROTOCOL_TCP, 0, 1, &long_header);
    assert!(blocked(&mut b, &f, Judgement::Reset).is_empty());
    let error = icmp(3, 1, [0; 4], &[9; 40]);
    assert!(blocked(&mut b, &packet(PROTOCOL_ICMP, 0, 1, &error), Judgement::Unreachable).is_empty());
    let syn = packet(PROTOCOL_TCP, 0, 1, &tcp_segment(TCP_SYN, 1, 2, 0));
    assert!(blocked(&mut b, &syn, Judgement::Drop).is_empty(), "`block drop` drops");
}

#[test]
fn a_datagram_is_answered_with_an_unreachable_port() {
    let mut b = Bench::met(true);
    let f = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[9; 40]));
    let frames = blocked(&mut b, &f, Judgement::Unreachable);
    let [error] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(error[34..36], [3, 3]);
    assert_eq!(Checksum::new().add_bytes(&error[34..]).finish(), 0);
    assert_eq!(error[42..], f[14..]);
}

#[test]
fn broadcast_and_multicast_packets_are_not_answered() {
    let mut b = Bench::met(true);
    let mut f = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[9; 40]));
    f[..6].copy_from_slice(&[0xff; 6]);
    f[30..34].copy_from_slice(&[10, 77, 0, 255]);
    fix_header(&mut f);
    assert!(blocked(&mut b, &f, Judgement::Unreachable).is_empty());
    f[23] = PROTOCOL_TCP;
    fix_header(&mut f);
    assert!(blocked(&mut b, &f, Judgement::Reset).is_empty());
}

#[test]
fn a_flood_of_blocked_packets_gets_answers_at_a_limited_rate() {
    let mut b = Bench::met(true);
    let syn = packet(PROTOCOL_TCP, 0, 1, &tcp_segment(TCP_SYN, 1, 2, 0));
    let datagram = packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[9; 40]));
    let resets: usize = (0..80).map(|_| blocked(&mut b, &syn, Judgement::Reset).len()).sum();
    let errors: usize = (0..80).map(|_| blocked(&mut b, &datagram, Judgement::Unreachable).len()).sum();
    assert_eq!((resets, errors), (50, 50));
    assert_eq!(b.count(Counter::FilterReturnsLimited), 30);
    assert_eq!(b.count(Counter::IcmpRateLimited), 30);
}

#[test]
fn a_program_whose_packet_may_not_leave_is_refused_at_once() {
    let mut b = Bench::met(true);
    let mut syn = segment(THEM, 0, 0);
    syn.header[4..8].copy_from_slice(&1000u32.to_be_bytes());
    syn.header[13] = TCP_SYN;
    b.send(ComponentId::TCP, 1, &syn);
    let id = asked(&b.drain()[0]);
    b.judgement(id, Judgement::Reset);
    let out = b.drain();
    assert_eq!(out[1], sent(ComponentId::TCP, 1, 0));
    let ToPeer::Transport(ComponentId::TCP, IpToTransport::Deliver { packet, header_len: 20, .. }) = out[0]
    else {
        panic!("{out:?}")
    };
    let mut bytes = vec![0; packet.len as usize];
    b.memory.read(packet, &mut bytes).unwrap();
    assert_eq!((&bytes[12..16], &bytes[16..20]), (&THEM.octets()[..], &US.octets()[..]));
    assert_eq!(bytes[33], TCP_RST | TCP_ACK);
    assert_eq!(bytes[28..32], 1001u32.to_be_bytes());
    b.transport_says(ComponentId::TCP, TransportToIp::Done { packet });

    b.send(ComponentId::UDP, 2, &datagram(THEM, 0, 100));
    let id = asked(&b.drain()[0]);
    b.judgement(id, Judgement::Unreachable);
    let out = b.drain();
    assert_eq!(out[1], sent(ComponentId::UDP, 2, 0));
    let ToPeer::Transport(
        ComponentId::UDP,
        IpToTransport::Error { packet, header_len: 20, kind: 3, code: 3, .. },
    ) = out[0]
    else {
        panic!("{out:?}")
    };
    b.transport_says(ComponentId::UDP, TransportToIp::Done { packet });
    // Without an answer the errno says it.
    b.send(ComponentId::UDP, 3, &datagram(THEM, 0, 100));
    let id = asked(&b.drain()[0]);
    b.judgement(id, Judgement::Drop);
    assert_eq!(b.drain(), [sent(ComponentId::UDP, 3, EPERM)]);
    b.assert_idle();
}

/// The quoted packet in a question: protocol and ports.
fn quote_of(out: &[ToPeer]) -> Option<(u8, u16, u16)> {
    match out {
        [
            ToPeer::Filter(IpToFilter::Quote { request, source_port, destination_port, protocol, .. }),
            ask,
            ..,
        ] => {
            assert_eq!(*request, asked(ask));
            Some((*protocol, *source_port, *destination_port))
        }
        [ToPeer::Filter(IpToFilter::Ask { .. }), ..] => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_filter_is_told_what_an_error_is_about() {
    let quoted = |protocol: u8, body: &[u8]| packet(protocol, 0, 3, body)[14..].to_vec();
    let segment = quoted(PROTOCOL_TCP, &tcp_segment(TCP_ACK, 1, 2, 9));
    let datagram = quoted(PROTOCOL_UDP, &udp(5, 6, &[]));
    let mut fragment = segment.clone();
    fragment[7] = 1;
    let mut options = segment.clone();
    options[0] = 0x46;
    options.splice(20..20, [1; 4]);
    for (name, kind, quote, expected) in [
        ("TCP, the least", 3, &segment[..28], Some((6, 4000, 80))),
        ("TCP, whole", 11, &segment[..], Some((6, 4000, 80))),
        ("with options", 12, &options[..], Some((6, 4000, 80))),
        ("UDP", 3, &datagram[..], Some((17, 5, 6))),
        ("truncated", 3, &segment[..27], None),
        ("no header", 3, &segment[..19], None),
        ("nothing", 3, &[], None),
        ("a later fragment", 3, &fragment[..], None),
        ("a redirect", 5, &segment[..], None),
        ("an echo", 8, &segment[..], None),
    ] {
        let mut b = Bench::met(true);
        b.arrive(&packet(PROTOCOL_ICMP, 0, 1, &icmp(kind, 4, [0; 4], quote)));
        let out = b.drain();
        assert_eq!(quote_of(&out), expected, "{name}");
        // A reborn filter is told again.
        b.reborn(ComponentId::FILTER);
        assert_eq!(b.drain(), out, "{name}");
    }
}

#[test]
fn the_filter_is_told_what_our_own_errors_are_about() {
    let mut b = Bench::met(true);
    b.arrive(&packet(PROTOCOL_UDP, 0, 1, &udp(5, 6, &[9; 40])));
    let id = asked(&b.drain()[0]);
    b.verdict(id, true);
    let out = b.drain();
    let ToPeer::Transport(ComponentId::UDP, IpToTransport::Deliver { packet, .. }) = out[0] else {
        panic!("{out:?}")
    };
    b.transport_says(ComponentId::UDP, TransportToIp::Refuse { packet });
    assert_eq!(quote_of(&b.drain()), Some((17, 5, 6)));
}
