use super::*;

const SECOND: u64 = 1_000_000_000;
/// Time between two readings of a busy server.
const TURN: u64 = 20_000;

/// A machine: what the kernel would say, and what a process reads of it.
struct Machine {
    time: u64,
    /// What the process reads at a time.
    clock: fn(u64) -> u64,
    /// The process is stopped for so long between any two of its steps.
    stopped: u64,
    watch: Watch,
    asked: u32,
}

/// Faults begin at this time.
const FAULT: u64 = 5000 * SECOND;

impl Machine {
    fn with(clock: fn(u64) -> u64) -> Machine {
        Machine { time: FAULT - SECOND, clock, stopped: 0, watch: Watch::new(), asked: 0 }
    }

    fn read(&mut self) -> u64 {
        let read = (self.clock)(self.time);
        self.time += self.stopped;
        read
    }

    /// As [`super::super::now`] does it.
    fn now(&mut self) -> Result<u64, Wrong> {
        let read = self.read();
        if self.watch.believes(read) {
            return Ok(read);
        }
        self.asked += 1;
        let said = self.time;
        self.time += self.stopped;
        let after = self.read();
        self.watch.compare(read, said, after)
    }

    /// Reads the clock each `turn` until `until`, as long as it is believed. Each time that was used is checked.
    fn runs(&mut self, turn: u64, until: u64) -> Result<(), Wrong> {
        let mut last = 0;
        while self.time < until {
            let now = self.now()?;
            assert!(now >= last, "time went back from {last} to {now}");
            assert!(now <= self.time + WINDOW + SLACK, "{} ns ahead", now - self.time);
            last = now;
            self.time += turn;
        }
        Ok(())
    }
}

#[test]
fn an_honest_clock_is_believed_whatever_the_process_does() {
    for turn in [TURN, 3 * SECOND / 1000, 30 * SECOND] {
        for stopped in [0, 50, 20_000_000, 3 * SECOND] {
            let mut machine = Machine::with(|time| time);
            machine.stopped = stopped;
            assert_eq!(machine.runs(turn, FAULT + 600 * SECOND.min(turn * 100)), Ok(()));
        }
    }
}

#[test]
fn the_kernel_is_asked_ten_times_a_second_at_most() {
    let mut machine = Machine::with(|time| time);
    machine.runs(TURN, FAULT + 9 * SECOND).unwrap();
    assert!((90..=101).contains(&machine.asked), "{} times in 10 s", machine.asked);
}

/// Once it has asked, the kernel's words and readings may differ by some nanoseconds, and the time must not go back.
#[test]
fn a_small_difference_is_none_and_time_does_not_go_back() {
    for clock in [|time| time - 900, |time| time + 900, |time: u64| time ^ 0x3ff] {
        assert_eq!(Machine::with(clock).runs(TURN, FAULT + SECOND), Ok(()));
    }
}

/// How the clock goes wrong, and after which time that is noticed at the latest.
fn noticed(clock: fn(u64) -> u64, turn: u64) -> (Wrong, u64) {
    let mut machine = Machine::with(clock);
    let wrong = machine.runs(turn, FAULT + 3600 * SECOND).expect_err("nobody noticed");
    assert!(machine.time >= FAULT, "it was right until then");
    (wrong, machine.time - FAULT)
}

#[test]
fn a_clock_that_jumps_is_noticed_before_its_time_is_used() {
    let ahead = |time| if time < FAULT { time } else { time + SECOND };
    assert_eq!(noticed(ahead, TURN), (Wrong::Ahead(Duration::from_secs(1)), 0));
    let back = |time| if time < FAULT { time } else { time - SECOND };
    assert_eq!(noticed(back, TURN), (Wrong::Behind(Duration::from_secs(1)), 0));
    // For one reading alone.
    let once = |time| if time == FAULT { 7 * time } else { time };
    assert_eq!(noticed(once, TURN).1, 0);
    let nothing = |time| if time < FAULT { time } else { 0 };
    assert_eq!(noticed(nothing, TURN).1, 0);
    let wild = |time| if time < FAULT { time } else { u64::MAX - time };
    assert_eq!(noticed(wild, TURN).1, 0);
}

#[test]
fn a_short_jump_is_noticed_within_the_window() {
    // The kernel was asked when the fault began, so these are believed at first.
    const LATER: u64 = FAULT + 30_000_000;
    let ahead = |time| if time < LATER { time } else { time + 50_000_000 };
    let (wrong, after) = noticed(ahead, TURN);
    assert_eq!(wrong, Wrong::Ahead(Duration::from_millis(50)));
    assert!(after > LATER - FAULT && after < WINDOW, "{after}");
    // For one reading alone: what was used then lies ahead of the kernel's word.
    let once = |time| if time == LATER { time + 50_000_000 } else { time };
    assert_eq!(
        noticed(once, TURN),
        (Wrong::Ahead(Duration::from_nanos(50_000_000 - TURN)), LATER - FAULT + TURN)
    );
}

#[test]
fn a_wrong_rate_is_noticed() {
    let double = |time| if time < FAULT { time } else { 2 * time - FAULT };
    let (wrong, after) = noticed(double, TURN);
    assert!(matches!(wrong, Wrong::Ahead(_)) && after < WINDOW, "{wrong} after {after}");
    let half = |time| if time < FAULT { time } else { FAULT + (time - FAULT) / 2 };
    let (wrong, after) = noticed(half, TURN);
    assert!(matches!(wrong, Wrong::Behind(_)) && after <= 2 * WINDOW, "{wrong} after {after}");
}

#[test]
fn a_clock_that_stands_still_is_noticed_after_so_many_readings() {
    let still = |time| if time < FAULT { time } else { FAULT };
    let (wrong, after) = noticed(still, TURN);
    assert!(matches!(wrong, Wrong::Behind(_)), "{wrong}");
    assert!(after <= u64::from(READINGS + 1) * TURN, "{after}");
}

#[test]
fn the_first_reading_is_compared() {
    for clock in [|time: u64| time + SECOND, |time: u64| time - SECOND, |_| 0] {
        assert!(Machine::with(clock).now().is_err());
    }
    assert!(Machine::with(|time| time).now().is_ok());
}

#[test]
fn what_is_said_is_one_line_with_the_difference() {
    let said = Wrong::Ahead(Duration::from_millis(1500)).to_string();
    assert_eq!(said, "is 1.5s ahead of the kernel's");
}

#[test]
fn this_process_tells_the_time_right() {
    let mut last = super::super::now();
    for _ in 0..3 * READINGS {
        let now = super::super::now();
        assert!(now >= last);
        last = now;
    }
    let confirmed = super::super::confirmed();
    assert!(confirmed >= last);
}
