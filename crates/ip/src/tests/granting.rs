//! Connections that the filter has granted: what passes without a question, in which order, and
//! what ends a grant.

use super::*;
use eft_messages::filter::Flow;
use std::collections::VecDeque;

const PORTS: (u16, u16) = (4000, 80);

/// A TCP segment of one connection from THEM, identified by its payload.
fn segment_in(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut s = vec![0u8; 20];
    s[..2].copy_from_slice(&PORTS.0.to_be_bytes());
    s[2..4].copy_from_slice(&PORTS.1.to_be_bytes());
    s[12] = 5 << 4;
    s[13] = flags;
    s.extend(payload);
    packet(PROTOCOL_TCP, 0, 1, &s)
}

/// One of the same connection from US.
fn segment_out(len: u32) -> SendDescriptor {
    let mut d = segment(THEM, len, 0);
    d.header[..2].copy_from_slice(&PORTS.1.to_be_bytes());
    d.header[2..4].copy_from_slice(&PORTS.0.to_be_bytes());
    d
}

fn flow() -> Flow {
    let ends = ((IpAddr::V4(US).into(), PORTS.1), (IpAddr::V4(THEM).into(), PORTS.0));
    Flow::between(ends.0, ends.1, PROTOCOL_TCP).0
}

impl Bench {
    fn filter_says(&mut self, m: FilterToIp) {
        self.with(|ip, cx, out| ip.receive(cx, ComponentId::FILTER, FromPeer::Filter(m), out));
    }

    /// Ready, and the connection has a grant.
    fn granted(by_rules: bool) -> Bench {
        let mut b = Bench::met(true);
        b.arrive(&segment_in(TCP_ACK, b"first"));
        let request = asked(&b.drain()[0]);
        b.filter_says(FilterToIp::Grant { request, by_rules });
        let given = b.drain();
        assert_eq!(deliveries(&given), 1);
        b.give_back(&given);
        b
    }
}

fn deliveries(out: &[ToPeer]) -> usize {
    let delivery = |m: &&ToPeer| matches!(m, ToPeer::Transport(_, IpToTransport::Deliver { .. }));
    out.iter().filter(delivery).count()
}

#[test]
fn ordinary_packets_of_a_granted_connection_pass_without_a_question_both_ways() {
    for by_rules in [false, true] {
        let mut b = Bench::granted(by_rules);
        let asks = b.count(Counter::FilterAsks);
        b.arrive(&segment_in(TCP_ACK | TCP_PSH, b"more"));
        b.arrive(&segment_in(TCP_ACK, b""));
        let given = b.drain();
        assert_eq!(deliveries(&given), 2);
        b.give_back(&given);
        b.send(ComponentId::TCP, 1, &segment_out(10));
        let out = b.drain();
        assert!(matches!(out[..], [ToPeer::Nic(0, IpToNic::Send { .. })]));
        b.confirm(&out);
        assert_eq!((b.count(Counter::FilterAsks), b.count(Counter::FilterGranted)), (asks, 3));
        b.drain();
        // Another connection is another question.
        b.send(ComponentId::TCP, 2, &segment(THEM, 10, 0));
        let another = asked(&b.drain()[0]);
        b.verdict(another, false);
        b.drain();
        // And the filter is told how many passed.
        b.pass(Duration::from_secs(2));
        let by_state = if by_rules { 0 } else { 3 };
        assert_eq!(b.drain(), [ToPeer::Filter(IpToFilter::Passed { packets: 3, by_state })]);
    }
}

#[test]
fn a_packet_does_not_overtake_those_that_wait_for_their_verdicts() {
    let mut b = Bench::met(true);
    let mut slots: Vec<u32> = (0..3).map(|_| b.arrive(&segment_in(TCP_ACK, b"x")).slot).collect();
    let questions: Vec<RequestId> = b.drain().iter().map(asked).collect();
    b.filter_says(FilterToIp::Grant { request: questions[0], by_rules: false });
    slots.extend((0..2).map(|_| b.arrive(&segment_in(TCP_ACK, b"x")).slot));
    b.filter_says(FilterToIp::Grant { request: questions[1], by_rules: false });
    b.verdict(questions[2], true);
    slots.push(b.arrive(&segment_in(TCP_ACK, b"x")).slot);
    assert_eq!(delivered_slots(&b.drain()), slots);
    assert_eq!(b.count(Counter::FilterAsks), 3);
    assert_eq!(b.count(Counter::StaleReply), 0);
}

fn delivered_slots(out: &[ToPeer]) -> Vec<u32> {
    let slot = |m: &ToPeer| match m {
        ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) => Some(packet.slot),
        _ => None,
    };
    out.iter().filter_map(slot).collect()
}

#[test]
fn a_packet_that_is_not_ordinary_ends_the_grant_before_the_filter_is_asked() {
    let mut b = Bench::granted(false);
    let used = b.now.as_nanos();
    b.now += Duration::from_secs(5);
    b.arrive(&segment_in(TCP_FIN | TCP_ACK, b""));
    let out = b.drain();
    let told = ToPeer::Filter(IpToFilter::Used { flow: flow(), at: used });
    assert_eq!(out[0], told);
    asked(&out[1]);
    // From then on the filter is asked about each.
    b.arrive(&segment_in(TCP_ACK, b"x"));
    asked(&b.drain()[0]);
    // The end of a grant by rules is not reported.
    let mut b = Bench::granted(true);
    b.arrive(&segment_in(TCP_RST, b""));
    asked(&b.drain()[0]);
}

