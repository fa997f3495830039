use super::*;
use alloc::vec::Vec;

fn pair(n: usize) -> (Producer, Consumer) {
    let lines: Vec<Line> = (0..n).map(|_| Line::empty()).collect();
    queue(Shared::heap_slice(lines), Shared::heap(Position::zero()))
}

#[test]
fn in_order_and_full_at_capacity() {
    let (mut p, mut c) = pair(8);
    for round in 0..100u64 {
        for i in 0..8 {
            p.push(&[round * 8 + i; 7]).unwrap();
        }
        assert_eq!(p.push(&[0; 7]), Err(Full));
        for i in 0..8 {
            assert_eq!(c.pop(), Some([round * 8 + i; 7]));
        }
        assert_eq!(c.pop(), None);
        c.publish();
    }
}

#[test]
fn the_backlog_is_what_was_pushed() {
    for capacity in [1, 2, 8, 64] {
        let (mut p, mut c) = pair(capacity);
        for start in 0..capacity {
            for level in 0..=capacity {
                for _ in 0..level {
                    p.push(&[0; 7]).unwrap();
                }
                assert_eq!(c.backlog(), level, "{capacity} {start}");
                while c.pop().is_some() {}
                c.publish();
            }
            p.push(&[0; 7]).unwrap();
            c.pop();
        }
    }
}

#[test]
fn both_ends_can_be_reborn() {
    let (mut p, mut c) = pair(4);
    for i in 0..6u64 {
        p.push(&[i; 7]).unwrap();
        assert_eq!(c.pop(), Some([i; 7]));
    }
    p.push(&[6; 7]).unwrap();
    let (lines, consumed) = (p.lines.clone(), p.consumed.clone());
    drop((p, c));
    let (mut p, mut c) =
        (Producer::resume(lines.clone(), consumed.clone()), Consumer::resume(lines, consumed));
    p.push(&[7; 7]).unwrap();
    assert_eq!((c.pop(), c.pop(), c.pop()), (Some([6; 7]), Some([7; 7]), None));
}

#[test]
fn a_broken_consumer_cannot_move_the_producer() {
    let (mut p, mut c) = pair(4);
    p.push(&[1; 7]).unwrap();
    c.consumed.0.store(1 << 60, Ordering::Release);
    assert_eq!(p.room(4), 3);
    assert_eq!(p.seen(), Seen::Impossible);
    c.consumed.0.store(1, Ordering::Release);
    assert_eq!(c.pop(), Some([1; 7]));
    assert_eq!(p.room(4), 4);
    assert_eq!(p.seen(), Seen::Sound);
    c.consumed.0.store(0, Ordering::Release);
    assert_eq!((p.room(5), p.seen()), (4, Seen::Back));
    c.publish();
    assert_eq!((p.room(5), p.seen()), (4, Seen::Sound));
}

#[test]
fn a_queue_is_broken_by_what_no_producer_writes_and_by_nothing_else() {
    let (mut p, mut c) = pair(4);
    for i in 0..40u64 {
        assert_eq!((c.pop(), c.is_broken()), (None, false));
        p.push(&[i; 7]).unwrap();
        assert_eq!(c.pop(), Some([i; 7]));
        c.publish();
    }
    // A bit of the line that comes next, before and after it is written.
    for written in [false, true] {
        for bit in 0..64 {
            let (mut p, mut c) = pair(4);
            for i in 0..6 {
                p.push(&[i; 7]).unwrap();
                c.pop();
                c.publish();
            }
            if written {
                p.push(&[6; 7]).unwrap();
            }
            let line = &p.lines[2].sequence;
            line.store(line.load(Ordering::Relaxed) ^ 1 << bit, Ordering::Relaxed);
            assert_eq!((c.pop(), c.is_broken()), (None, true), "{written} {bit}");
        }
    }
}

#[test]
#[should_panic(expected = "messages lie in a queue of 4")]
fn a_producer_whose_own_memory_was_written_to_stops() {
    let (mut p, _) = pair(4);
    p.cached_head ^= 1 << 40;
    let _ = p.push(&[0; 7]);
}

#[test]
#[should_panic(expected = "were taken untold")]
fn a_consumer_whose_own_memory_was_written_to_stops() {
    let (mut p, mut c) = pair(4);
    p.push(&[0; 7]).unwrap();
    c.published ^= 1 << 40;
    c.pop();
}
