//! Looks whether the program in memory is still what it was: a changed bit of code may let a server live and work wrongly, and no
//! watch on its progress would see it.
//!
//! Everything that is mapped and cannot be written is summed in small pieces: the program, its libraries, and the code with which the
//! kernel tells the time ([vdso]). The first round takes the sums, each later one compares. One round takes a second of a
//! server that works, and a thousandth of its time or two. A server that has worked wakes some more times, after much work until it
//! has seen all of its program, for wrong code may be why nobody has anything for it any more; then it sleeps undisturbed.

use eft_base::Instant;
use std::time::Duration;

/// Bytes that are summed at a time.
const PIECE: usize = 4096;
/// Time between two pieces: 16 MB in a second.
const PAUSE: Duration = Duration::from_micros(250);
/// How long a server sleeps that has not looked at what its work is worth.
const NAP: Duration = Duration::from_millis(20);
/// Most pieces at a time, after a longer turn or a sleep: what is due after a nap, some 30 us.
const PIECES_MAX: u128 = NAP.as_nanos() / PAUSE.as_nanos();
/// A broken clock may stand still, so a piece of the code that tells the time is looked at each so many times, whatever the time.
const EVERY: u32 = 64;

/// Looks at memory that nobody writes.
pub struct Scrub {
    all: Rounds,
    /// Those of a round of all.
    pieces: usize,
    clock: Rounds,
    looks: u32,
    looked: Instant,
    /// Pieces that the work since is worth.
    left: usize,
}

impl Scrub {
    /// What this process consists of and cannot write.
    pub fn of_program(now: Instant) -> Scrub {
        let mut ranges: Vec<Range> = Vec::new();
        // SAFETY: `collect` gets the vector that lives through the call, and the lists of libraries that live as long as the
        // process, since nothing is unloaded.
        unsafe { libc::dl_iterate_phdr(Some(collect), std::ptr::from_mut(&mut ranges).cast()) };
        // SAFETY: plain call.
        let kernels = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        let clock = ranges.iter().copied().filter(|range| range.covers(kernels)).collect();
        let all = Rounds::of(ranges);
        Scrub { pieces: all.pieces(), all, clock: Rounds::of(clock), looks: 0, looked: now, left: 0 }
    }

    /// The program has handled so many messages, frames or timers. One alone, such as a NIC's look at its link, is worth one nap.
    pub fn worked(&mut self, work: usize) {
        let more = work.saturating_mul(PIECES_MAX as usize);
        self.left = self.left.saturating_add(more).min(self.pieces);
    }

    /// When to go on at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        (self.left > 0).then(|| self.looked + NAP)
    }

    /// Takes the sums of so many pieces beforehand, as far as they are not known yet. A supervisor handles few messages, and may
    /// live shorter than a round takes.
    pub fn take_sums(&mut self, pieces: usize) {
        let missing = self.pieces - self.all.sums.len();
        for _ in 0..pieces.min(missing) {
            self.all.go_on();
        }
    }

    /// Looks at so many pieces, if the work is worth them. True: something has changed.
    pub fn look_at(&mut self, pieces: usize) -> bool {
        let pieces = pieces.min(self.left);
        self.left -= pieces;
        (0..pieces).fold(false, |changed, _| changed | self.all.go_on())
    }

    /// Looks at what is due. True: something has changed.
    pub fn look(&mut self, now: Instant) -> bool {
        self.looks = self.looks.wrapping_add(1);
        let mut changed = self.looks.is_multiple_of(EVERY) && self.clock.go_on();
        let due = now.saturating_since(self.looked).as_nanos() / PAUSE.as_nanos();
        if due > 0 || now < self.looked {
            self.looked = now;
        }
        for _ in 0..due.min(PIECES_MAX) {
            changed |= self.all.go_on();
            self.left = self.left.saturating_sub(1);
        }
        changed
    }
}

/// Memory that can be read until the process ends.
#[derive(Clone, Copy)]
struct Range {
    start: *const u64,
    words: usize,
}

impl Range {
    fn covers(&self, address: usize) -> bool {
        (self.start as usize..self.start as usize + size_of::<u64>() * self.words).contains(&address)
    }
}

/// Goes round in ranges of memory, piece by piece.
struct Rounds {
    ranges: Vec<Range>,
    /// The next piece, in this range, from this word on.
    range: usize,
    word: usize,
    /// The sums of all pieces, in order, as far as they are known.
    sums: Vec<u64>,
    /// The number of the next piece.
    next: usize,
}

impl Rounds {
    fn of(ranges: Vec<Range>) -> Rounds {
        Rounds { ranges, range: 0, word: 0, sums: Vec::new(), next: 0 }
    }

    fn pieces(&self) -> usize {
        self.ranges.iter().map(|range| range.words.div_ceil(PIECE / size_of::<u64>())).sum()
    }

    /// Looks at the next piece. True: it has changed since the last time.
    fn go_on(&mut self) -> bool {
        let Some(range) = self.ranges.get(self.range) else { return false };
        let words = (range.words - self.word).min(PIECE / size_of::<u64>());
        let sum = (self.word..self.word + words).fold(0u64, |sum, word| {
            // SAFETY: it lies within the range. It may be changed meanwhile, as everything here may: that is looked for.
            sum.wrapping_add(unsafe { range.start.add(word).read_volatile() })
        });
        let changed = match self.sums.get_mut(self.next) {
            // What was told is not told again.
            Some(known) => std::mem::replace(known, sum) != sum,
            None => {
                self.sums.push(sum);
                false
            }
        };
        self.next += 1;
        self.word += words;
        if self.word == range.words {
            (self.range, self.word) = (self.range + 1, 0);
        }
        if self.range == self.ranges.len() {
            (self.range, self.next) = (0, 0);
        }
        changed
    }
}

