use super::super::durable::{self, Block, bit};
use super::*;
use crate::udp::UdpConfig;
use eft_arena::Arena;
use eft_base::errno::EAGAIN;
use eft_channel::Segment;
use eft_messages::transport::{TransportToIp, membership as step};

const GROUP: [u8; 4] = [239, 1, 2, 3];

fn a(address: [u8; 4]) -> WireAddress {
    IpAddr::from(address).into()
}

struct Bench {
    arena: Arena,
    blocks: Blocks,
    all: Memberships,
    token: u16,
    segment: Segment,
}

impl Bench {
    fn new() -> Bench {
        Bench::open(Segment::heap(durable::arena_len(&config())))
    }

    fn open(segment: Segment) -> Bench {
        let (arena, mut blocks, entries, _) =
            durable::open(segment.clone(), &config(), Default::default()).unwrap();
        for i in 0..4 {
            if !blocks[i].has(bit::USED) {
                blocks[i] = Block { flags: bit::USED, slot: i, ..Block::free(7) };
            }
        }
        let all = Memberships::open(entries, &blocks, Key([1, 2]));
        Bench { arena, blocks, all, token: 0, segment }
    }

    /// A successor opens what was committed.
    fn crash(mut self) -> Bench {
        self.blocks.seal();
        self.all.entries.seal();
        self.arena.commit();
        Bench::open(self.segment)
    }

    fn ask(&mut self, socket: u32, change: u8, group: WireAddress, source: WireAddress) -> i32 {
        self.token += 1;
        let change = Change { token: self.token, change, place: (0, group), source };
        self.all.request(socket, 7, change)
    }

    fn join(&mut self, socket: u32, group: [u8; 4]) -> i32 {
        self.ask(socket, membership::JOIN, a(group), a([0; 4]))
    }

    fn source(&mut self, socket: u32, change: u8, source: u8) -> i32 {
        self.ask(socket, change, a(GROUP), a([10, 0, 0, source]))
    }

    /// Begins a filter and names these sources.
    fn begin(&mut self, socket: u32, sources: &[u8]) {
        assert_eq!(self.ask(socket, membership::FILTER_BEGIN, a(GROUP), a([0; 4])), 0);
        for source in sources {
            assert_eq!(self.source(socket, membership::FILTER_SOURCE, *source), 0);
        }
    }

    /// Sets a whole filter.
    fn filter(&mut self, socket: u32, mode: u8, sources: &[u8]) -> i32 {
        self.begin(socket, sources);
        self.ask(socket, mode, a(GROUP), number(sources.len()))
    }

    /// The filter as it is told: the last bytes of its sources, and whether they are those that are not wanted.
    fn filter_of(&mut self, socket: u32) -> (Vec<u8>, bool) {
        let told = |b: &Bench, i| b.all.tell_filter(socket, (0, a(GROUP)), number(i));
        let (_, count) = told(self, 0);
        let excludes = count & membership::EXCLUDED != 0;
        let count = usize::from(count & !membership::EXCLUDED);
        let mut sources: Vec<u8> = (0..count).map(|i| told(self, i).0.0[15]).collect();
        assert_eq!(told(self, count).0, WireAddress::default(), "there are no more");
        sources.sort_unstable();
        (sources, excludes)
    }

    /// What ip is told until there is nothing more: step, and the last byte of the source.
    fn told(&mut self) -> Vec<(u8, u8)> {
        let mut told = Vec::new();
        while let Some(TransportToIp::Group { order, step, source, .. }) = self.all.next_step() {
            assert!(self.all.next_step().is_none(), "one is under way");
            told.push((step, source.0[15]));
            assert!(self.all.stepped(order) && !self.all.stepped(order));
        }
        told
    }

    fn admits(&self, socket: u32, source: u8) -> bool {
        self.all.admit(socket, (0, a(GROUP)), a([10, 0, 0, source]), true)
    }
}

fn number(n: usize) -> WireAddress {
    WireAddress((n as u128).to_be_bytes())
}

fn config() -> UdpConfig {
    UdpConfig { sockets: 64, ..UdpConfig::default() }
}

