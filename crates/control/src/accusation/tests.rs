use super::*;
use eft_base::RequestId;
use eft_channel::queue::{Line, Position};
use eft_channel::{Consumer, Producer, Segment};
use eft_messages::filter::{FilterToIp, Judgement};

struct Queue {
    producer: Producer,
    consumer: Consumer,
    lines: Segment,
    position: Segment,
}

const LINES: usize = 8;

fn queue() -> Queue {
    let (lines, position) = (Segment::heap(LINES * 64), Segment::heap(64));
    // SAFETY: both are made of atomics.
    let shared = || unsafe {
        (lines.shared_slice::<Line>(0, LINES).unwrap(), position.shared::<Position>(0).unwrap())
    };
    let (producer, consumer) = eft_channel::queue::queue(shared().0, shared().1);
    Queue { producer, consumer, lines, position }
}

impl Queue {
    fn inspection(&self) -> Inspection {
        // SAFETY: as above.
        let (lines, position) = unsafe { (self.lines.shared_slice(0, LINES), self.position.shared(0)) };
        Inspection::new(lines.unwrap(), position.unwrap())
    }

    fn flip(segment: &Segment, at: usize) {
        segment.atomic_u64(at).unwrap().fetch_xor(1 << 60, core::sync::atomic::Ordering::Relaxed);
    }
}

/// ip, which reads the first and writes the second, accuses filter.
fn judge(credit: &mut Credit, now: u64, from_filter: &Queue, from_ip: &Queue) -> Verdict {
    let evidence = Evidence {
        accuser: ComponentId::IP,
        accused: ComponentId::FILTER,
        written: from_filter.inspection(),
        read: from_ip.inspection(),
    };
    credit.judge(Instant::from_millis(now), &evidence)
}

fn sound() -> (Queue, Queue) {
    let (mut a, b) = (queue(), queue());
    let verdict = FilterToIp::Verdict { request: RequestId::default(), judgement: Judgement::Pass };
    for _ in 0..3 {
        a.producer.push(&verdict.encode()).unwrap();
    }
    a.consumer.pop();
    a.consumer.publish();
    (a, b)
}

#[test]
fn who_accuses_without_evidence_is_passed_over_once_and_then_replaced() {
    let (a, b) = sound();
    let mut credit = Credit::default();
    assert_eq!(judge(&mut credit, 5000, &a, &b), Verdict::Neither);
    assert_eq!(judge(&mut credit, 5010, &a, &b), Verdict::Accuser);
    // An accuser that was mistaken long ago has full credit again.
    assert_eq!(judge(&mut credit, 9000, &a, &b), Verdict::Neither);
}

#[test]
fn damage_that_is_seen_is_the_accuseds() {
    let (mut a, b) = sound();
    a.consumer.pop();
    a.consumer.pop();
    a.producer.push(&[!0; 7]).unwrap();
    a.consumer.publish();
    assert_eq!(judge(&mut Credit::default(), 1, &a, &b), Verdict::Accused, "no message");
    let (a, b) = sound();
    Queue::flip(&a.lines, 64 * 5);
    assert_eq!(judge(&mut Credit::default(), 1, &a, &b), Verdict::Accused, "a line's number");
    let (a, b) = sound();
    Queue::flip(&b.position, 0);
    assert_eq!(judge(&mut Credit::default(), 1, &a, &b), Verdict::Accused, "a position");
}

#[test]
fn what_the_accuser_damaged_itself_is_no_evidence() {
    let (mut a, mut b) = sound();
    a.producer.push(&[!0; 7]).unwrap();
    // Its read position lies where nothing is; its own lines are damaged.
    Queue::flip(&a.position, 0);
    b.producer.push(&[0; 7]).unwrap();
    Queue::flip(&b.lines, 64 * 2);
    Queue::flip(&b.position, 0);
    assert_eq!(judge(&mut Credit::default(), 1, &a, &b), Verdict::Neither);
}
