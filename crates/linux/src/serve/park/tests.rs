use super::*;
use crate::scm;
use eft_channel::Segment;
use rustix::event::{EventfdFlags, eventfd};

/// No bell rings when supervisor and keeper are killed.
#[test]
fn a_sleeper_notices_that_nobody_is_left() {
    notices(None);
}

#[test]
fn a_sleeper_whose_timers_wake_it_often_notices_that_nobody_is_left() {
    notices(Some(LOOK / 4));
}

/// One that sleeps no longer than `timer` at a time looks in vain first, and then sees the end of its supervisor.
fn notices(timer: Option<Duration>) {
    let (supervisor, control) = scm::pair().unwrap();
    let status = Status::heap();
    let eventfd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let sleeper =
        Sleeper { status: status.clone(), eventfd, control: control.as_fd(), descriptors: Vec::new() };
    let mut parking = Parking::new(vec![sleeper]).unwrap();
    // SAFETY: Doorbell is one atomic.
    let bell = unsafe { Segment::heap(4096).shared::<Doorbell>(0) }.unwrap();
    let mut sleep = || {
        let deadline = timer.map(|timer| clock::now() + timer);
        parking.park(status.account(), deadline, |watch| watch(&bell), || false);
        parking.control_is_readable()
    };
    assert!(!sleep(), "it looks in vain");
    drop(supervisor);
    let died = clock::now();
    // A process that another test has just forked may have a duplicate for a moment.
    while !sleep() {
        assert!(clock::now() < died + LOOK * 10, "it does not notice");
    }
}