#[test]
fn errors_are_those_of_linux() {
    use membership::*;
    let mut b = Bench::new();
    assert_eq!(b.join(0, [10, 0, 0, 9]), EINVAL, "that is no group");
    assert_eq!(b.ask(0, LEAVE, a(GROUP), a([0; 4])), EADDRNOTAVAIL);
    assert_eq!((b.join(0, GROUP), b.join(0, GROUP)), (0, EADDRINUSE));
    // A source of a group that is not joined; a source that is not listed; one that is.
    assert_eq!((b.source(1, BLOCK, 1), b.source(0, UNBLOCK, 1)), (EINVAL, EADDRNOTAVAIL));
    assert_eq!((b.source(0, BLOCK, 1), b.source(0, BLOCK, 1)), (0, EADDRNOTAVAIL));
    assert_eq!(b.source(0, JOIN_SOURCE, 2), EINVAL, "its list says what is not wanted");
    assert_eq!(b.source(0, UNBLOCK, 1), 0);
    assert_eq!(b.source(0, JOIN_SOURCE, 2), EINVAL, "so does an empty list, once there was one");
    assert_eq!(b.ask(0, LEAVE, a(GROUP), a([0; 4])), 0);
    // The last source that leaves takes the membership along.
    assert_eq!((b.source(0, JOIN_SOURCE, 2), b.source(0, LEAVE_SOURCE, 2)), (0, 0));
    assert_eq!(b.ask(0, LEAVE, a(GROUP), a([0; 4])), EADDRNOTAVAIL);
    for source in 0..10 {
        assert_eq!(b.source(0, JOIN_SOURCE, source), 0);
    }
    assert_eq!(b.source(0, JOIN_SOURCE, 11), ENOBUFS);
    for n in 1..20 {
        assert_eq!(b.join(0, [239, 0, 0, n]), 0);
    }
    assert_eq!(b.join(0, [239, 0, 0, 20]), ENOBUFS);
}

#[test]
fn a_request_that_comes_again_is_answered_as_before() {
    let mut b = Bench::new();
    let again = |b: &mut Bench, change| {
        b.token -= 1;
        b.ask(0, change, a(GROUP), a([0; 4]))
    };
    assert_eq!((b.join(0, GROUP), again(&mut b, membership::JOIN)), (0, 0));
    let mut b = b.crash();
    b.token = 1;
    assert_eq!(again(&mut b, membership::JOIN), 0, "by the next life, too");
    assert_eq!(b.join(0, GROUP), EADDRINUSE);
    assert_eq!(again(&mut b, membership::JOIN), EADDRINUSE);
    assert_eq!((b.ask(0, membership::LEAVE, a(GROUP), a([0; 4])), again(&mut b, membership::LEAVE)), (0, 0));
}

#[test]
fn ip_is_told_what_all_sockets_together_want() {
    use membership::*;
    let mut b = Bench::new();
    assert_eq!((b.join(0, GROUP), b.told()), (0, vec![]), "ip is not there");
    b.all.ip_reborn();
    assert_eq!(b.told(), [(step::BEGIN, 0), (step::EXCLUDE, 0), (step::END, 0)]);
    // A second member changes nothing, nor does its list, since the first wants all.
    b.join(1, GROUP);
    b.source(1, BLOCK, 5);
    assert_eq!(b.told(), []);
    // What nobody wants is excluded (RFC 3376 §3.2).
    b.source(0, BLOCK, 5);
    b.source(0, BLOCK, 6);
    assert_eq!(b.told(), [(step::ADD, 5)]);
    b.source(2, JOIN_SOURCE, 5);
    assert_eq!(b.told(), [(step::REMOVE, 5)]);
    b.all.release(0);
    b.all.release(1);
    assert_eq!(b.told(), [(step::INCLUDE, 0), (step::ADD, 5)]);
    b.all.ip_reborn();
    assert_eq!(b.told(), [(step::BEGIN, 0), (step::INCLUDE, 0), (step::ADD, 5), (step::END, 0)]);
    b.all.release(2);
    assert_eq!(b.told(), [(step::REMOVE, 5)]);
    b.all.ip_reborn();
    assert_eq!(b.told(), [], "there is nothing to tell");
    assert_eq!(b.all.entries.len() as u32, b.all.free.len() as u32, "all entries are free again");
}

