use super::*;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// Copies by a routine that treats each piece as `badly` says.
fn copied(len: usize, badly: impl Fn(usize, &mut [u8])) -> (Copied, bool) {
    copied_as(true, len, badly)
}

fn copied_as(is_compared: bool, len: usize, badly: impl Fn(usize, &mut [u8])) -> (Copied, bool) {
    let (from, mut to) = (bytes(len), vec![0xa5; len + 1]);
    let pieces = Cell::new(0);
    let quickly = |from: *const u8, to: *mut u8, len: usize| {
        // SAFETY: `copy_by` passes ranges of the two vectors.
        let to = unsafe {
            core::ptr::copy_nonoverlapping(from, to, len);
            core::slice::from_raw_parts_mut(to, len)
        };
        badly(pieces.replace(pieces.get() + 1), to);
    };
    // SAFETY: both vectors are as long, and are not used meanwhile.
    let copied = unsafe { copy_by(quickly, is_compared, from.as_ptr(), to.as_mut_ptr(), len) };
    assert_eq!(to[len], 0xa5, "not beyond the end");
    (copied, to[..len] == from)
}

#[test]
fn every_length_is_copied() {
    for len in (0..200).chain([1448, 4095, 4096, 4097, 65_536, 70_001]) {
        assert_eq!(copied(len, |_, _| {}), (Copied::Well, true), "{len}");
        let (from, mut to) = (bytes(len), vec![0; len]);
        // SAFETY: as above.
        assert_eq!(unsafe { copy(from.as_ptr(), to.as_mut_ptr(), len) }, Copied::Well);
        assert!(to == from, "{len}");
    }
}

#[test]
fn a_wrong_byte_anywhere_is_put_right() {
    for len in [1, 63, 64, 65, 127, 1448] {
        for at in 0..len {
            assert_eq!(copied(len, |_, to| to[at] ^= 1 << (at % 8)), (Copied::Again, true), "{at} of {len}");
        }
    }
}

#[test]
fn what_is_not_compared_is_believed() {
    assert_eq!(copied_as(false, 2 * PIECE, |_, to| to[7] ^= 1), (Copied::Well, false));
}

#[test]
fn a_routine_that_stops_early_in_a_later_piece_is_found() {
    let badly = |piece: usize, to: &mut [u8]| {
        if piece == 2 {
            let half = to.len() / 2;
            to[half..].fill(0);
        }
    };
    assert_eq!(copied(3 * PIECE, badly), (Copied::Again, true));
    assert_eq!(copied(2 * PIECE, badly), (Copied::Well, true));
}

#[test]
fn ranges_that_differ_in_one_bit_differ() {
    let one = bytes(300);
    for bit in 0..300 * 8 {
        let mut other = one.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        for len in [300, bit / 8 + 1] {
            // SAFETY: both are that long.
            assert!(unsafe { differs(one.as_ptr(), other.as_ptr(), len) }, "{bit}");
        }
        // SAFETY: as above.
        assert!(!unsafe { differs(one.as_ptr(), other.as_ptr(), bit / 8) }, "not beyond the end");
    }
}
