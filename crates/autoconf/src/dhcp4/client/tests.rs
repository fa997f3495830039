use super::super::message::tests::reply;
use super::*;

const NOW: Instant = Instant::from_millis(1_000_000);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 5, 9);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 5, 1);

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A client with its clock.
struct Bench {
    client: Client,
    now: Instant,
    random: Random,
}

/// Message type, receiver, addresses that it has and asks for.
type Said = (u8, To, Ipv4Addr, Option<Ipv4Addr>);

impl Bench {
    fn new() -> Bench {
        let client = Client::new("eft0", &Identity([1, 2]), None);
        let mut b = Bench { client, now: NOW, random: Random::new(5) };
        b.client.start(NOW, MAC, &mut b.random);
        b
    }

    /// Lets time pass until something is sent, or for so long.
    fn next(&mut self, most: Duration) -> Option<Send> {
        let end = self.now + most;
        while let Some(at) = self.client.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            if let Some(send) = self.client.expire(self.now, &mut self.random) {
                return Some(send);
            }
        }
        self.now = end;
        None
    }

    fn says(&mut self, most: Duration) -> Option<Said> {
        self.next(most).map(|send| said(&send))
    }

    fn answer(&mut self, kind: u8, address: Ipv4Addr, lease_s: u32) {
        let options: &[(u8, &[u8])] = &[
            (53, &[kind]),
            (54, &SERVER.octets()),
            (51, &lease_s.to_be_bytes()),
            (1, &[255, 255, 255, 0]),
            (3, &SERVER.octets()),
        ];
        let bytes = reply(self.client.xid, address.octets(), options);
        self.client.receive(self.now, &bytes, &mut self.random);
    }

    /// Has a lease for so long.
    fn bound(lease_s: u32) -> Bench {
        let mut b = Bench::new();
        b.next(seconds(1));
        b.answer(2, OURS, lease_s);
        b.next(seconds(1));
        b.answer(5, OURS, lease_s);
        for _ in 0..PROBES {
            assert_eq!(b.next(seconds(1)), Some(Send::Probe(OURS)));
            assert_eq!(b.client.lease, None, "not before it was tried out");
        }
        assert_eq!(b.next(seconds(1)), None);
        assert_eq!(b.client.lease.as_ref().map(|lease| lease.address), Some(OURS));
        b
    }
}

fn said(send: &Send) -> Said {
    let Send::Message { to, bytes } = send else { panic!("{send:?}") };
    let mut options = &bytes[240..];
    let (mut kind, mut requested) = (0, None);
    while let [k, len, rest @ ..] = options
        && *k != 255
    {
        match k {
            53 => kind = rest[0],
            50 => requested = Some(Ipv4Addr::from(<[u8; 4]>::try_from(&rest[..4]).unwrap())),
            _ => {}
        }
        options = &rest[*len as usize..];
    }
    (kind, *to, Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[12..16]).unwrap()), requested)
}

const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

#[test]
fn an_offer_is_requested_acknowledged_and_tried_out() {
    let mut b = Bench::new();
    assert_eq!(b.says(seconds(1)), Some((1, To::All, NONE, None)));
    b.answer(2, OURS, 600);
    assert_eq!(b.says(seconds(1)), Some((3, To::All, NONE, Some(OURS))));
    // Another address than the requested one, and another server's word, are no acknowledgement.
    b.answer(5, Ipv4Addr::new(10, 0, 5, 8), 600);
    assert_eq!(b.client.probed(), None);
    b.answer(5, OURS, 600);
    assert_eq!(b.client.probed(), Some(OURS));
    let lease = Bench::bound(600).client.lease.unwrap();
    assert_eq!((lease.prefix_len, lease.server, lease.routes.len()), (24, SERVER, 1));
}

#[test]
fn without_an_answer_it_asks_again_at_growing_intervals() {
    let mut b = Bench::new();
    let mut times = Vec::new();
    while b.says(seconds(200)) == Some((1, To::All, NONE, None)) && times.len() < 8 {
        times.push(b.now);
    }
    let gaps: Vec<u64> = times.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
    assert_eq!(gaps.len(), 7);
    for (gap, about) in gaps.iter().zip([4, 8, 16, 32, 64, 64, 64]) {
        assert!(gap.abs_diff(about) <= 1, "{gaps:?}");
    }
    // A server that offers and then says nothing more: it begins anew.
    b.answer(2, OURS, 600);
    for _ in 0..REQUESTS_MAX {
        assert_eq!(b.says(seconds(200)).unwrap().0, 3);
    }
    assert_eq!(b.says(seconds(200)).unwrap().0, 1);
}

