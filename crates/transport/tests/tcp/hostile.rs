//! Hostile pages, random packets, floods, forged errors and a damaged arena harm no other connection.

use crate::app::App;
use crate::script::*;
use crate::streams::{for_seeds, plan, run_to_end};
use crate::world::{Conditions, Packet, World};
use eft_base::errno::{ECONNREFUSED, EHOSTUNREACH};
use eft_base::{PacketRef, PoolId, Random, RequestId};
use eft_channel::socket::{QUOTE_MAX, SOCKET_HEADER_LEN};
use eft_component::Component;
use eft_harness::Quote;
use eft_messages::ComponentId;
use eft_messages::sockets::SocketsToTransport;
use eft_messages::transport::IpToTransport;
use eft_transport::In;
use eft_transport::tcp::Tcp;
use eft_transport::tcp::block::{Block, State, bit};
use std::mem::offset_of;
use std::time::Duration;

#[test]
fn a_scribbled_page_costs_its_own_connection_only() {
    for_seeds(60, |seed| {
        let mut random = Random::new(seed);
        let mut w = World::new(seed, Conditions { delay_us: 500, ..Conditions::default() });
        App::listen(&mut w, 1, PORT, 16, plan(300_000, 300_000));
        App::connect(&mut w, 0, PORT, plan(300_000, 300_000));
        App::connect(&mut w, 0, PORT, plan(300_000, 300_000));
        w.run_until(Duration::from_secs(5), |w| w.sides[1].counter("received_bytes") > 50_000);
        // The first connection's program overwrites its page, on one side or the other, and so does a
        // listener.
        let side = random.below(2) as usize;
        let victim = w.sides[side].app.streams[0].socket;
        let port = w.sides[0].page(w.sides[0].app.streams[0].socket).local().port;
        for s in &mut w.sides {
            s.app.streams.retain(|x| !x.has_port(port));
        }
        let page = w.sides[side].page(victim);
        let incarnation = page.incarnation();
        for _ in 0..30 {
            // SAFETY: the header is this page's own, mapped by this process alone.
            let header = unsafe { std::slice::from_raw_parts_mut(page.header_ptr(0), SOCKET_HEADER_LEN) };
            match random.below(4) {
                0 => page.set_send_end(random.next_u64() >> random.below(64)),
                1 => page.set_receive_taken(random.next_u64() >> random.below(64)),
                2 => header[random.below(512) as usize] = random.next_u32() as u8,
                _ => header[..512].iter_mut().for_each(|b| *b = random.next_u32() as u8),
            }
            w.dirty(side, victim);
            for _ in 0..5 {
                w.step();
            }
        }
        let done = w.run_until(Duration::from_secs(600), |w| {
            w.sides.iter().all(|s| !s.app.streams.is_empty() && s.app.all_done())
        });
        assert!(done, "seed {seed}: {:?} {:?}", w.sides[0].app.streams, w.sides[1].app.streams);
        w.request(side, |request| SocketsToTransport::Close { request, socket: victim, incarnation });
    });
}

/// A packet of random bytes, or one whose header nearly makes sense.
fn nonsense(random: &mut Random, s: &World) -> Packet {
    let len = random.below(200) as usize;
    let mut bytes: Vec<u8> = (0..len).map(|_| random.next_u32() as u8).collect();
    if random.below(4) != 0 {
        let port = 40_000 + random.below(3) as u16;
        let options: Vec<u8> = (0..random.below(11) * 4).map(|_| random.next_u32() as u8 % 12).collect();
        let p = segment(
            (s.sides[0].address, port),
            (s.sides[1].address, PORT),
            (random.next_u32(), random.next_u32()),
            random.next_u32() as u8,
            random.next_u32() as u16,
            &options,
            &bytes,
        );
        bytes = p.bytes;
        if random.below(4) == 0 && bytes.len() > 40 {
            bytes.truncate(20 + random.below(40) as usize);
        }
        if random.below(8) == 0 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u32() as u8;
        }
    }
    Packet { bytes, segment_size: [0, 0, 1, 1448][random.below(4) as usize] }
}

