//! The time outside the hotplug state machine's steps: which threads ran, waited for a CPU or slept, and in which
//! function.
//!
//! The time that no step accounts for is attributed by the scheduler's events of the threads involved: the caller, and
//! the kernel threads that ran steps. Promises: the rows of a window add up to its length minus that of the steps.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use eft_base::{Instant, time};

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedEvent {
    /// One thread leaves a CPU, another takes it. A `runnable` one was preempted.
    Switch {
        at: Instant,
        prev: i32,
        runnable: bool,
        next: i32,
    },
    Wake {
        at: Instant,
        tid: i32,
    },
    /// Why the thread that has just left its CPU sleeps: the functions, innermost first.
    Stack {
        at: Instant,
        tid: i32,
        functions: Vec<String>,
    },
}

impl SchedEvent {
    fn at(&self) -> Instant {
        match self {
            Self::Switch { at, .. } | Self::Wake { at, .. } | Self::Stack { at, .. } => *at,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the first step: checks, the journal, priorities, and the kernel's preparations.
    Before,
    Between,
    /// After the last step: cpusets and masks are restored, and the kernel's operation ends.
    After,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub phase: Phase,
    pub what: String,
    #[serde(rename = "duration_us", with = "time::micros")]
    pub duration: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Runnable,
    Asleep(String),
}

/// Functions that are on the stack of every sleep.
const PLUMBING: [&str; 14] = [
    "trace_event_raw_event_sched_switch",
    "__traceiter_sched_switch",
    "__bpf_trace_sched_switch",
    "__schedule",
    "schedule",
    "preempt_schedule",
    "schedule_timeout",
    "schedule_preempt_disabled",
    "__wait_for_common",
    "wait_for_completion",
    "wait_for_completion_state",
    "__flush_work",
    "io_schedule",
    "io_schedule_timeout",
];

/// Names the two innermost functions that are specific to the sleep.
fn reason(functions: &[String]) -> String {
    let telling: Vec<&str> = functions
        .iter()
        .map(String::as_str)
        .filter(|function| !PLUMBING.contains(function))
        .take(2)
        .collect();
    match telling[..] {
        [] => "sleeps".into(),
        [one] => alloc::format!("sleeps in {one}"),
        [inner, outer, ..] => alloc::format!("sleeps in {inner} (by {outer})"),
    }
}

/// `steps` are (begin, end); `workers` are the other threads that ran steps. All in the same clock.
pub fn attribute(
    events: &[SchedEvent],
    steps: &[(Instant, Instant)],
    window: (Instant, Instant),
    caller: i32,
    workers: &[i32],
) -> Vec<Gap> {
    let first = steps.iter().map(|step| step.0).min().unwrap_or(window.1);
    let last = steps.iter().map(|step| step.1).max().unwrap_or(window.1);
    // At the begin of the window the caller runs; a worker sleeps until it is woken.
    let mut states: BTreeMap<i32, State> =
        workers.iter().map(|tid| (*tid, State::Asleep("sleeps".into()))).collect();
    states.insert(caller, State::Running);
    let mut edges: Vec<Instant> = steps.iter().flat_map(|step| [step.0, step.1]).collect();
    edges.extend([window.0, window.1]);
    edges.extend(events.iter().map(SchedEvent::at));
    edges.retain(|at| (window.0..=window.1).contains(at));
    edges.sort_unstable();
    edges.dedup();
    let (mut found, mut coming) = (BTreeMap::<(Phase, String), Duration>::new(), events.iter().peekable());
    for pair in edges.windows(2) {
        while let Some(event) = coming.next_if(|event| event.at() <= pair[0]) {
            apply(&mut states, event);
        }
        if steps.iter().any(|step| step.0 <= pair[0] && pair[1] <= step.1) {
            continue;
        }
        let phase = match pair[0] {
            at if at < first => Phase::Before,
            at if at >= last => Phase::After,
            _ => Phase::Between,
        };
        *found.entry((phase, describe(&states, caller))).or_default() += pair[1] - pair[0];
    }
    found.into_iter().map(|((phase, what), duration)| Gap { phase, what, duration }).collect()
}

fn apply(states: &mut BTreeMap<i32, State>, event: &SchedEvent) {
    match event {
        SchedEvent::Switch { prev, runnable, next, .. } => {
            if let Some(state) = states.get_mut(prev) {
                *state = if *runnable { State::Runnable } else { State::Asleep("sleeps".into()) };
            }
            if let Some(state) = states.get_mut(next) {
                *state = State::Running;
            }
        }
        SchedEvent::Wake { tid, .. } => {
            if let Some(state) = states.get_mut(tid).filter(|state| matches!(state, State::Asleep(_))) {
                *state = State::Runnable;
            }
        }
        SchedEvent::Stack { tid, functions, .. } => {
            if let Some(State::Asleep(why)) = states.get_mut(tid) {
                *why = reason(functions);
            }
        }
    }
}

fn describe(states: &BTreeMap<i32, State>, caller: i32) -> String {
    let why = match states.get(&caller) {
        Some(State::Running) => return "the caller runs".to_string(),
        Some(State::Runnable) => return "the caller waits for a CPU".to_string(),
        Some(State::Asleep(why)) => why,
        None => "sleeps",
    };
    let any = |state: State| states.iter().any(|(tid, now)| *tid != caller && *now == state);
    if any(State::Running) {
        return "a worker of the kernel runs".into();
    }
    if any(State::Runnable) {
        return "a worker of the kernel waits for a CPU".into();
    }
    alloc::format!("the caller {why}")
}

#[cfg(test)]
mod tests;
