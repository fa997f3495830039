//! A range of memory that several processes map.
//!
//! All access is bounds-checked and by copy or by atomic: no `&[u8]` into memory that a peer may be
//! writing ever leaves this file, so a racing peer can change what is copied but not the soundness
//! of the copier.

mod faithful;

pub use faithful::{Copied, Margins};

use crate::shared::{Keep, Shared};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The access would leave the segment, is misaligned, or writes to a read-only mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds;

/// A mapped memory segment. Cloning shares the mapping.
#[derive(Clone)]
pub struct Segment {
    pointer: NonNull<u8>,
    len: usize,
    writable: bool,
    keep: Keep,
}

// SAFETY: access goes through copies and atomics; the mapping lives as long as `keep`.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// A sum of where it is mapped, its length, and how it is cut. A changed bit of these leads to bytes that lie elsewhere, and nobody
    /// after that can tell them from right ones.
    #[inline]
    pub(crate) fn sum_of_place(&self, [a, b, c]: [usize; 3]) -> usize {
        let words = [self.pointer.as_ptr() as usize, self.len, a, b, c];
        words.into_iter().fold(0, |sum: usize, word| sum.rotate_left(13) ^ word)
    }

    /// A segment of zeroes on the heap: the simulator's shared memory.
    pub fn heap(len: usize) -> Segment {
        // Queue lines are aligned to 64 bytes, a Vec of words is not: 64 bytes more leave room.
        let mut words: Vec<u64> = vec![0; len.div_ceil(8) + 8];
        let start = words.as_mut_ptr().cast::<u8>();
        // SAFETY: the vector has 64 bytes more than `len`.
        let aligned = unsafe { start.add(start.align_offset(64)) };
        let pointer = NonNull::new(aligned).unwrap_or(NonNull::dangling());
        Segment { pointer, len, writable: true, keep: Arc::new(words) }
    }

    /// # Safety
    /// `pointer..pointer+len` must stay mapped (read-write if `writable`, else at least readable)
    /// while `keep` lives, and be aligned to 64 bytes.
    pub unsafe fn from_raw(pointer: NonNull<u8>, len: usize, writable: bool, keep: Keep) -> Segment {
        Segment { pointer, len, writable, keep }
    }

    /// The same memory without the right to write: what a peer process gets.
    pub fn read_only(&self) -> Segment {
        Segment { writable: false, ..self.clone() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Where the mapping starts, for system calls that take addresses (`writev`, futex).
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    #[inline]
    fn check(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        let end = offset.checked_add(len).ok_or(OutOfBounds)?;
        if end > self.len {
            return Err(OutOfBounds);
        }
        // SAFETY: offset lies within the mapping.
        Ok(unsafe { self.pointer.as_ptr().add(offset) })
    }

    fn check_write(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        if !self.writable {
            return Err(OutOfBounds);
        }
        self.check(offset, len)
    }

    /// The address of `len` bytes at `offset`, for the device calls of a world.
    pub fn range(&self, offset: usize, len: usize) -> Result<*const u8, OutOfBounds> {
        self.check(offset, len).map(|p| p.cast_const())
    }

    /// As [`Segment::range`], for devices that fill memory.
    pub fn range_mut(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        self.check_write(offset, len)
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), OutOfBounds> {
        let from = self.check(offset, to.len())?;
        // SAFETY: checked; `to` is ours, so the ranges do not overlap. A peer that writes meanwhile
        // only changes which bytes are copied.
        unsafe { core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        let to = self.check_write(offset, from.len())?;
        // SAFETY: as in `read`.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    /// Copies between segments (they may be the same one; overlapping is allowed).
    pub fn copy_to(
        &self,
        offset: usize,
        to: &Segment,
        to_offset: usize,
        len: usize,
    ) -> Result<(), OutOfBounds> {
        let from = self.check(offset, len)?;
        let to = to.check_write(to_offset, len)?;
        // SAFETY: both ranges are checked; `copy` allows overlap.
        unsafe { core::ptr::copy(from, to, len) };
        Ok(())
    }

    /// As [`Segment::copy_to`] another segment, and looks whether all is there and whether its margins are as before.
    pub fn copy_faithfully_to(
        &self,
        offset: usize,
        to: &Segment,
        to_offset: usize,
        len: usize,
        margins: Margins,
    ) -> Result<Copied, OutOfBounds> {
        let from = self.check(offset, len)?;
        let first = to_offset.checked_sub(margins.before).ok_or(OutOfBounds)?;
        let all = len
            .checked_add(margins.before)
            .and_then(|len| len.checked_add(margins.behind))
            .ok_or(OutOfBounds)?;
        // SAFETY: the margin before it lies within the mapping, too.
        let to = unsafe { to.check_write(first, all)?.add(margins.before) };
        if from.addr().abs_diff(to.addr()) < len {
            return Err(OutOfBounds);
        }
        // SAFETY: both ranges and the margins are checked, and the ranges do not overlap.
        Ok(unsafe { faithful::copy(from, to, len, margins) })
    }

    pub fn fill(&self, offset: usize, len: usize, byte: u8) -> Result<(), OutOfBounds> {
        let to = self.check_write(offset, len)?;
        // SAFETY: checked.
        unsafe { core::ptr::write_bytes(to, byte, len) };
        Ok(())
    }

    /// A shared atomic. The caller must not store to it through a read-only mapping (it faults).
    #[inline]
    pub fn atomic_u32(&self, offset: usize) -> Result<&AtomicU32, OutOfBounds> {
        let p = self.check(offset, 4)?;
        if !(p as usize).is_multiple_of(4) {
            return Err(OutOfBounds);
        }
        // SAFETY: in bounds, aligned, alive as long as `self`.
        Ok(unsafe { &*p.cast::<AtomicU32>() })
    }

    #[inline]
    pub fn atomic_u64(&self, offset: usize) -> Result<&AtomicU64, OutOfBounds> {
        let p = self.check(offset, 8)?;
        if !(p as usize).is_multiple_of(8) {
            return Err(OutOfBounds);
        }
        // SAFETY: as above.
        Ok(unsafe { &*p.cast::<AtomicU64>() })
    }

    /// A reference to something made of atomics.
    ///
    /// # Safety
    /// As [`Segment::shared`].
    #[cfg(not(loom))]
    pub(crate) unsafe fn view<T>(&self, offset: usize) -> Result<&T, OutOfBounds> {
        let p = self.check(offset, size_of::<T>())?;
        if !(p as usize).is_multiple_of(align_of::<T>()) {
            return Err(OutOfBounds);
        }
        // SAFETY: in bounds, aligned, alive as long as `self`; any bytes are a `T`, as the caller says.
        Ok(unsafe { &*p.cast::<T>() })
    }

    /// A typed view made of atomics that keeps the mapping alive.
    ///
    /// # Safety
    /// `T` must consist of atomics only (every bit pattern valid, interior mutability).
    pub unsafe fn shared<T>(&self, offset: usize) -> Result<Shared<T>, OutOfBounds> {
        let p = self.check(offset, size_of::<T>())?;
        if !(p as usize).is_multiple_of(align_of::<T>()) {
            return Err(OutOfBounds);
        }
        let pointer = NonNull::new(p.cast::<T>()).ok_or(OutOfBounds)?;
        // SAFETY: in bounds and aligned; `keep` holds the mapping.
        Ok(unsafe { Shared::from_raw(pointer, self.keep.clone()) })
    }

    /// # Safety
    /// As [`Segment::shared`].
    pub unsafe fn shared_slice<T>(&self, offset: usize, count: usize) -> Result<Shared<[T]>, OutOfBounds> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(OutOfBounds)?;
        let p = self.check(offset, bytes)?;
        if !(p as usize).is_multiple_of(align_of::<T>()) {
            return Err(OutOfBounds);
        }
        let pointer =
            NonNull::new(core::ptr::slice_from_raw_parts_mut(p.cast::<T>(), count)).ok_or(OutOfBounds)?;
        // SAFETY: in bounds and aligned; `keep` holds the mapping.
        Ok(unsafe { Shared::from_raw(pointer, self.keep.clone()) })
    }

    /// Exclusive access to plain data, for an arena that only one process maps at a time.
    ///
    /// # Safety
    /// No other reference to the range, in this or any process, may be in use while the result lives.
    /// The supervisor ensures that: an arena is mapped by one server, and by its successor only after
    /// its death.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn exclusive<T: zerocopy::FromBytes + zerocopy::IntoBytes>(
        &self,
        offset: usize,
    ) -> Result<&mut T, OutOfBounds> {
        let p = self.check_write(offset, size_of::<T>())?;
        if !(p as usize).is_multiple_of(align_of::<T>()) {
            return Err(OutOfBounds);
        }
        // SAFETY: in bounds, aligned, any bit pattern is a T; exclusivity by the caller.
        Ok(unsafe { &mut *p.cast::<T>() })
    }
}

#[cfg(test)]
mod tests;