#[test]
fn random_packets_do_no_harm() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let mut s = Script::new(quiet_plan());
        s.world.conditions.checksum = random.below(2) == 0;
        for port in 40_000..40_003 {
            s.source_port = port;
            s.handshake(&[4, 2, 1, 1]);
        }
        for _ in 0..3000 {
            let p = nonsense(&mut random, &s.world);
            s.world.deliver(1, &p);
            if random.below(4) == 0 {
                s.world.turn(1);
            }
            if random.below(50) == 0 {
                s.world.run_for(Duration::from_millis(random.below(500)));
            }
        }
        s.world.turn(1);
        assert_eq!(s.world.sides[1].packets_in_use(), 0, "seed {seed}");
        s.hear();
        s.source_port = 41_000;
        s.seq = 77;
        s.handshake(&[]);
        s.say(ACK, &stream_bytes(41_000, 0, 5000));
        assert_eq!(s.world.sides[1].app.streams.last().unwrap().received, 5000);
    });
}

#[test]
fn near_misses_of_the_sequence_space_do_no_harm() {
    for_seeds(40, |seed| {
        let mut random = Random::new(seed);
        let (mut s, _) = Script::connected(crate::app::Plan { send: 50_000, ..quiet_plan() });
        s.world.sides[1].app.streams[0].paused = true;
        s.world.sides[1].app.streams[0].careless = true;
        s.world.sides[1].app.careless = true;
        s.hear();
        let (seq, ack) = (s.seq, s.ack);
        let near = |r: &mut Random, x: u32| match r.below(4) {
            0 => x,
            1 => x.wrapping_add(r.below(3) as u32).wrapping_sub(1),
            2 => x.wrapping_add(r.below(70_000) as u32),
            _ => x.wrapping_sub(r.below(70_000) as u32),
        };
        for _ in 0..800 {
            s.seq = near(&mut random, seq);
            s.ack = near(&mut random, ack);
            let flags = match random.below(3) {
                0 => ACK,
                1 => random.next_u32() as u8 & 0x3f & !RST,
                _ => ACK | random.next_u32() as u8 & 0x1f,
            };
            let mut options = vec![1, 1, 5, 18];
            for _ in 0..4 {
                options.extend(near(&mut random, ack).to_be_bytes());
            }
            let payload = vec![0; random.below(1500) as usize];
            s.say_with(flags, &payload, &options);
            if random.below(20) == 0 {
                s.world.run_for(Duration::from_millis(random.below(3000)));
            }
            if random.below(100) == 0 {
                s.world.crash(1);
            }
        }
        // Whatever became of it, others are served.
        s.source_port = 41_000;
        s.handshake(&[]);
    });
}

#[test]
fn a_flood_of_syns_is_bounded_and_passes() {
    let mut s = Script::new(quiet_plan());
    for i in 0..50_000u32 {
        let b = i.to_be_bytes();
        s.source = std::net::IpAddr::from([172, 16 + b[1] % 16, b[2], b[3]]).into();
        s.source_port = 1024 + (i % 60_000) as u16;
        s.say_with(SYN, &[], &[]);
        s.world.run_for(Duration::from_micros(20));
    }
    assert!(s.counter("syn_cookies_sent") > 40_000);
    assert!(s.counter("blocks") <= 64);
    s.wait(Duration::from_secs(200));
    assert_eq!(s.counter("blocks"), 1, "only the listener is left");
    s.source = s.world.sides[0].address;
    s.source_port = 40_000;
    s.handshake(&[]);
}

#[test]
fn impossible_answers_are_ignored() {
    let mut w = World::new(1, Conditions::default());
    let mut random = Random::new(1);
    App::listen(&mut w, 1, PORT, 16, plan(100_000, 100_000));
    App::connect(&mut w, 0, PORT, plan(100_000, 100_000));
    for _ in 0..2000 {
        w.step();
        let side = random.below(2) as usize;
        let request = RequestId { index: 500 + random.below(100) as u32, generation: random.below(4) as u32 };
        let packet = PacketRef {
            pool: PoolId(random.below(5) as u16 + 40),
            generation: 0,
            slot: random.next_u32(),
            offset: random.next_u32() >> random.below(32),
            len: random.next_u32() >> random.below(32),
        };
        let message = match random.below(4) {
            0 => IpToTransport::Sent { request, errno: 5 },
            1 => IpToTransport::Routed {
                request,
                errno: 0,
                source: Default::default(),
                mtu: 0,
                segment_max: u32::MAX,
                local: false,
                mss: 1,
                initial_segments: u16::MAX,
            },
            2 => IpToTransport::Error {
                packet,
                header_len: 20,
                kind: 3,
                code: 3,
                info: 0,
                offender: Default::default(),
                ttl: 64,
                tos: 0,
                zone: 0,
            },
            _ => IpToTransport::Deliver {
                packet,
                header_len: random.below(200) as u16,
                checksum_ok: true,
                segment_size: 0,
                zone: random.below(3) as u16,
                interface: 0,
            },
        };
        let s = w.at(side);
        s.receive(ComponentId::IP, In::Ip(message));
        // The packet was not ours: the reply for it is not counted either.
        let kept: Vec<_> = s
            .host
            .out
            .drain()
            .filter(|o| {
                !matches!(o, eft_transport::Out::Ip(eft_messages::transport::TransportToIp::Done { packet: p }) if *p == packet)
            })
            .collect();
        for o in kept {
            s.host.out.push(o);
        }
        w.turn(side);
    }
    run_to_end(&mut w);
}

