use super::*;

#[test]
fn entries_come_out_in_order_after_any_changes() {
    let mut random = eft_base::Random::new(5);
    for _ in 0..200 {
        let mut t = Timers::new(50);
        let mut expect = [NEVER; 50];
        for _ in 0..300 {
            let c = random.below(50) as u32;
            if random.below(5) == 0 {
                t.cancel(c);
                expect[c as usize] = NEVER;
            } else {
                let at = Instant(random.below(1000));
                t.arm(c, at);
                expect[c as usize] = expect[c as usize].min(at);
            }
        }
        let mut last = Instant::ZERO;
        while let Some(next) = t.next() {
            let c = t.pop(next).unwrap();
            assert_eq!(expect[c as usize], next);
            assert!(next >= last);
            last = next;
            expect[c as usize] = NEVER;
        }
        assert!(expect.iter().all(|e| *e == NEVER));
    }
}
