use super::*;
use crate::status::Status;

const MS: u64 = 1_000_000;

#[test]
fn every_level_lies_in_its_class() {
    for level in 0..=65_536usize {
        let class = class_of(level);
        assert!((class_first(class) as usize..=class_last(class) as usize).contains(&level), "{level}");
        assert!(class < LEVELS && (class == 0 || class_of(level - 1) <= class), "{level}");
    }
}

#[test]
fn time_goes_to_the_phase_that_it_was_spent_in() {
    let status = Status::heap();
    let account = status.account();
    assert_eq!(account.read(Instant(0)), None, "nothing was written yet");
    account.open(Instant(10 * MS));
    account.enter(Phase::Busy, Instant(10 * MS));
    account.reclassify(Phase::Polling);
    account.enter(Phase::Sleeping, Instant(13 * MS));
    let reading = status.read_only().account().read(Instant(20 * MS)).unwrap();
    assert_eq!((reading.busy_ns, reading.polling_ns, reading.sleeping_ns), (0, 3 * MS, 7 * MS));
    account.enter(Phase::Busy, Instant(33 * MS));
    let later = account.read(Instant(34 * MS)).unwrap();
    assert_eq!((later.busy_ns, later.sleeping_ns), (MS, 20 * MS));
    let behind = account.read(Instant(0)).unwrap();
    assert_eq!(
        (behind.sleeping_ns, behind.until),
        (20 * MS, Instant(33 * MS)),
        "a clock that lags adds nothing"
    );
}

#[test]
fn a_sample_taken_while_the_owner_marks_all_the_time_adds_up() {
    let status = Status::heap();
    status.account().open(Instant(0));
    let reader = status.read_only();
    let marks = if cfg!(miri) { 200 } else { 200_000u64 };
    let (mut readings, mut sum_before) = (0, 0);
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            for at in 1..=marks {
                status.account().enter(Phase::ALL[at as usize % 4], Instant(at * 10));
            }
        });
        while !owner.is_finished() {
            let Some(reading) = reader.account().read(Instant(0)) else { continue };
            let sum = reading.busy_ns + reading.polling_ns + reading.waiting_ns + reading.sleeping_ns;
            assert_eq!(sum, reading.until.0, "{reading:?}");
            assert!(sum >= sum_before);
            (readings, sum_before) = (readings + 1, sum);
        }
    });
    assert!(readings > 0);
}

#[test]
fn a_successor_continues_the_account_and_the_gap_counts_for_no_phase() {
    let status = Status::heap();
    status.account().open(Instant(0));
    status.account().enter(Phase::Busy, Instant(0));
    status.account().enter(Phase::Sleeping, Instant(5 * MS));
    assert_eq!(status.account().read(Instant(6 * MS)).unwrap().sleeping_ns, MS);
    // It dies while it leaves a phase: when that ended is unknown until a successor begins.
    status.account().leave(Phase::Busy);
    assert_eq!(status.account().read(Instant(7 * MS)), None);
    status.account().open(Instant(100 * MS));
    let reading = status.account().read(Instant(101 * MS)).unwrap();
    assert_eq!((reading.busy_ns, reading.sleeping_ns), (6 * MS, 0));
}

#[test]
fn marks_flag_each_passage_once() {
    let status = Status::heap();
    let account = status.account();
    account.open(Instant(0));
    let mut queue = account.queue(7, 1024);
    let before = account.queues().next().unwrap();
    let marks = Marks::of(1024);
    // An empty queue never rose, so it does not fall.
    for level in [0, 5, marks.upper + 1, marks.upper - 1, marks.upper + 1, marks.middle, 3, 0, 3] {
        account.batch(&mut queue, level, 0);
    }
    let after = account.queues().next().unwrap();
    assert_eq!((after.sender, after.capacity), (7, 1024));
    assert_eq!((after.overloads, after.underloads), (1, 1));
    assert_eq!(after.water_since(&after), None);
    let (low, high) = after.water_since(&before).unwrap();
    assert_eq!(low, 0);
    assert!((marks.upper as u32 + 1..=marks.upper as u32 * 5 / 4).contains(&high), "{high}");
    for level in [marks.upper + 1, marks.lower - 1] {
        account.batch(&mut queue, level, level);
    }
    let last = account.queues().next().unwrap();
    assert_eq!((last.overloads, last.underloads), (2, 2));
    assert!(last.water_since(&after).unwrap().0 > 90);
}

#[test]
fn a_successors_queue_keeps_its_place_and_too_many_are_left_out() {
    let status = Status::heap();
    let account = status.account();
    account.open(Instant(0));
    for sender in 1..=QUEUES_MAX as u32 + 3 {
        let mut queue = account.queue(sender, 64);
        account.batch(&mut queue, 1, 0);
    }
    account.queue(3, 128);
    let queues: alloc::vec::Vec<QueueReading> = account.queues().collect();
    assert_eq!(queues.len(), QUEUES_MAX);
    assert_eq!((queues[2].sender, queues[2].capacity, queues[2].levels[1]), (3, 128, 1));
}

#[test]
fn a_page_full_of_anything_is_read_without_harm() {
    let mut random = eft_base::Random::new(3);
    for _ in 0..500 {
        let status = Status::heap();
        for i in 0..crate::status::STATUS_LEN / 8 {
            status.segment().write(i * 8, &random.next_u64().to_ne_bytes()).unwrap();
        }
        status.account().word(VERSION).store(ACCOUNT_VERSION, Ordering::Relaxed);
        let _ = status.account().read(Instant(random.next_u64()));
        let readings: alloc::vec::Vec<QueueReading> = status.account().queues().collect();
        for pair in readings.windows(2) {
            let _ = pair[1].water_since(&pair[0]);
        }
    }
}

#[test]
fn hints_are_counted_when_they_arise() {
    let status = Status::heap();
    let account = status.account();
    account.open(Instant(0));
    for receiver_behind in [true, true, false, true] {
        account.hint(Hints { receiver_behind, starved: false });
    }
    let reading = account.read(Instant(0)).unwrap();
    assert_eq!((reading.receiver_behind_count, reading.starved_count), (2, 0));
    assert!(reading.hints.receiver_behind);
}
