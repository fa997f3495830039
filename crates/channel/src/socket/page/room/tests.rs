use super::super::SocketPage;
use super::*;
use crate::segment::Segment;
use crate::socket::{Arena, Geometry};
use eft_base::{ComponentId, PoolId};

const MEMORY: usize = 1 << 20;
const FIRST: usize = MEMORY / 4;
const GEOMETRY: Geometry = Geometry { slots: 1, send_len: MEMORY, receive_len: 4096 };

fn page(owner: ComponentId) -> SocketPage {
    let arena = Arena::new(Segment::heap(GEOMETRY.arena_len()), GEOMETRY).unwrap();
    let page = arena.socket(0).unwrap();
    page.reset(owner);
    page
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 16) as u8
}

/// Puts in what there is room for, at most `most` bytes. Returns how many.
fn write(page: &SocketPage, most: usize) -> usize {
    let (n, end) = (page.sendable().min(most), page.send_end());
    let bytes: alloc::vec::Vec<u8> = (end..end + n as u64).map(byte).collect();
    page.write_send(end, &bytes);
    page.set_send_end(end + n as u64);
    n
}

/// All that was not released reads as it was written, by copy and by reference.
fn check(page: &SocketPage) {
    let (from, end) = (page.send_released(), page.send_end());
    let mut bytes = alloc::vec![0; (end - from) as usize];
    page.read_send(from, &mut bytes);
    assert!((from..).zip(&bytes).all(|(at, b)| byte(at) == *b), "{from} to {end}");
    let mut referred = alloc::vec![];
    for part in page.send_refs(PoolId(1), 0, from, bytes.len()) {
        let mut piece = alloc::vec![0; part.len as usize];
        page.read_bytes(part.offset as usize, &mut piece);
        referred.extend(piece);
    }
    assert_eq!(referred, bytes);
}

#[test]
fn a_ring_begins_with_a_quarter_of_its_memory_but_takes_a_datagram() {
    let lengths = [4096, 1 << 16, 1 << 18, 1 << 20, 1 << 22].map(first_send_len);
    assert_eq!(lengths, [4096, 1 << 16, 1 << 18, 1 << 18, 1 << 20]);
}

#[test]
fn a_ring_grows_while_it_is_full_and_nothing_moves() {
    // Written in pieces of any size, and released late or at once, at whatever position the room is given.
    for (piece, behind, given_at) in
        [(1000, FIRST, 0), (65536, FIRST, 300_000), (777, 50_000, 600_000), (FIRST, FIRST, 900_000)]
    {
        let page = page(ComponentId::TCP);
        let mut grown = alloc::vec![];
        while page.send_end() < 6 * MEMORY as u64 {
            if page.send_end() >= given_at && page.send_room_set() == 0 {
                page.set_send_room(MEMORY as u32);
            }
            if write(&page, piece) == 0 || page.send_end() - page.send_released() > behind as u64 {
                check(&page);
                let room = (page.send_limit() / 3).max(1) as u64;
                page.set_send_released((page.send_released() + room).min(page.send_end()));
            }
            if page.send_end() > 0 && grown.last() != Some(&page.send_len()) {
                grown.push(page.send_len());
            }
        }
        assert_eq!(grown, [FIRST, 2 * FIRST, MEMORY]);
        assert_eq!(page.send_limit(), MEMORY);
    }
}

#[test]
fn room_that_is_no_power_of_two_is_kept() {
    let page = page(ComponentId::TCP);
    page.set_send_room(FIRST as u32 + 1000);
    assert_eq!([write(&page, MEMORY), write(&page, MEMORY), page.sendable()], [FIRST, 1000, 0]);
    assert_eq!(page.send_limit(), FIRST + 1000);
    check(&page);
}

#[test]
fn so_sndbuf_makes_room_too() {
    let page = page(ComponentId::TCP);
    page.set_option(Opt::SendBuffer, MEMORY as u32);
    let written: alloc::vec::Vec<usize> = (0..4).map(|_| write(&page, MEMORY)).collect();
    assert_eq!(written, [FIRST, FIRST, 2 * FIRST, 0]);
    check(&page);
    page.set_option(Opt::SendBuffer, 5000);
    page.set_send_released(page.send_end());
    assert_eq!(page.sendable(), 5000);
}

/// The ring was filled before anybody knew that it should grow: it grows when there is room again.
#[test]
fn a_full_ring_grows_where_it_stands() {
    let page = page(ComponentId::TCP);
    assert_eq!((write(&page, MEMORY), page.sendable()), (FIRST, 0));
    page.set_send_room(MEMORY as u32);
    assert_eq!(write(&page, MEMORY), FIRST);
    check(&page);
    // Given too late, it waits until it has been filled twice more.
    page.set_send_released(page.send_end());
    page.set_send_room(0);
    write(&page, 1000);
    page.set_send_room(MEMORY as u32);
    let mut written = 1000;
    while page.send_len() == 2 * FIRST {
        page.set_send_released(page.send_end());
        written += write(&page, 10_000);
        check(&page);
    }
    assert_eq!(written, 4 * FIRST + 10_000);
}

#[test]
fn the_ring_of_datagrams_does_not_grow() {
    let page = page(ComponentId::UDP);
    page.set_option(Opt::SendBuffer, MEMORY as u32);
    page.set_send_room(MEMORY as u32);
    page.set_send_end(FIRST as u64 - 100);
    page.set_send_released(FIRST as u64 - 100);
    assert_eq!(page.sendable(), FIRST);
    page.set_send_end(FIRST as u64);
    assert_eq!(page.send_len(), FIRST);
}

#[test]
fn impossible_lengths_are_those_of_a_new_ring() {
    let page = page(ComponentId::TCP);
    for len in [0, 1, 4096, FIRST as u32 / 2, FIRST as u32 + 1, 2 * MEMORY as u32, u32::MAX] {
        page.store_u32(SEND_RING, len);
        assert_eq!(page.send_len(), FIRST, "{len}");
    }
}
