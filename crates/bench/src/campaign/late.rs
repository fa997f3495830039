//! Answers that come late, by what they waited for.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// 99% of answers come within this time around a crash, as an aim.
const LATE: Duration = Duration::from_millis(50);
/// How many are remembered: those of the last fault, and far more.
const KEPT: usize = 20_000;

/// When it was asked, and when the answer came.
type Answer = (Instant, Instant);

#[derive(Default)]
pub struct LateAnswers(Mutex<Vec<Answer>>);

impl LateAnswers {
    /// An answer has come.
    pub fn note(&self, asked: Instant) {
        let answer = (asked, Instant::now());
        if is_late(&answer, asked)
            && let Ok(mut all) = self.0.lock()
        {
            all.push(answer);
            let many = all.len().saturating_sub(KEPT);
            all.drain(..many);
        }
    }

    /// How many came late after something broke. What a debugger held up before that did not wait for a successor.
    pub fn since(&self, broke: Instant) -> u64 {
        let all = self.0.lock().map(|all| all.clone()).unwrap_or_default();
        all.iter().filter(|answer| is_late(answer, broke)).count() as u64
    }
}

fn is_late((asked, answered): &Answer, broke: Instant) -> bool {
    answered.saturating_duration_since(broke.max(*asked)) > LATE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_from_the_moment_when_something_broke() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert!(is_late(&(at(0), at(60)), begin));
        assert!(!is_late(&(at(0), at(60)), at(20)), "a debugger held it up for 20 ms");
        assert!(!is_late(&(at(0), at(60)), at(70)), "it came before");
        assert!(is_late(&(at(100), at(151)), at(20)), "a wait since then");
        assert!(!is_late(&(at(100), at(150)), at(20)));
    }
}
