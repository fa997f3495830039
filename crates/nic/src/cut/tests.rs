use super::*;
use eft_base::PoolId;
use std::net::IpAddr;
use zerocopy::{FromZeros, IntoBytes};

const PIECES: [u32; 3] = [700, 1900, 400];

/// 3000 bytes of payload in datagrams of 1000, as ip describes them.
fn frame(source: IpAddr, destination: IpAddr) -> FrameDescriptor {
    let mut d = FrameDescriptor::new_zeroed();
    let mut header = Vec::new();
    let ethertype = if source.is_ipv4() { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 };
    header.extend(EthernetHeader { ethertype: ethertype.into(), ..EthernetHeader::new_zeroed() }.as_bytes());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4Header {
                version_ihl: 0x45,
                total_len: 3028.into(),
                id: 0xffff.into(),
                protocol: PROTOCOL_UDP,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv4Header::new_zeroed()
            };
            header.extend(ip.as_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                version_class_flow: (6 << 28).into(),
                payload_len: 3008.into(),
                next_header: PROTOCOL_UDP,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::new_zeroed()
            };
            header.extend(ip.as_bytes());
        }
        _ => unreachable!(),
    }
    d.checksum_start = header.len() as u16;
    let sum = Checksum::new().add_pseudo_header(source, destination, PROTOCOL_UDP, 3008).partial();
    header.extend(
        UdpHeader { length: 3008.into(), checksum: sum.into(), ..UdpHeader::new_zeroed() }.as_bytes(),
    );
    d.header_len = header.len() as u16;
    d.header[..header.len()].copy_from_slice(&header);
    (d.flags, d.checksum_offset, d.segment_size) = (FRAME_CHECKSUM, 6, 1000);
    let mut offset = 0;
    for (r, len) in d.payload.iter_mut().zip(PIECES) {
        *r = PacketRef { pool: PoolId(1), len, offset, ..PacketRef::default() };
        offset += len;
    }
    d.payload_count = PIECES.len() as u16;
    d
}

#[test]
fn each_datagram_has_headers_of_its_own() {
    for [source, destination] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
        let [source, destination]: [IpAddr; 2] = [source, destination].map(|a| a.parse().unwrap());
        let mut d = frame(source, destination);
        d.payload[2].len = 350;
        // As ip describes 2950 bytes.
        set_len(&mut d, 2950);
        assert!(has_datagrams(&d));
        let (mut taken, mut n) = (0, 0);
        while let Some(first) = take_first(&mut d) {
            assert!(has_datagrams(&d) && !has_datagrams(&first));
            let refs = &first.payload[..first.payload_count as usize];
            assert_eq!(refs[0].offset, taken);
            let len: u32 = refs.iter().map(|r| r.len).sum();
            assert_eq!(len, [1000, 1000, 950][n as usize]);
            let udp_at = first.checksum_start as usize;
            let (udp, _) = UdpHeader::ref_from_prefix(&first.header[udp_at..]).unwrap();
            assert_eq!(u32::from(udp.length.get()), 8 + len);
            let sum = Checksum::new().add_pseudo_header(source, destination, PROTOCOL_UDP, 8 + len);
            assert_eq!(udp.checksum.get() % 0xffff, sum.partial() % 0xffff);
            let ip = &first.header[ETHERNET_LEN..udp_at];
            if source.is_ipv4() {
                let (h, _) = Ipv4Header::ref_from_prefix(ip).unwrap();
                assert_eq!((u32::from(h.total_len.get()), h.id.get()), (28 + len, 0xffffu16.wrapping_add(n)));
                assert_eq!(Checksum::new().add_bytes(ip).finish(), 0);
            } else {
                let (h, _) = Ipv6Header::ref_from_prefix(ip).unwrap();
                assert_eq!(u32::from(h.payload_len.get()), 8 + len);
            }
            (taken, n) = (taken + len, n + 1);
        }
        assert_eq!((taken, n), (2950, 3));
    }
}

#[test]
fn what_is_not_several_datagrams_is_left_alone() {
    let good = frame("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    assert!(has_datagrams(&good));
    let with = |at: usize, value: u8| {
        let mut d = good;
        d.header[at] = value;
        d
    };
    let others = [
        FrameDescriptor { segment_size: 0, ..good },
        FrameDescriptor { flags: 0, ..good },
        FrameDescriptor { header_len: 41, ..good },
        FrameDescriptor { checksum_start: 33, ..good },
        with(12, 9),
        // Options, TCP.
        with(14, 0x46),
        with(23, 6),
    ];
    for (i, d) in others.iter().enumerate() {
        assert!(!has_datagrams(d), "case {i}");
    }
}