/// Adds the segments of an object that can be read and not written.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    ranges: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the caller gives both, and the headers that the first one counts.
    let (info, ranges) = unsafe { (&*info, &mut *ranges.cast::<Vec<Range>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers {
        let readable = header.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R;
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_filesz as usize);
        let start = start.next_multiple_of(align_of::<u64>());
        let words = end.saturating_sub(start) / size_of::<u64>();
        if header.p_type == libc::PT_LOAD && readable && words > 0 {
            ranges.push(Range { start: start as *const u64, words });
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a change is found in so many pieces.
    fn found(rounds: &mut Rounds, pieces: usize) -> usize {
        (0..pieces).filter(|_| rounds.go_on()).count()
    }

    #[test]
    fn each_changed_bit_is_found_once() {
        // Two ranges, and pieces that are not whole.
        let mut memory = vec![0x5a5a_5a5a_5a5a_5a5a_u64; 3 * PIECE / 8 + 5];
        let start = memory.as_mut_ptr();
        let words = memory.len() - 7;
        // SAFETY: both lie in the vector, which lives through the test.
        let second = Range { start: unsafe { start.add(words) }, words: 7 };
        let mut rounds = Rounds::of(vec![Range { start, words }, second]);
        let round = words.div_ceil(PIECE / 8) + 1;
        assert_eq!(found(&mut rounds, round), 0, "the first round takes the sums");
        for at in [0, 1, PIECE / 8 - 1, PIECE / 8, words - 1, words, words + 6] {
            for bit in [0, 17, 63] {
                // SAFETY: as above; nobody else uses it.
                unsafe { start.add(at).write_volatile(start.add(at).read_volatile() ^ 1 << bit) };
                assert_eq!(found(&mut rounds, round), 1, "bit {bit} of word {at}");
                assert_eq!(found(&mut rounds, round), 0, "it was told");
            }
        }
    }

    #[test]
    fn a_program_is_looked_at_as_a_whole_and_stays_the_same() {
        let mut scrub = Scrub::of_program(Instant::ZERO);
        let covers = |address: usize| scrub.all.ranges.iter().any(|range| range.covers(address));
        assert!(covers(collect as *const () as usize), "code of the program");
        assert!(covers(libc::memcpy as *const () as usize), "code of a library");
        // SAFETY: plain call.
        let kernels = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        assert!(kernels == 0 || covers(kernels), "the kernel's code");
        let pieces = scrub.all.ranges.iter().map(|r| r.words * 8 / PIECE + 1).sum::<usize>();
        assert_eq!(found(&mut scrub.all, 2 * pieces), 0);
        assert!(scrub.all.sums.len() * PIECE > 1 << 20, "{}", scrub.all.sums.len());
    }

    #[test]
    fn the_clock_paces_it_and_is_looked_at_even_if_it_stands_still() {
        let mut scrub = Scrub::of_program(Instant::ZERO);
        let mut now = Instant::ZERO + PAUSE;
        assert!(!scrub.look(now));
        assert_eq!(scrub.all.sums.len(), 1);
        now += 1000 * PAUSE;
        assert!(!scrub.look(now));
        assert_eq!(scrub.all.sums.len(), 81, "not all that is missing at once");
        assert!((0..EVERY).all(|_| !scrub.look(now)));
        assert_eq!((scrub.all.sums.len(), scrub.clock.sums.len()), (81, scrub.clock.ranges.len().min(1)));
        // It was set back.
        assert!(!scrub.look(Instant::ZERO) && !scrub.look(Instant::ZERO + PAUSE));
        assert_eq!(scrub.all.sums.len(), 82);
    }

    #[test]
    fn sums_are_taken_beforehand_and_only_once() {
        let mut scrub = Scrub::of_program(Instant::ZERO);
        let pieces = scrub.pieces;
        scrub.take_sums(pieces - 3);
        assert_eq!((scrub.all.sums.len(), scrub.all.next), (pieces - 3, pieces - 3));
        scrub.take_sums(5);
        assert_eq!((scrub.all.sums.len(), scrub.all.next), (pieces, 0));
        scrub.take_sums(5);
        assert_eq!(scrub.all.next, 0);
        // What changes from now on is seen in the next round, which work is worth.
        scrub.all.sums[1] ^= 1;
        assert!(!scrub.look_at(pieces));
        scrub.worked(usize::MAX);
        assert!(!scrub.look_at(1) && scrub.look_at(1));
        assert!(!scrub.look_at(usize::MAX));
        assert_eq!((scrub.left, scrub.all.next), (0, 0));
    }

    #[test]
    fn it_goes_on_without_work_until_all_was_seen() {
        let mut now = Instant::ZERO + PAUSE;
        let mut scrub = Scrub::of_program(now);
        assert_eq!(scrub.deadline(), None, "it has not worked");
        for (work, naps) in [(1, 1), (usize::MAX, scrub.all.pieces().div_ceil(80))] {
            scrub.worked(work);
            for _ in 0..naps {
                let at = scrub.deadline().unwrap();
                assert!(at > now);
                now = at;
                assert!(!scrub.look(now));
            }
            assert_eq!(scrub.deadline(), None, "{work}");
        }
        assert_eq!(scrub.all.sums.len(), scrub.pieces);
    }
}
