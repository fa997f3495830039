use super::*;
use crate::tcp::options::Options;
use eft_base::wire::{TCP_ACK, TCP_SYN};
use eft_channel::socket::KEY_BYTES_MAX;

const VECTORS: &str = include_str!("rfc9235.txt");
const TCP_HEADER: usize = 20;

fn key(algorithm: u8, text: &[u8]) -> SignatureKey {
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..text.len()].copy_from_slice(text);
    SignatureKey {
        address: WireAddress::default(),
        prefix_len: 0,
        len: text.len() as u8,
        algorithm,
        send_id: 0,
        receive_id: 0,
        mac_len: MAC_MAX as u8,
        excludes_options: 0,
        reserved: [0; 9],
        bytes,
    }
}

fn bytes_of(line: &str) -> Vec<u8> {
    line.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Addresses, and where TCP begins.
fn ends(packet: &[u8]) -> ((WireAddress, WireAddress), usize) {
    let address = |bytes: &[u8]| match <[u8; 4]>::try_from(bytes) {
        Ok(bytes) => WireAddress::from(IpAddr::from(bytes)),
        Err(_) => WireAddress(bytes.try_into().unwrap()),
    };
    match packet[0] >> 4 {
        4 => ((address(&packet[12..16]), address(&packet[16..20])), 20),
        _ => ((address(&packet[8..24]), address(&packet[24..40])), 40),
    }
}

/// The code of a packet, as its key makes it and as the packet has it.
fn codes(packet: &[u8], algorithm: u8, all: bool, (client, server): (u32, u32)) -> (Code, Code) {
    let (addresses, at) = ends(packet);
    let tcp = &packet[at..];
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let ports = (port(0), port(2));
    let flags = tcp[13];
    let isns = match (ports.1 == 179, flags & (TCP_SYN | TCP_ACK)) {
        (_, TCP_SYN) => (client, 0),
        (true, _) => (client, server),
        (false, _) => (server, client),
    };
    let traffic = TrafficKey::derive(&key(algorithm, b"testvector"), &Particulars { addresses, ports, isns });
    let header_len = usize::from(tcp[12] >> 4) * 4;
    let mut header: [u8; TCP_HEADER] = tcp[..TCP_HEADER].try_into().unwrap();
    header[16..18].fill(0);
    let options = &tcp[TCP_HEADER..header_len];
    let covered = Covered { addresses, header: &header, len: tcp.len() as u32, data: &tcp[header_len..] };
    let told = Options::parse(options).authentication.expect("a signed packet");
    assert_eq!(usize::from(told.mac_len), MAC_MAX);
    (traffic.code(&covered, 0, options, all), told.mac)
}

#[test]
fn codes_are_those_of_rfc_9235() {
    let mut context = ("", 0, false, (0, 0));
    let mut packets = 0;
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        if let [section, name, options, client, server] = line.split(' ').collect::<Vec<_>>()[..] {
            let algorithm = if name == "sha1" { algorithm::HMAC_SHA1 } else { algorithm::AES_CMAC };
            let isn = |text| u32::from_str_radix(text, 16).unwrap();
            context = (section, algorithm, options == "all", (isn(client), isn(server)));
            continue;
        }
        let (section, algorithm, all, isns) = context;
        let packet = bytes_of(line);
        let (made, told) = codes(&packet, algorithm, all, isns);
        assert_eq!(made, told, "§{section}: {line}");
        let mut other = packet.clone();
        *other.last_mut().unwrap() ^= 1;
        let (made, told) = codes(&other, algorithm, all, isns);
        assert_ne!(made, told, "§{section}, changed");
        packets += 1;
    }
    assert_eq!(packets, 26);
}

/// Of the options a code covers all, or TCP-AO's own alone; and it covers the extension of the sequence number.
#[test]
fn a_code_covers_what_it_is_to_cover() {
    let line = VECTORS.lines().find(|line| line.starts_with("45")).unwrap();
    let packet = bytes_of(line);
    let (_, at) = ends(&packet);
    let mut other = packet.clone();
    // The MSS.
    other[at + TCP_HEADER + 3] ^= 1;
    let isns = (0xfbfb_ab5a, 0x11c1_4261);
    let code = |packet: &[u8], all| codes(packet, algorithm::HMAC_SHA1, all, isns).0;
    assert_ne!(code(&packet, true), code(&other, true));
    assert_eq!(code(&packet, false), code(&other, false));
    assert_ne!(code(&packet, false), code(&packet, true));
    let traffic = TrafficKey::derive(
        &key(algorithm::AES_CMAC, b"k"),
        &Particulars { addresses: ends(&packet).0, ports: (1, 2), isns },
    );
    let header = [0; TCP_HEADER];
    let covered = Covered { addresses: ends(&packet).0, header: &header, len: 20, data: &[] };
    assert_ne!(traffic.code(&covered, 0, &[], true), traffic.code(&covered, 1, &[], true));
}
