//! The host at the other end of the wire, which has every address there but the stack's: what it says of itself.

/// Its Ethernet address.
pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const ETHERNET_LEN: usize = 14;

const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// The answer to a frame that asks for an Ethernet address: by ARP (RFC 826) or by a neighbour solicitation (RFC 4861 §7.2.4).
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let kind = frame.get(12..14)?;
    if kind == ARP {
        answer_arp(frame)
    } else if kind == IPV6 {
        answer_solicitation(frame)
    } else {
        None
    }
}

fn answer_arp(frame: &[u8]) -> Option<Vec<u8>> {
    let request = frame.get(ETHERNET_LEN..ETHERNET_LEN + 28)?;
    let (sender, target) = (&request[8..18], &request[24..28]);
    // A host that asks for its own address checks whether another host has it: no answer.
    if request[6..8] != [0, 1] || sender[6..] == *target || sender[6..] == [0; 4] {
        return None;
    }
    let mut reply = [&sender[..6], &MAC, &ARP, &request[..6], &[0, 2], &MAC, target, sender].concat();
    reply.resize(60, 0);
    Some(reply)
}

fn answer_solicitation(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = frame.get(ETHERNET_LEN..)?;
    let (source, target) = (packet.get(8..24)?, packet.get(48..64)?);
    // A question from the unspecified address checks whether another host has the address: no answer.
    if packet[6] != ICMPV6 || packet[40] != SOLICITATION || source == [0; 16] {
        return None;
    }
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0];
    message.extend_from_slice(target);
    message.extend_from_slice(&[2, 1]);
    message.extend_from_slice(&MAC);
    let sum = checksum(&[target, source, &[0, 0, 0, message.len() as u8, 0, 0, 0, ICMPV6], &message]);
    message[2..4].copy_from_slice(&sum);
    let header = [0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, 255];
    Some([&frame[6..12], &MAC[..], &IPV6, &header, target, source, &message].concat())
}

/// The internet checksum (RFC 1071) of pieces that have even lengths, all but the last.
pub fn checksum(pieces: &[&[u8]]) -> [u8; 2] {
    let words = pieces.iter().flat_map(|piece| piece.chunks(2));
    let mut sum: u64 =
        words.map(|w| u64::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests;