#[test]
fn a_lease_is_renewed_by_its_server_and_then_rebound_by_any() {
    let mut b = Bench::bound(4000);
    let began = b.now;
    assert_eq!(b.says(seconds(4000)), Some((3, To::Server { server: SERVER, from: OURS }, OURS, None)));
    let at = (b.now - began).as_secs();
    assert!((1900..=2000).contains(&at), "renewed after {at} s of 4000");
    // No answer: again at half the time that is left until the lease is rebound.
    let (mut renewals, mut rebinds) = (1, 0);
    let last = loop {
        match b.says(seconds(4000)).unwrap() {
            (3, To::Server { .. }, ..) if rebinds == 0 => renewals += 1,
            (3, To::AllFrom(OURS), OURS, None) => rebinds += 1,
            other => break other,
        }
        assert!(b.client.lease.is_some());
    };
    assert!((4..=7).contains(&renewals) && (2..=5).contains(&rebinds), "{renewals} and {rebinds}");
    // The lease has ended: the client begins anew.
    assert_eq!((last, b.client.lease.clone()), ((1, To::All, NONE, None), None));
    assert!((4000 - 2..=4001).contains(&(b.now - began).as_secs()));
    // An answer gives it the whole time again.
    let mut b = Bench::bound(4000);
    b.says(seconds(4000)).unwrap();
    b.answer(5, OURS, 4000);
    assert_eq!(b.client.lease.as_ref().unwrap().until, Some(b.now + seconds(4000)));
    assert_eq!(b.says(seconds(1800)), None);
}

#[test]
fn a_refused_lease_is_given_up() {
    let mut b = Bench::bound(4000);
    // Nobody asked: a refusal that comes by itself changes nothing.
    b.answer(6, NONE, 0);
    assert!(b.client.lease.is_some());
    b.says(seconds(4000)).unwrap();
    b.answer(6, NONE, 0);
    assert_eq!(b.client.lease, None);
    assert_eq!(b.says(seconds(2)), Some((1, To::All, NONE, None)));
}

#[test]
fn an_address_that_another_host_has_is_declined() {
    let mut b = Bench::new();
    b.next(seconds(1));
    b.answer(2, OURS, 600);
    b.next(seconds(1));
    b.answer(5, OURS, 600);
    b.next(seconds(1));
    let decline = b.client.conflict(b.now, &mut b.random).unwrap();
    assert_eq!(said(&decline), (4, To::All, NONE, Some(OURS)));
    assert_eq!(b.says(seconds(9)), None, "RFC 2131 §3.1: it waits");
    assert_eq!(b.says(seconds(2)), Some((1, To::All, NONE, None)));
    // In use, it is defended.
    let mut b = Bench::bound(600);
    assert_eq!(b.client.conflict(b.now, &mut b.random), None);
}

#[test]
fn a_successor_goes_on_and_another_link_is_asked() {
    let lease = Bench::bound(4000).client.lease;
    let mut next = Client::new("eft0", &Identity([1, 2]), lease.clone());
    let mut random = Random::new(7);
    next.start(NOW + seconds(10), MAC, &mut random);
    assert_eq!((next.lease.clone(), next.deadline()), (lease.clone(), lease.as_ref().unwrap().renew));
    // The cable was out: the lease stays in force while it is confirmed.
    let mut b = Bench { client: next, now: NOW + seconds(20), random };
    b.client.start(b.now, MAC, &mut b.random);
    assert_eq!(b.says(seconds(1)), Some((3, To::All, NONE, Some(OURS))));
    assert_eq!(b.client.lease, lease);
    // No server says anything: it is used on.
    while b.says(seconds(100)).is_some() {}
    assert_eq!((b.client.lease.clone(), b.client.awaits_answer()), (lease.clone(), false));
    // A lease that ended meanwhile is none.
    let mut late = Client::new("eft0", &Identity([1, 2]), lease);
    late.start(NOW + seconds(5000), MAC, &mut b.random);
    assert_eq!(late.lease, None);
}

#[test]
fn it_is_released_on_purpose() {
    let mut b = Bench::bound(600);
    let release = b.client.release(b.now, &mut b.random).unwrap();
    assert_eq!(said(&release), (7, To::Server { server: SERVER, from: OURS }, OURS, None));
    assert_eq!((b.client.lease.clone(), b.says(seconds(9999))), (None, None));
}

#[test]
fn no_offer_of_nonsense_is_taken() {
    for (address, lease_s) in [
        (Ipv4Addr::new(127, 0, 0, 1), 600),
        (Ipv4Addr::new(224, 0, 0, 1), 600),
        (Ipv4Addr::BROADCAST, 600),
        (NONE, 600),
        (Ipv4Addr::new(10, 0, 5, 255), 600),
        (OURS, 0),
    ] {
        let mut b = Bench::new();
        b.next(seconds(1));
        b.answer(2, address, lease_s);
        assert_eq!(b.client.state, State::Selecting, "{address} for {lease_s} s");
    }
    // A short lease, and the longest.
    let mut b = Bench::bound(4);
    assert_eq!(b.says(seconds(3)).unwrap().0, 3);
    let b = Bench::bound(u32::MAX);
    assert_eq!((b.client.deadline(), b.client.lease.unwrap().until), (None, None));
}
