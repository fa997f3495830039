//! Random bytes from every side: no panic, and nothing is kept for ever.

use super::*;
use Judgement::*;

/// A frame that is right in most places.
fn mutated(random: &mut Random) -> Vec<u8> {
    let body: Vec<u8> = (0..random.below(100)).map(|_| random.next_u32() as u8).collect();
    let mut f = match random.below(5) {
        0 => packet(PROTOCOL_TCP, random.next_u32() as u16 & 0x600f, random.below(3) as u16, &body),
        1 => {
            packet(PROTOCOL_UDP, random.next_u32() as u16 & 0x2003, random.below(3) as u16, &udp(1, 2, &body))
        }
        2 => packet(PROTOCOL_ICMP, 0, 1, &icmp(random.below(20) as u8, random.below(6) as u8, [0; 4], &body)),
        3 => ethernet(ETHERTYPE_ARP, &body),
        _ => body,
    };
    for _ in 0..random.below(3) {
        if !f.is_empty() {
            let at = random.below(f.len() as u64) as usize;
            f[at] = random.next_u32() as u8;
        }
    }
    if f.len() > 34 && random.chance(0.7) && f.len() >= 14 + (f[14] & 15) as usize * 4 {
        fix_header(&mut f);
    }
    f.truncate(random.below(200) as usize);
    f
}

#[test]
fn random_frames_do_no_harm() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut b = Bench::met(seed % 2 == 0);
        for _ in 0..2000 {
            b.arrive(&mutated(&mut random));
            b.now += Duration::from_millis(random.below(400));
            b.pass(Duration::ZERO);
            for _ in 0..3 {
                for m in b.drain() {
                    match m {
                        ToPeer::Nic(0, IpToNic::Done { packet }) => {
                            assert!(b.nic.free(packet), "seed {seed}: given back twice");
                        }
                        ToPeer::Nic(_, IpToNic::Send { .. }) => b.confirm(&[m]),
                        ToPeer::Transport(peer, IpToTransport::Deliver { packet, .. })
                        | ToPeer::Transport(peer, IpToTransport::Error { packet, .. }) => {
                            let m = if random.chance(0.5) {
                                TransportToIp::Done { packet }
                            } else {
                                TransportToIp::Refuse { packet }
                            };
                            b.transport_says(peer, m);
                        }
                        ToPeer::Filter(IpToFilter::Ask { request, .. }) => {
                            let all = [Pass, Pass, Pass, Drop, Reset, Unreachable];
                            b.judgement(request, all[random.below(6) as usize]);
                        }
                        _ => {}
                    }
                }
            }
        }
        b.pass(Duration::from_secs(60));
        for _ in 0..4 {
            let out = b.drain();
            for m in &out {
                if let ToPeer::Filter(IpToFilter::Ask { .. }) = m {
                    b.verdict(asked(m), true);
                }
            }
            b.confirm(&out);
            b.pass(Duration::from_secs(10));
        }
        b.assert_idle();
        assert_eq!(b.nic.available(), b.nic.slots(), "seed {seed}: a frame was kept");
    }
}

#[test]
fn random_messages_do_no_harm() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut b = Bench::met(seed % 2 == 0);
        for _ in 0..5000 {
            let peer = PEERS[random.below(4) as usize];
            // Small numbers hit valid ids, slots and generations often.
            let mut line = [0u64; 7];
            for word in &mut line {
                for byte in 0..8 {
                    let v = if random.chance(0.9) { random.below(6) } else { random.below(256) };
                    *word |= v << (byte * 8);
                }
            }
            if let Some(m) = Ip::decode(peer, &line) {
                b.with(|ip, cx, out| ip.receive(cx, peer, m, out));
            }
            if random.chance(0.01) {
                b.reborn(peer);
            }
            b.now += Duration::from_millis(random.below(10));
            b.pass(Duration::ZERO);
            b.drain();
        }
    }
}

#[test]
fn random_descriptors_do_no_harm() {
    let mut random = Random::new(5);
    let mut b = Bench::met(false);
    for i in 0..20_000 {
        let mut d = if random.chance(0.5) { datagram(THEM, 0, 900) } else { segment(US, 900, 100) };
        for _ in 0..1 + random.below(4) {
            let bytes = d.as_mut_bytes();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u32() as u8;
        }
        let at = b.send(if d.protocol == 6 { ComponentId::TCP } else { ComponentId::UDP }, i, &d);
        let mut answers = 0;
        for _ in 0..4 {
            for m in b.drain() {
                match m {
                    ToPeer::Transport(_, IpToTransport::Sent { .. }) => answers += 1,
                    ToPeer::Transport(peer, IpToTransport::Deliver { packet, .. }) => {
                        b.transport_says(peer, TransportToIp::Done { packet })
                    }
                    m => b.confirm(&[m]),
                }
            }
            b.pass(Duration::from_secs(2));
        }
        assert_eq!(answers, 1, "descriptor {i}");
        assert!(b.headers.free(at));
    }
    b.assert_idle();
}
