use super::*;

type Item = [u64; 32];
const LAYOUT: Layout =
    Layout { magic: *b"eft-test", version: 3, items: &[size_of::<Item>(), 24], sums: Sums::Second };
const COUNT: usize = 20;

/// More items than are initialized at once.
const MANY: usize = 2 * CHUNK + 9;

fn segment() -> Segment {
    Segment::heap(LAYOUT.arena_len(COUNT))
}

/// Initializes the next items of both tables, as engines do.
fn grow(arena: &mut Arena, a: &mut Table<Item>, b: &mut Table<[u64; 3]>) {
    let more = arena.growth();
    b.grow(more.clone(), [9; 3]);
    a.grow(more.clone(), [9; 32]);
    arena.keep(more.end);
}

fn open(segment: &Segment) -> (Arena, Table<Item>, Table<[u64; 3]>) {
    open_with(segment, Fuse::default())
}

fn open_with(segment: &Segment, fuse: Fuse) -> (Arena, Table<Item>, Table<[u64; 3]>) {
    let mut arena = Arena::open_with(segment.clone(), LAYOUT, COUNT, 7, fuse).unwrap();
    let (mut a, mut b) = (arena.table(0), arena.table(1));
    if !arena.reborn {
        grow(&mut arena, &mut a, &mut b);
        for i in 0..COUNT as u32 {
            a.make(i, [i as u64; 32]);
            b.make(i, [i as u64; 3]);
        }
        arena.establish();
    }
    (arena, a, b)
}

fn all(segment: &Segment) -> (Vec<Item>, Vec<[u64; 3]>) {
    let (_, a, b) = open(segment);
    let intact = |i: &u32| a.is_intact(*i) && b.is_intact(*i);
    assert!((0..COUNT as u32).all(|i| intact(&i)));
    ((0..COUNT as u32).map(|i| a[i]).collect(), (0..COUNT as u32).map(|i| b[i]).collect())
}

#[test]
fn a_turn_takes_effect_whole_or_not_at_all_wherever_it_ends() {
    let mut random = eft_base::Random::new(3);
    let mut seen = [0; 2];
    for _ in 0..200 {
        let segment = segment();
        let mut turn = |steps: u64| {
            let (arena, mut a, mut b) = open(&segment);
            arena.fuse().light(steps);
            let began = arena.turn.get();
            let whole = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..10 {
                    let (i, v) = (random.below(COUNT as u64) as u32, random.next_u64());
                    a[i][random.below(32) as usize] = v;
                    b[i][random.below(3) as usize] = v;
                }
                a.seal();
                b.seal();
                arena.commit();
            }));
            arena.turn.get() > began || whole.is_ok()
        };
        assert!(turn(1000));
        let before = all(&segment);
        let steps = 1 + seed_of(&before) % 140;
        let committed = turn(steps);
        seen[committed as usize] += 1;
        assert_eq!(all(&segment) != before, committed, "{steps}");
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
}

/// A life that ends at its `steps`-th store while it opens the arena. False: it has fewer.
fn dies_while_opening(segment: &Segment, steps: u64) -> bool {
    let fuse = Fuse::default();
    fuse.light(steps);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(open_with(segment, fuse)))).is_err()
}

fn copy(segment: &Segment) -> Segment {
    let copy = Segment::heap(segment.len());
    segment.copy_to(0, &copy, 0, segment.len()).unwrap();
    copy
}

#[test]
fn a_death_while_a_turn_is_undone_changes_nothing_of_that() {
    let segment = segment();
    let (arena, mut a, mut b) = open(&segment);
    (a[4][0], b[5][1]) = (40, 50);
    a.seal();
    b.seal();
    arena.commit();
    let committed = all(&copy(&segment));
    for i in [3, 4, 7] {
        a[i] = [77; 32];
        b[i + 1] = [88; 3];
    }
    a.seal();
    drop((arena, a, b));
    let mut deaths = 0;
    for steps in 1.. {
        let left = copy(&segment);
        if !dies_while_opening(&left, steps) {
            break;
        }
        deaths += 1;
        assert!(all(&copy(&left)) == committed, "after a death at store {steps}");
        // The successor dies, too, wherever it is.
        for again in 1.. {
            let left = copy(&left);
            if !dies_while_opening(&left, again) {
                break;
            }
            assert!(all(&left) == committed, "after deaths at stores {steps} and {again}");
        }
    }
    assert!(deaths > 40, "{deaths} stores");
}