#[test]
fn a_socket_gets_what_its_filter_admits() {
    use membership::*;
    let mut b = Bench::new();
    assert!(b.admits(0, 1), "others' memberships suffice (IP_MULTICAST_ALL)");
    assert!(!b.all.admit(0, (0, a(GROUP)), a([10, 0, 0, 1]), false));
    b.join(0, GROUP);
    b.source(0, BLOCK, 1);
    b.source(1, JOIN_SOURCE, 1);
    let mut b = b.crash();
    assert_eq!([b.admits(0, 1), b.admits(0, 2)], [false, true]);
    assert_eq!([b.admits(1, 1), b.admits(1, 2)], [true, false]);
    assert!(b.all.admit(1, (3, a(GROUP)), a([10, 0, 0, 2]), true), "it is no member there");
    b.all.ip_reborn();
    assert_eq!(b.told(), [(step::BEGIN, 0), (step::EXCLUDE, 0), (step::END, 0)]);
}

#[test]
fn entries_of_sockets_that_are_gone_are_freed() {
    let mut b = Bench::new();
    b.join(3, GROUP);
    b.blocks[3].generation += 1;
    let b = b.crash();
    assert_eq!(b.all.free.len(), b.all.entries.len());
}

#[test]
fn a_filter_is_replaced_at_once() {
    use membership::*;
    let mut b = Bench::new();
    b.all.ip_reborn();
    assert_eq!(b.filter(0, FILTER_EXCLUDE, &[1]), EINVAL, "it is no member");
    assert_eq!(b.filter(0, FILTER_INCLUDE, &[]), EADDRNOTAVAIL);
    assert_eq!(b.ask(0, FILTER_TELL, a(GROUP), number(0)), EADDRNOTAVAIL);
    b.join(0, GROUP);
    b.source(0, BLOCK, 9);
    assert_eq!(b.filter_of(0), (vec![9], true));
    b.told();
    // Sources alone change nothing.
    b.begin(0, &[1, 2]);
    assert_eq!((b.told(), b.admits(0, 3)), (vec![], true));
    assert_eq!(b.ask(0, FILTER_INCLUDE, a(GROUP), number(2)), 0);
    assert_eq!((b.filter_of(0), b.admits(0, 1), b.admits(0, 3)), ((vec![1, 2], false), true, false));
    assert_eq!(b.told().len(), 3, "another mode, and two sources");
    assert_eq!(b.filter(0, FILTER_EXCLUDE, &[2, 3, 3]), 0);
    assert_eq!((b.filter_of(0), b.admits(0, 1), b.admits(0, 3)), ((vec![2, 3], true), true, false));
    let mut b = b.crash();
    assert_eq!(b.filter_of(0), (vec![2, 3], true));
    assert_eq!(b.filter(0, FILTER_EXCLUDE, &[]), 0);
    assert_eq!(b.filter_of(0), (vec![], true));
    assert_eq!(b.source(0, JOIN_SOURCE, 1), 0, "an empty list may get another meaning, as on Linux");
    assert_eq!(b.filter(0, FILTER_INCLUDE, &[]), 0);
    assert_eq!(b.ask(0, LEAVE, a(GROUP), a([0; 4])), EADDRNOTAVAIL, "it has left the group");
}

#[test]
fn a_filter_that_is_not_whole_changes_nothing() {
    use membership::*;
    let mut b = Bench::new();
    b.join(0, GROUP);
    b.begin(0, &[1, 2]);
    assert_eq!(b.ask(0, FILTER_INCLUDE, a(GROUP), number(3)), EAGAIN);
    assert_eq!(b.ask(0, FILTER_INCLUDE, a(GROUP), number(2)), EAGAIN, "it is to begin again");
    // The next life knows nothing of it, nor another group.
    b.begin(0, &[1, 2]);
    let mut b = b.crash();
    b.token = 100;
    assert_eq!(b.source(0, FILTER_SOURCE, 3), EAGAIN);
    b.begin(0, &[1]);
    assert_eq!(b.ask(0, FILTER_INCLUDE, a([239, 9, 9, 9]), number(1)), EAGAIN);
    b.begin(0, &(0..10).collect::<Vec<u8>>());
    assert_eq!(b.source(0, FILTER_SOURCE, 11), ENOBUFS);
    b.all.release(0);
    assert_eq!(b.source(0, FILTER_SOURCE, 1), EAGAIN);
    b.all.release(0);
    assert_eq!(b.all.free.len(), b.all.entries.len());
}
