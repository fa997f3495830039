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
    let margins = Margins { before: 0, behind: 0 };
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
    let copied = unsafe { copy_by(quickly, is_compared, from.as_ptr(), to.as_mut_ptr(), len, margins) };
    assert_eq!(to[len], 0xa5, "not beyond the end");
    (copied, to[..len] == from)
}

#[test]
fn every_length_is_copied() {
    for len in (0..200).chain([1448, 4095, 4096, 4097, 65_536, 70_001]) {
        assert_eq!(copied(len, |_, _| {}), (Copied::Well, true), "{len}");
        let (from, mut to) = (bytes(len), vec![0; len]);
        let margins = Margins { before: 0, behind: 0 };
        // SAFETY: as above.
        assert_eq!(unsafe { copy(from.as_ptr(), to.as_mut_ptr(), len, margins) }, Copied::Well);
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

/// Copies bytes into the middle of others, by a routine that also changes the byte at `stray` of all.
fn copied_beside(len: usize, margins: Margins, stray: usize) -> (Copied, Vec<u8>) {
    const BEFORE: usize = 1000;
    let (from, mut all) = (bytes(len), vec![0xa5u8; 2 * BEFORE + len]);
    let first = all.as_mut_ptr();
    let badly = |from: *const u8, to: *mut u8, len: usize| {
        // SAFETY: both are that long, and `stray` lies within `all`.
        unsafe {
            core::ptr::copy_nonoverlapping(from, to, len);
            first.add(stray).write(u8::wrapping_sub(first.add(stray).read(), 1));
        }
    };
    // SAFETY: as above; the margins lie within `all`.
    let copied = unsafe { copy_by(badly, true, from.as_ptr(), first.add(BEFORE), len, margins) };
    assert!(all[BEFORE..][..len] == from, "the copy itself");
    all.drain(BEFORE..BEFORE + len);
    (copied, all)
}

/// As a changed bit in libc's `memmove` did, which decrements a byte before the copy.
#[test]
fn a_byte_beside_the_copy_is_put_back() {
    let margins = Margins { before: 1000, behind: 1000 };
    for stray in (1000 - 256..1000).chain(1100..1100 + 256) {
        assert_eq!(copied_beside(100, margins, stray), (Copied::Again, vec![0xa5; 2000]), "{stray}");
    }
}

#[test]
fn what_others_may_change_is_not_looked_at() {
    for (before, behind, stray) in [(0, 1000, 999), (16, 1000, 983), (1000, 0, 1100), (1000, 24, 1124)] {
        let (copied, all) = copied_beside(100, Margins { before, behind }, stray);
        assert_eq!((copied, all.iter().filter(|b| **b != 0xa5).count()), (Copied::Well, 1), "{stray}");
    }
}

/// A segment refuses margins that it does not have.
#[test]
fn margins_lie_within_the_segment() {
    let (from, to) = (crate::Segment::heap(4096), crate::Segment::heap(4096));
    let copy = |at, len, before, behind| from.copy_faithfully_to(0, &to, at, len, Margins { before, behind });
    assert_eq!(copy(96, 3900, 96, 100), Ok(Copied::Well));
    assert!(copy(96, 3900, 97, 100).is_err());
    assert!(copy(96, 3900, 96, 101).is_err());
    assert!(copy(96, 3900, 0, usize::MAX).is_err());
}
