//! Sums and copies with AVX2: each lane of the sum is one lane of a register.

use core::arch::x86_64::{
    __m256i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_unpackhi_epi64, _mm256_add_epi64, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_maskload_epi64,
    _mm256_maskstore_epi64, _mm256_or_si256, _mm256_set_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi32,
    _mm256_sllv_epi64, _mm256_srlv_epi64, _mm256_storeu_si256,
};

use super::{LANES, Pair, Plain, Sum, TURNS, len, nothing};

/// Both sums of each lane so far.
#[derive(Clone, Copy)]
struct Lanes {
    a: __m256i,
    b: __m256i,
}

#[target_feature(enable = "avx2")]
pub fn sum_and_copy<T: Plain>(item: &T, to: &mut T) -> Pair {
    let mut lanes = Lanes::none();
    for at in 0..const { len::<T>() / LANES } {
        let words = load(item, at);
        store(to, at, words);
        lanes.add(words);
    }
    if const { !len::<T>().is_multiple_of(LANES) } {
        let words = load_last(item);
        store_last(to, words);
        lanes.add_some(words, last::<T>());
    }
    lanes.finish(const { nothing(len::<T>()) })
}

#[target_feature(enable = "avx2")]
pub fn sum<T: Plain>(item: &T) -> Pair {
    let mut lanes = Lanes::none();
    for at in 0..const { len::<T>() / LANES } {
        lanes.add(load(item, at));
    }
    if const { !len::<T>().is_multiple_of(LANES) } {
        lanes.add_some(load_last(item), last::<T>());
    }
    lanes.finish(const { nothing(len::<T>()) })
}

/// The `at`-th four words of an item.
#[inline]
#[target_feature(enable = "avx2")]
fn load<T: Plain>(item: &T, at: usize) -> __m256i {
    assert!(at < const { len::<T>() / LANES });
    // SAFETY: the words lie within the item (checked), and it is plain data.
    unsafe { _mm256_loadu_si256((&raw const *item).cast::<__m256i>().add(at)) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<T: Plain>(to: &mut T, at: usize, words: __m256i) {
    assert!(at < const { len::<T>() / LANES });
    // SAFETY: as in `load`; any words form a valid item.
    unsafe { _mm256_storeu_si256((&raw mut *to).cast::<__m256i>().add(at), words) };
}

/// The words behind the last group of four, filled up with zeroes.
#[inline]
#[target_feature(enable = "avx2")]
fn load_last<T: Plain>(item: &T) -> __m256i {
    // SAFETY: only words of the item are read (`last`), and it is plain data.
    unsafe {
        let behind = (&raw const *item).cast::<__m256i>().add(const { len::<T>() / LANES });
        _mm256_maskload_epi64(behind.cast(), last::<T>())
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_last<T: Plain>(to: &mut T, words: __m256i) {
    // SAFETY: only words of the item are written (`last`), and any words form a valid item.
    unsafe {
        let behind = (&raw mut *to).cast::<__m256i>().add(const { len::<T>() / LANES });
        _mm256_maskstore_epi64(behind.cast(), last::<T>(), words);
    }
}

/// All ones in the lanes that hold a word behind the last group of four.
#[inline]
#[target_feature(enable = "avx2")]
fn last<T: Plain>() -> __m256i {
    let has = |lane: usize| if lane < const { len::<T>() % LANES } { -1 } else { 0 };
    _mm256_set_epi64x(has(3), has(2), has(1), has(0))
}

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn none() -> Lanes {
        Lanes { a: _mm256_setzero_si256(), b: _mm256_setzero_si256() }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, words: __m256i) {
        self.a = _mm256_add_epi64(self.a, words);
        self.b = _mm256_add_epi64(self.b, self.step());
    }

    /// Adds to the lanes that have a word; `words` is zero in the others.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_some(&mut self, words: __m256i, which: __m256i) {
        self.a = _mm256_add_epi64(self.a, words);
        self.b = _mm256_add_epi64(self.b, _mm256_and_si256(self.step(), which));
    }

    /// What the second sum takes of the first.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn step(self) -> __m256i {
        const EXCHANGE: i32 = 0b10_11_00_01;
        _mm256_add_epi64(self.a, _mm256_shuffle_epi32::<EXCHANGE>(self.a))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish(self, [a, b]: Sum) -> Pair {
        // A pair is returned in registers, an array in memory.
        (a.wrapping_add(across::<{ TURNS[0] }>(self.a)), b.wrapping_add(across::<{ TURNS[1] }>(self.b)))
    }
}

/// The sum of all lanes, each rotated by its index times `TURN`.
#[inline]
#[target_feature(enable = "avx2")]
fn across<const TURN: u32>(lanes: __m256i) -> u64 {
    let turn = |lane: i64| lane * TURN as i64 % 64;
    let left = _mm256_set_epi64x(turn(3), turn(2), turn(1), 0);
    // A shift by all 64 bits gives zero, as a rotation by zero needs.
    let right = _mm256_set_epi64x(64 - turn(3), 64 - turn(2), 64 - turn(1), 64);
    let turned = _mm256_or_si256(_mm256_sllv_epi64(lanes, left), _mm256_srlv_epi64(lanes, right));
    let pairs = _mm_add_epi64(_mm256_castsi256_si128(turned), _mm256_extracti128_si256::<1>(turned));
    _mm_cvtsi128_si64(_mm_add_epi64(pairs, _mm_unpackhi_epi64(pairs, pairs))) as u64
}