/// An ICMP error about `quote`, as ip passes it.
fn icmp(s: &mut Script, quote: &[u8], kind: u8, code: u8, mtu: u16) {
    s.world.at(1).deliver_error(quote, Quote::new(kind, code, mtu));
    s.world.turn(1);
}

#[test]
fn fragmentation_needed_lowers_the_segment_size_if_it_is_about_us() {
    let (mut s, _) = Script::connected(crate::app::Plan { send: 20_000, ..quiet_plan() });
    s.hear();
    let local = (s.world.sides[1].address, PORT);
    let remote = (s.source, s.source_port);
    let base = s.ack;
    let forged = segment(local, remote, (base.wrapping_sub(90_000), 0), ACK, 0, &[], &[]);
    icmp(&mut s, &forged.bytes[..28], 3, 4, 600);
    assert_eq!(s.counter("drop_icmp"), 1);
    assert!(s.hear().is_empty());
    let real = segment(local, remote, (base, 0), ACK, 0, &[], &[]);
    icmp(&mut s, &real.bytes[..28], 3, 4, 700);
    s.ack = base.wrapping_add(1000);
    s.say(ACK, &[]);
    let sizes: Vec<usize> = s
        .world
        .capture
        .as_ref()
        .unwrap()
        .iter()
        .rev()
        .take(3)
        .map(|(_, _, p)| p.segment_size as usize)
        .collect();
    assert!(sizes.contains(&660), "{sizes:?}");
    // Nothing lowers it without bound.
    let again = segment(local, remote, (s.ack, 0), ACK, 0, &[], &[]);
    icmp(&mut s, &again.bytes[..28], 3, 4, 68);
    let socket = s.world.sides[1].app.streams[0].socket;
    s.world.run_for(Duration::from_secs(1));
    assert_eq!(s.world.sides[1].page(socket).info().mss, 552 - 40);
}

#[test]
fn unreachable_ends_an_attempt_and_nothing_else() {
    for (code, errno) in [(3, ECONNREFUSED), (1, EHOSTUNREACH)] {
        let (mut s, _) = Script::connected(crate::app::Plan { send: 500, ..quiet_plan() });
        let local = (s.world.sides[1].address, PORT);
        let remote = (s.source, s.source_port);
        let quote = segment(local, remote, (s.ack, 0), ACK, 0, &[], &[]);
        icmp(&mut s, &quote.bytes[..28], 3, code, 0);
        assert_eq!(s.counter("icmp_applied"), 1);
        assert!(!s.world.sides[1].app.streams[0].hung_up, "an established connection survives");
        App::connect(&mut s.world, 1, 5555, quiet_plan());
        let syn = s.world.capture.as_ref().unwrap().last().unwrap().2.clone();
        assert_eq!(syn.flags(), SYN);
        icmp(&mut s, &syn.bytes[..28], 3, code, 0);
        assert_eq!(s.world.sides[1].app.streams[1].error, errno);
        // It lies in the error queue, too, with the segment that it is about.
        let page = s.world.sides[1].page(s.world.sides[1].app.streams[1].socket);
        assert!(page.has_errors());
        let mut segment = [0; QUOTE_MAX];
        let error = page.read_refusal(&mut segment);
        assert_eq!((error.errno, error.kind, error.code, error.port), (errno, 3, code, 5555));
        assert_eq!(&segment[..error.len as usize], &syn.bytes[20..28]);
    }
}

