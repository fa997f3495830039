use super::super::message::tests::reply;
use super::*;

const NOW: Instant = Instant::from_millis(1_000_000);
const OURS: Ipv6Addr = Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 9);

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

struct Bench {
    client: Client,
    now: Instant,
    random: Random,
}

impl Bench {
    fn new(mode: Mode) -> Bench {
        let mut b =
            Bench { client: Client::new("eft0", &Identity([1, 2]), None), now: NOW, random: Random::new(3) };
        b.client.start(NOW, &mut b.random);
        b.client.set_mode(NOW, mode, &mut b.random);
        b
    }

    /// The kind of the next message within this time.
    fn says(&mut self, most: Duration) -> Option<u8> {
        let end = self.now + most;
        while let Some(at) = self.client.deadline(self.now).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            if let Some(message) = self.client.expire(self.now, &mut self.random) {
                return Some(message[0]);
            }
        }
        self.now = end;
        None
    }

    fn answer(&mut self, kind: u8, leased: Option<(Ipv6Addr, u32, u32)>, more: &[(u16, &[u8])]) {
        let duid = self.client.duid.clone();
        let more: Vec<(u16, &[u8])> = [(1, &duid[..])].into_iter().chain(more.iter().copied()).collect();
        let bytes = reply(kind, self.client.xid, self.client.iaid, leased, &more);
        self.client.receive(self.now, &bytes, &mut self.random);
    }

    fn bound(preferred: u32, valid: u32) -> Bench {
        let mut b = Bench::new(Mode::Addresses);
        assert_eq!(b.says(seconds(2)), Some(1));
        b.answer(2, Some((OURS, preferred, valid)), &[]);
        assert_eq!(b.says(seconds(2)), Some(3), "after the time for better offers");
        b.answer(7, Some((OURS, preferred, valid)), &[]);
        assert_eq!(b.client.lease.as_ref().unwrap().addresses[0].address, OURS);
        b
    }
}

#[test]
fn an_offer_is_requested_and_the_best_is_taken_at_once() {
    Bench::bound(500, 1000);
    let mut b = Bench::new(Mode::Addresses);
    b.says(seconds(2));
    b.answer(2, Some((OURS, 500, 1000)), &[(7, &[255])]);
    assert_eq!(b.says(Duration::ZERO), Some(3));
}

#[test]
fn a_lease_is_renewed_rebound_and_ends() {
    let mut b = Bench::bound(4000, 5000);
    let began = b.now;
    assert_eq!(b.says(seconds(9000)), Some(5));
    assert_eq!((b.now - began).as_secs(), 2000);
    let mut kinds = Vec::new();
    while let Some(kind) = b.says(seconds(9000)) {
        kinds.push(kind);
        if kind == 1 {
            break;
        }
    }
    kinds.dedup();
    assert_eq!(kinds, [5, 6, 1], "renew, rebind, and anew");
    assert_eq!((b.client.lease.clone(), (b.now - began).as_secs()), (None, 5000));
    // An answer makes it whole again.
    let mut b = Bench::bound(4000, 5000);
    b.says(seconds(9000));
    b.answer(7, Some((OURS, 4000, 5000)), &[]);
    assert_eq!(b.client.lease.as_ref().unwrap().addresses[0].valid, Some(b.now + seconds(5000)));
    // A lifetime of zero takes it.
    b.says(seconds(9000));
    b.answer(7, Some((OURS, 0, 0)), &[]);
    assert_eq!((b.client.lease.clone(), b.says(seconds(2))), (None, Some(1)));
}

#[test]
fn a_server_that_does_not_know_the_client_is_asked_for_the_same() {
    let mut b = Bench::bound(4000, 5000);
    b.says(seconds(9000));
    b.answer(7, None, &[(13, &[0, 3])]);
    assert_eq!(b.says(seconds(1)), Some(3));
    assert!(b.client.lease.is_some());
}

#[test]
fn another_link_is_asked_whether_the_address_fits() {
    let mut b = Bench::bound(4000, 5000);
    b.client.start(b.now, &mut b.random);
    assert_eq!(b.says(seconds(2)), Some(4));
    b.answer(7, None, &[(13, &[0, 4])]);
    assert_eq!((b.client.lease.clone(), b.says(seconds(2))), (None, Some(1)));
    // Nobody answers: used on.
    let mut b = Bench::bound(4000, 5000);
    b.client.start(b.now, &mut b.random);
    while b.says(seconds(11)).is_some() {}
    assert!(b.client.lease.is_some() && !b.client.awaits_answer());
}

#[test]
fn an_address_that_another_host_has_is_declined_and_one_is_released() {
    let mut b = Bench::bound(4000, 5000);
    b.client.conflict(b.now, OURS, &mut b.random);
    assert_eq!((b.client.lease.clone(), b.says(seconds(2))), (None, Some(9)));
    b.answer(7, None, &[]);
    assert_eq!(b.says(seconds(2)), Some(1));
    let mut b = Bench::bound(4000, 5000);
    assert_eq!(b.client.release(&mut b.random).map(|m| m[0]), Some(8));
    assert_eq!(b.says(seconds(99999)), None);
}

#[test]
fn settings_alone_are_asked_for_where_routers_say_so() {
    let mut b = Bench::new(Mode::Nothing);
    assert_eq!(b.says(seconds(9999)), None);
    b.client.set_mode(b.now, Mode::Information, &mut b.random);
    assert_eq!(b.says(seconds(2)), Some(11));
    let dns = Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 0x53).octets();
    b.answer(7, None, &[(23, &dns)]);
    assert_eq!(b.client.lease.as_ref().unwrap().name_servers, [Ipv6Addr::from(dns)]);
    assert_eq!(b.says(seconds(86399)), None);
    assert_eq!(b.says(seconds(2)), Some(11));
}