#[test]
fn a_death_while_an_arena_is_made_leaves_an_empty_or_a_whole_one() {
    let whole = all(&segment());
    let mut deaths = 0;
    for steps in 1.. {
        let left = segment();
        if !dies_while_opening(&left, steps) {
            break;
        }
        deaths += 1;
        let secret = open(&copy(&left)).0.secret;
        assert_eq!(secret, open(&segment()).0.secret, "after a death at store {steps}");
        assert!(all(&left) == whole, "after a death at store {steps}");
        // Its turns count, and are undone.
        let (arena, mut a, mut b) = open(&left);
        a[1][0] = 5;
        a.seal();
        b.seal();
        arena.commit();
        a[2][0] = 6;
        drop((arena, a, b));
        let (items, _) = all(&left);
        assert_eq!((items[1][0], items[2][0]), (5, 2), "after a death at store {steps}");
    }
    assert!(deaths > 40, "{deaths} stores");
}

// A number that stands for the whole content.
fn seed_of(all: &(Vec<Item>, Vec<[u64; 3]>)) -> u64 {
    all.0.iter().flatten().fold(0, |h: u64, v| h.rotate_left(5) ^ v)
}

/// Changes a bit of a segment.
fn flip(segment: &Segment, at: usize, bit: usize) {
    let mut byte = [0];
    segment.read(at + bit / 8, &mut byte).unwrap();
    segment.write(at + bit / 8, &[byte[0] ^ 1 << (bit % 8)]).unwrap();
}

/// Where an item of the first table lies, and its checksum.
fn places(i: usize) -> (usize, usize) {
    let TableLayout { sums, .. } = TableLayout::of(size_of::<Item>(), COUNT);
    (layout::HEADER_LEN + i * size_of::<Item>(), layout::HEADER_LEN + sums + i * SUM_LEN)
}

#[test]
fn every_flipped_bit_is_detected_and_mended_or_costs_its_own_item_alone() {
    let segment = segment();
    let mut random = eft_base::Random::new(3);
    let (_, mut a, _) = open(&segment);
    a.make(3, [0; 32].map(|_: u64| random.next_u64()));
    drop(a);
    let before = all(&segment);
    let (item, sum) = places(3);
    let bits = size_of::<Item>() * 8;
    let mut lost = 0;
    for bit in 0..bits + SUM_LEN * 8 {
        let (at, bit) = if bit < bits { (item, bit) } else { (sum, bit - bits) };
        flip(&segment, at, bit);
        let (_, mut a, _) = open(&segment);
        let damaged: Vec<u32> = (0..COUNT as u32).filter(|i| !a.is_intact(*i)).collect();
        assert_eq!(damaged, [3], "bit {bit}");
        if a.mend(3, |_| true) == Soundness::Damaged {
            lost += 1;
            assert!(at == sum || bit % 64 >= 61, "bit {bit} of {at}");
            // Where the sums leave a choice, at most one of the possible items is a valid one.
            let wanted = before.0[3];
            assert_eq!(a.mend(3, |item| *item == wanted), Soundness::Mended, "bit {bit} of {at}");
        }
        assert!(a.is_intact(3));
        assert!(all(&segment) == before, "bit {bit} of {at} became something else");
    }
    assert!(lost * 50 < bits, "{lost} of {bits} bits");
}

#[test]
fn what_more_than_one_bit_has_changed_is_not_mended() {
    let segment = segment();
    let mut random = eft_base::Random::new(4);
    let (_, mut a, _) = open(&segment);
    let item = [0; 32].map(|_: u64| random.next_u64());
    let (at, _) = places(3);
    let (mut mended, mut wrong) = (0, 0);
    for _ in 0..2_000 {
        a.make(3, item);
        let bits = [0; 2].map(|_: usize| random.below(32 * 64) as usize);
        bits.iter().for_each(|bit| flip(&segment, at, *bit));
        if a.mend(3, |_| true).is_sound() && bits[0] != bits[1] {
            mended += 1;
            wrong += (a[3] != item) as usize;
        }
        // A word that a stray pointer was written to, or a block of memory.
        a.make(3, item);
        let len = 8usize << random.below(4);
        let stray: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        segment.write(at + random.below(32 - len as u64 / 8) as usize * 8, &stray).unwrap();
        assert_eq!(a.mend(3, |_| true), Soundness::Damaged);
    }
    assert!(
        mended == wrong && wrong <= 10,
        "{mended} pairs of bits passed for one, {wrong} became another item"
    );
}