#[test]
fn a_recalled_grant_is_over_and_the_filter_is_asked_about_held_packets() {
    let mut b = Bench::met(true);
    for _ in 0..2 {
        b.arrive(&segment_in(TCP_ACK, b"x"));
    }
    let questions: Vec<RequestId> = b.drain().iter().map(asked).collect();
    b.filter_says(FilterToIp::Grant { request: questions[0], by_rules: false });
    b.arrive(&segment_in(TCP_ACK, b"held"));
    b.drain();
    b.filter_says(FilterToIp::Recall { flow: flow() });
    let out = b.drain();
    assert!(matches!(out[0], ToPeer::Filter(IpToFilter::Used { .. })), "{out:?}");
    let held = asked(&out[1]);
    b.verdict(questions[1], true);
    b.verdict(held, true);
    assert_eq!(deliveries(&b.drain()), 2);
    // Recalling a grant that does not exist is answered, too: nothing passed.
    b.filter_says(FilterToIp::Recall { flow: flow() });
    assert_eq!(b.drain(), [ToPeer::Filter(IpToFilter::Used { flow: flow(), at: 0 })]);
}

#[test]
fn grants_by_rules_are_for_connections_that_send_and_end_with_the_rules() {
    let mut b = Bench::met(true);
    b.arrive(&segment_in(TCP_ACK, b""));
    let request = asked(&b.drain()[0]);
    b.filter_says(FilterToIp::Grant { request, by_rules: true });
    assert_eq!(b.count(Counter::Grants), 0);
    let mut b = Bench::granted(true);
    assert_eq!(b.count(Counter::Grants), 1);
    b.filter_says(FilterToIp::RecallByRules {});
    b.arrive(&segment_in(TCP_ACK, b"x"));
    asked(&b.drain()[0]);
    // Unused ones make room.
    let mut b = Bench::granted(true);
    b.pass(Duration::from_secs(12));
    b.drain();
    assert_eq!(b.count(Counter::Grants), 0);
}

/// A filter that answers at random times, recalls grants and dies.
#[test]
fn whatever_the_filter_does_packets_keep_their_order_and_none_is_lost() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut b = Bench::met(true);
        let (mut questions, mut sent, mut got) = (VecDeque::new(), Vec::new(), Vec::new());
        let take = |b: &mut Bench, questions: &mut VecDeque<RequestId>, got: &mut Vec<u32>| {
            for m in b.drain() {
                match m {
                    ToPeer::Filter(IpToFilter::Ask { request, .. }) => questions.push_back(request),
                    ToPeer::Transport(_, IpToTransport::Deliver { packet, .. }) => got.push(packet.slot),
                    _ => {}
                }
            }
        };
        while sent.len() < 120 {
            match random.below(20) {
                0..=8 => {
                    let flags = if random.chance(0.05) { TCP_FIN | TCP_ACK } else { TCP_ACK };
                    sent.push(b.arrive(&segment_in(flags, b"x")).slot);
                }
                9..=16 => {
                    let Some(request) = questions.pop_front() else { continue };
                    match random.chance(0.3) {
                        true => b.filter_says(FilterToIp::Grant { request, by_rules: random.chance(0.5) }),
                        false => b.verdict(request, true),
                    }
                }
                17 => b.filter_says(FilterToIp::Recall { flow: flow() }),
                18 => b.filter_says(FilterToIp::RecallByRules {}),
                _ if random.chance(0.3) => {
                    questions.clear();
                    b.reborn(ComponentId::FILTER);
                }
                _ => {}
            }
            take(&mut b, &mut questions, &mut got);
        }
        while let Some(request) = questions.pop_front() {
            b.verdict(request, true);
            take(&mut b, &mut questions, &mut got);
        }
        assert_eq!(got, sent, "seed {seed}");
        assert!(b.ip.arrivals.is_empty(), "seed {seed}");
    }
}

#[test]
fn without_rules_everything_passes_unasked_once_nothing_waits() {
    let mut b = Bench::met(true);
    b.arrive(&segment_in(TCP_ACK, b"first"));
    let first = asked(&b.drain()[0]);
    b.filter_says(FilterToIp::PassAll {});
    // It would overtake the first.
    b.arrive(&segment_in(TCP_ACK, b"second"));
    let second = asked(&b.drain()[0]);
    b.verdict(first, true);
    b.verdict(second, true);
    let given = b.drain();
    assert_eq!(deliveries(&given), 2);
    b.give_back(&given);
    let passes = |b: &mut Bench| {
        b.arrive(&segment_in(TCP_FIN | TCP_ACK, b"x"));
        let out = b.drain();
        b.give_back(&out);
        deliveries(&out) == 1 && !out.iter().any(|m| matches!(m, ToPeer::Filter(IpToFilter::Ask { .. })))
    };
    assert!(passes(&mut b) && passes(&mut b));
    assert_eq!(b.count(Counter::Grants), 0);
    // The filter hears how much has passed.
    b.pass(Duration::from_secs(2));
    let reports = b
        .drain()
        .iter()
        .filter(|m| matches!(m, ToPeer::Filter(IpToFilter::Passed { packets: 2, .. })))
        .count();
    assert_eq!(reports, 1);
    b.filter_says(FilterToIp::RecallByRules {});
    b.arrive(&segment_in(TCP_ACK, b"x"));
    let request = asked(&b.drain()[0]);
    b.filter_says(FilterToIp::PassAll {});
    b.verdict(request, true);
    b.drain();
    assert!(passes(&mut b));
    b.reborn(ComponentId::FILTER);
    b.drain();
    b.arrive(&segment_in(TCP_ACK, b"x"));
    asked(&b.drain()[0]);
}
