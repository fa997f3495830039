use super::*;
use eft_base::{Instant, PacketRef, PoolId, Random, RequestId};
use serde_bytes::ByteBuf;

fn place(len: usize) -> PacketRef {
    PacketRef { pool: PoolId(1), generation: 0, slot: 0, offset: 0, len: len as u32 }
}

fn call(input: Input, packet: &[u8]) -> Call {
    Call {
        now: Instant(1),
        random: Random::new(1),
        rooms: Vec::new(),
        memory: vec![(place(packet.len()), ByteBuf::from(packet))],
        input,
        accesses: Vec::new(),
        outputs: Vec::new(),
    }
}

/// A delivery of a segment with these flags and so many bytes of payload, behind an IPv4 header.
fn delivery(flags: u8, payload: usize) -> Call {
    let mut packet = vec![0; 20 + 32 + payload];
    (packet[20 + 12], packet[20 + 13]) = (8 << 4, flags);
    let line = IpToTransport::Deliver {
        packet: place(packet.len()),
        header_len: 20,
        checksum_ok: true,
        segment_size: 0,
        zone: 0,
        interface: 0,
    };
    call(Input::Message(ComponentId::IP, line.encode()), &packet)
}

/// The kinds that a call counts for, with how much.
fn counted(component: ComponentId, call: &Call) -> Vec<(&'static str, u64)> {
    let all = of(component).iter().map(|kind| (kind.name, kind.count(call)));
    all.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn segments_are_told_apart_by_flags_and_payload() {
    let of = |flags, payload| counted(ComponentId::TCP, &delivery(flags, payload));
    assert_eq!(of(0x10, 0), [("tcp_acknowledgement_cycles", 1)]);
    assert_eq!(of(0x18, 100), [("tcp_data_cycles", 1), ("tcp_received_kib_cycles", 152)]);
    assert_eq!(of(0x02, 0), [("handshake_cycles", 1)]);
    let short = call(delivery(0x10, 0).input, &[0; 25]);
    assert_eq!(counted(ComponentId::TCP, &short), [("tcp_other_cycles", 1)]);
}

#[test]
fn what_tcp_sends_counts_by_its_payload() {
    let output = |bytes: u64| RecordedOutput::Message {
        to: ComponentId::IP,
        line: Encoded::default(),
        shown: ByteBuf::from([1]),
        payload: (bytes, 0),
    };
    let flush = Call { outputs: vec![output(1448), output(0), output(5)], ..call(Input::Flush, &[]) };
    let found = counted(ComponentId::TCP, &flush);
    assert_eq!(found, [("tcp_segment_cycles", 2), ("tcp_empty_segment_cycles", 1)]);
}

#[test]
fn each_message_of_ip_and_of_the_filter_has_its_kind() {
    let request = RequestId { index: 7, generation: 0 };
    let of_ip = |from: ComponentId, line| counted(ComponentId::IP, &call(Input::Message(from, line), &[]));
    let send = TransportToIp::Send { request, descriptor: place(0) }.encode();
    assert_eq!(of_ip(ComponentId::TCP, send), [("ip_segment_cycles", 1)]);
    assert_eq!(of_ip(ComponentId::TCP, TransportToIp::Done { packet: place(0) }.encode()), []);
    let sent = NicToIp::Sent { request, errno: 0 }.encode();
    assert_eq!(of_ip(ComponentId::nic(0), sent), [("ip_sent_cycles", 1)]);
    let passed = IpToFilter::Passed { packets: 1, by_state: 1 }.encode();
    let of_filter = counted(ComponentId::FILTER, &call(Input::Message(ComponentId::IP, passed), &[]));
    assert_eq!(of_filter, [("filter_other_cycles", 1)]);
    assert_eq!(counted(ComponentId::FILTER, &call(Input::Commit, &[])), []);
}