#[test]
fn a_flipped_bit_in_the_header_costs_nothing() {
    let segment = segment();
    drop(open(&segment));
    let before = all(&segment);
    // The bits stay changed: what one life finds wrong it also puts right, so that the next flip meets one whole copy.
    for bit in (0..layout::HEADER_LEN * 8).rev() {
        flip(&segment, 0, bit);
        let (arena, a, b) = open(&segment);
        assert!(arena.reborn, "bit {bit}");
        assert!((0..COUNT as u32).all(|i| a.is_intact(i) && b.is_intact(i)), "bit {bit}");
        assert!(all(&segment) == before, "bit {bit}");
    }
}

#[test]
fn what_was_left_open_is_not_changed_back() {
    let segment = segment();
    let (_, mut a, _) = open(&segment);
    a.seal();
    a.leave_open();
    a[3][0] ^= 1;
    drop(a);
    assert_eq!(open_only(&segment).1.mend(3, |_| true), Soundness::Damaged);
    // A successor that died before it had checked everything leaves that to the next one.
    assert_eq!(open_only(&segment).1.mend(3, |_| true), Soundness::Damaged);
    let (mut arena, mut a) = open_only(&segment);
    a.make(3, [0; 32]);
    arena.establish();
    flip(&segment, places(3).0, 0);
    assert_eq!(open_only(&segment).1.mend(3, |_| true), Soundness::Mended);
}

/// As far as an engine is when it has checked nothing yet.
fn open_only(segment: &Segment) -> (Arena, Table<Item>) {
    let arena = Arena::open(segment.clone(), LAYOUT, COUNT, 7).unwrap();
    let a = arena.table(0);
    (arena, a)
}

#[test]
#[should_panic = "stray write"]
fn a_stray_write_gets_no_new_checksum() {
    let segment = segment();
    let (_, mut a, _) = open(&segment);
    segment.write(layout::HEADER_LEN + 5, &[1]).unwrap();
    a[0][9] = 4;
}

#[test]
fn a_foreign_arena_is_refused_and_left_alone() {
    let good = segment();
    drop(open(&good));
    let refusal = |change: &dyn Fn(&mut Header)| {
        let mut header = Header::new_zeroed();
        good.read(0, header.as_mut_bytes()).unwrap();
        let kept = header;
        change(&mut header);
        write_header(&good, &header, &Fuse::default());
        let refused = Arena::open(good.clone(), LAYOUT, COUNT, 1).err();
        let mut after = Header::new_zeroed();
        good.read(0, after.as_mut_bytes()).unwrap();
        assert!(refused.is_none() || after.as_bytes() == header.as_bytes(), "it was touched");
        write_header(&good, &kept, &Fuse::default());
        refused
    };
    assert_eq!(refusal(&|_| {}), None);
    assert_eq!(refusal(&|h| h.version = 9), Some(Refused::Newer { theirs: 9, ours: 3 }));
    assert_eq!(refusal(&|h| h.version = 2), Some(Refused::Older { theirs: 2, ours: 3 }));
    assert_eq!(refusal(&|h| h.magic += 1), Some(Refused::Foreign));
    assert_eq!(refusal(&|h| h.magic = 0), Some(Refused::Foreign));
    assert_eq!(refusal(&|h| h.count = 19), Some(Refused::Foreign));
    assert_eq!(refusal(&|h| h.items[1] = 25), Some(Refused::Foreign));
    for refused in [Refused::Older { theirs: 2, ours: 3 }, Refused::Foreign] {
        assert!(!alloc::format!("{refused}").contains('\n'));
    }
}

#[test]
fn a_turn_after_the_last_number_is_undone_as_any_other() {
    let segment = segment();
    drop(open(&segment));
    segment.write(TURN, &(u64::MAX - 1).to_le_bytes()).unwrap();
    // Opening takes the last number; the commit wraps around it.
    let (arena, mut a, mut b) = open(&segment);
    a[1][0] = 5;
    a.seal();
    b.seal();
    arena.commit();
    a[2][0] = 6;
    drop((arena, a, b));
    let (items, _) = all(&segment);
    assert_eq!((items[1][0], items[2][0]), (5, 2));
}

