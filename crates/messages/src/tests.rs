use super::*;
use eft_base::{PacketRef, PoolId, RequestId, WireAddress};

#[test]
fn every_line_decodes_or_is_refused() {
    let mut random = eft_base::Random::new(1);
    for _ in 0..100_000 {
        let mut line: Encoded = core::array::from_fn(|_| random.next_u64());
        line[0] = line[0] & !0xff | random.below(9);
        let _ = transport::TransportToIp::decode(&line);
        let _ = transport::IpToTransport::decode(&line);
        let _ = nic::IpToNic::decode(&line);
        let _ = nic::NicToIp::decode(&line);
        let _ = filter::IpToFilter::decode(&line);
        let _ = filter::FilterToIp::decode(&line);
        let _ = sockets::SocketsToTransport::decode(&line);
        let _ = sockets::TransportToSockets::decode(&line);
    }
}

#[test]
fn messages_round_trip() {
    let request = RequestId { index: 7, generation: 9 };
    let packet = PacketRef { pool: PoolId(3), generation: 4, slot: 5, offset: 6, len: 7 };
    let m = transport::TransportToIp::Send { request, descriptor: packet };
    assert_eq!(transport::TransportToIp::decode(&m.encode()), Some(m));
    let a = filter::IpToFilter::Ask {
        request,
        source: WireAddress([1; 16]),
        destination: WireAddress([2; 16]),
        source_port: 3,
        destination_port: 4,
        protocol: 6,
        tcp_flags: 2,
        interface: 1,
        inbound: true,
        len: 1500,
    };
    assert_eq!(filter::IpToFilter::decode(&a.encode()), Some(a));
    let (source, destination) = (WireAddress([1; 16]), WireAddress([2; 16]));
    let q = filter::IpToFilter::Quote {
        request,
        source,
        destination,
        source_port: 3,
        destination_port: 4,
        protocol: 17,
    };
    assert_eq!(filter::IpToFilter::decode(&q.encode()), Some(q));
    for judgement in [filter::Judgement::Drop, filter::Judgement::Unreachable] {
        let v = filter::FilterToIp::Verdict { request, judgement };
        assert_eq!(filter::FilterToIp::decode(&v.encode()), Some(v));
    }
    let (flow, source_is_low) = filter::Flow::between((destination, 4), (source, 3), 6);
    assert!(!source_is_low);
    assert_eq!(filter::Flow::between((source, 3), (destination, 4), 6), (flow, true));
    let u = filter::IpToFilter::Used { flow, at: u64::MAX };
    assert_eq!(filter::IpToFilter::decode(&u.encode()), Some(u));
    let r = filter::FilterToIp::Recall { flow };
    assert_eq!(filter::FilterToIp::decode(&r.encode()), Some(r));
    let r = transport::IpToTransport::Routed {
        request,
        errno: -1,
        source: WireAddress([1; 16]),
        mtu: 1500,
        segment_max: 65000,
        local: true,
        mss: 600,
        initial_segments: 11,
    };
    assert_eq!(transport::IpToTransport::decode(&r.encode()), Some(r));
}