#[test]
fn a_damaged_arena_kills_no_server() {
    for_seeds(60, |seed| {
        let mut random = Random::new(seed);
        let mut w = World::new(seed, Conditions::default());
        App::listen(&mut w, 1, PORT, 16, plan(0, 200_000));
        for _ in 0..4 {
            App::connect(&mut w, 0, PORT, plan(200_000, 0));
        }
        w.run_until(Duration::from_secs(5), |w| w.sides[0].counter("sent_bytes") > 200_000);
        w.lenient = true;
        for s in &mut w.sides {
            s.app.careless = true;
            s.app.streams.iter_mut().for_each(|s| s.careless = true);
        }
        // Stray writes while the server is dead: anywhere behind the header.
        let durable = w.sides[0].durable.clone();
        let blocks = durable.len() as u64 - 4096;
        for _ in 0..1 + random.below(2000) {
            let at = 4096 + random.below(blocks) as usize;
            durable.write(at, &[random.next_u32() as u8]).unwrap();
        }
        w.crash(0);
        w.run_for(Duration::from_secs(20));
        // Whatever is left, the engine works.
        w.at(0).with(|tcp, cx, out| {
            assert!(Tcp::COUNTERS.len() > 10);
            tcp.flush(cx, out)
        });
    });
}

/// Where the blocks of a durable arena begin.
const BLOCKS: usize = 4096;

/// The index of the first block whose state is one of these.
fn block_in(w: &World, side: usize, states: &[State]) -> u32 {
    let state = |i: &u32| {
        let mut state = [0];
        w.sides[side].durable.read(BLOCKS + *i as usize * size_of::<Block>(), &mut state).unwrap();
        State::from_number(state[0]).is_some_and(|s| states.contains(&s))
    };
    (0..64).find(state).expect("a block")
}

const CONNECTED: &[State] = &[State::Established, State::FinWait1, State::CloseWait, State::LastAck];

#[test]
fn a_damaged_block_costs_its_own_connection() {
    // An impossible state, and possible values: without a checksum the last two would corrupt the stream.
    let flips = [
        (offset_of!(Block, state), 0xc8),
        (offset_of!(Block, snd_una) + 7, 0x60),
        (offset_of!(Block, rcv_nxt), 3),
        (offset_of!(Block, snd_una), 6),
    ];
    for (offset, flip) in flips {
        let mut w = World::new(1, Conditions::default());
        App::listen(&mut w, 1, PORT, 16, plan(0, 2_000_000));
        for _ in 0..3 {
            App::connect(&mut w, 0, PORT, plan(2_000_000, 0));
        }
        w.run_until(Duration::from_secs(5), |w| w.sides[0].counter("sent_bytes") > 1_000_000);
        let at = BLOCKS + block_in(&w, 0, CONNECTED) as usize * size_of::<Block>() + offset;
        let durable = w.sides[0].durable.clone();
        let mut byte = [0];
        durable.read(at, &mut byte).unwrap();
        durable.write(at, &[byte[0] ^ flip]).unwrap();
        w.crash(0);
        assert_eq!(w.sides[0].counter("quarantined_blocks"), 1);
        let finished = |w: &World| w.sides[1].app.streams.iter().filter(|s| s.is_done()).count();
        assert!(w.run_until(Duration::from_secs(60), |w| finished(w) == 2), "offset {offset}");
        w.run_for(Duration::from_secs(60));
        let lost = w.sides[1].app.streams.iter().filter(|s| s.error != 0 || s.hung_up).count();
        assert!(lost >= 1, "the peer of the lost one was not told");
    }
}

#[test]
fn a_listener_that_claims_to_be_its_own_child_costs_itself_only() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(0, 2_000_000));
    App::connect(&mut w, 0, PORT, plan(2_000_000, 0));
    w.run_until(Duration::from_secs(5), |w| w.sides[0].counter("sent_bytes") > 1_000_000);
    let i = block_in(&w, 1, &[State::Listen]);
    w.forge(1, i, |block, cold| {
        block.set(bit::QUEUED);
        (cold.listener, cold.listener_generation) = (i, block.generation);
    });
    assert_eq!(w.sides[1].counter("quarantined_blocks"), 1);
    assert!(w.run_until(Duration::from_secs(60), |w| w.sides[1].app.streams[0].is_done()));
}

#[test]
fn a_block_of_an_unknown_domain_is_given_up() {
    let mut w = World::new(1, Conditions::default());
    App::listen(&mut w, 1, PORT, 16, plan(0, 2_000_000));
    App::connect(&mut w, 0, PORT, plan(2_000_000, 0));
    w.run_until(Duration::from_secs(5), |w| w.sides[0].counter("sent_bytes") > 1_000_000);
    let i = block_in(&w, 0, CONNECTED);
    w.forge(0, i, |block, _| block.domain = eft_base::DomainId(99));
    assert_eq!(w.sides[0].counter("quarantined_blocks"), 1);
    assert_eq!(w.sides[0].counter("blocks"), 0);
    w.run_for(Duration::from_secs(1));
    assert!(w.sides[1].app.streams[0].hung_up, "its peer was not told");
}