#[test]
fn a_new_arena_that_was_not_finished_is_still_empty() {
    let segment = segment();
    let arena = Arena::open(segment.clone(), LAYOUT, COUNT, 7).unwrap();
    arena.table::<Item>(0).grow(arena.growth(), [1; 32]);
    drop(arena);
    let (arena, a, _) = open(&segment);
    assert!(!arena.reborn);
    assert_eq!(a[0], [0; 32]);
}

fn open_many(segment: &Segment) -> (Arena, Table<Item>, Table<[u64; 3]>) {
    let mut arena = Arena::open(segment.clone(), LAYOUT, MANY, 7).unwrap();
    let (mut a, mut b) = (arena.table(0), arena.table(1));
    if !arena.reborn {
        grow(&mut arena, &mut a, &mut b);
        arena.establish();
    }
    (arena, a, b)
}

#[test]
fn items_are_initialized_on_demand_until_the_arena_is_full() {
    let segment = Segment::heap(LAYOUT.arena_len(MANY));
    for len in [CHUNK, 2 * CHUNK, MANY, MANY] {
        let (mut arena, mut a, mut b) = open_many(&segment);
        assert_eq!((a.len(), b.len(), a.capacity()), (len, len, MANY));
        assert!((0..len as u32).all(|i| a.is_intact(i) && b.is_intact(i) && a[i] == [9; 32]));
        grow(&mut arena, &mut a, &mut b);
        assert_eq!(a.len(), MANY.min(len + CHUNK));
    }
    // An uninitialized item does not belong to the table; its checksum would be wrong.
    let segment = Segment::heap(LAYOUT.arena_len(MANY));
    drop(open_many(&segment));
    let word = segment.atomic_u64(MADE).unwrap();
    word.store(MANY as u64, Ordering::Relaxed);
    assert!(!open_many(&segment).1.is_intact(CHUNK as u32));
    word.store(CHUNK as u64, Ordering::Relaxed);
    assert_eq!(copies::<Item>(&segment, LAYOUT, 0).unwrap().count(), CHUNK);
    let copy = copy_of(&segment, &LAYOUT, MANY).unwrap();
    assert_eq!(open_many(&copy).1.len(), CHUNK);
}

#[test]
fn a_death_while_items_are_initialized_loses_none() {
    for steps in 0..2 * CHUNK as u64 + 2 {
        let segment = Segment::heap(LAYOUT.arena_len(MANY));
        let (mut arena, mut a, mut b) = open_many(&segment);
        arena.fuse().light(steps);
        let grown =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| grow(&mut arena, &mut a, &mut b)));
        drop((arena, a, b));
        let (_, a, b) = open_many(&segment);
        let len = if grown.is_ok() { 2 * CHUNK } else { CHUNK };
        // All items that may be initialized are checked if it is not certain how far the growth came.
        assert!(a.len() == len || a.len() == 2 * CHUNK, "{} after {steps} steps", a.len());
        assert!((0..len as u32).all(|i| a.is_intact(i) && b.is_intact(i)));
    }
}

#[test]
fn a_flipped_bit_in_their_number_loses_no_item_and_adds_none() {
    for (growths, len) in [(0, CHUNK), (1, 2 * CHUNK), (2, MANY)] {
        for bit in 0..64 {
            let segment = Segment::heap(LAYOUT.arena_len(MANY));
            let (mut arena, mut a, mut b) = open_many(&segment);
            (0..growths).for_each(|_| grow(&mut arena, &mut a, &mut b));
            drop((arena, a, b));
            let word = segment.atomic_u64(MADE).unwrap();
            word.fetch_xor(1 << bit, Ordering::Relaxed);
            assert_eq!(copies::<Item>(&segment, LAYOUT, 0).unwrap().count(), len, "bit {bit}");
            let (_, a, b) = open_many(&segment);
            assert_eq!((a.len(), b.len()), (len, len), "bit {bit}");
            assert!((0..len as u32).all(|i| a.is_intact(i) && b.is_intact(i)));
            // The next life reads the right number again.
            assert_eq!(word.load(Ordering::Relaxed), len as u64, "bit {bit}");
        }
    }
}
