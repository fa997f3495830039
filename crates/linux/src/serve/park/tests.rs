use super::*;
use crate::scm;
use eft_channel::Segment;
use rustix::event::{EventfdFlags, eventfd};

/// What sleeps, its bell, and both ends of its control socket.
fn sleeper(status: &Status) -> (Parking, Shared<Doorbell>, OwnedFd, OwnedFd) {
    let (supervisor, control) = scm::pair().unwrap();
    let eventfd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let sleeper = Sleeper {
        status: status.clone(),
        eventfd,
        control: control.as_fd(),
        descriptors: Vec::new(),
        bytes: Vec::new(),
    };
    let parking = Parking::new(vec![sleeper]).unwrap();
    // SAFETY: Doorbell is one atomic.
    let bell = unsafe { Segment::heap(4096).shared::<Doorbell>(0) }.unwrap();
    (parking, bell, supervisor, control)
}

/// No bell rings when supervisor and keeper are killed.
#[test]
fn a_sleeper_notices_that_nobody_is_left() {
    notices(None);
}

#[test]
fn a_sleeper_whose_timers_wake_it_often_notices_that_nobody_is_left() {
    notices(Some(LOOK / 4));
}

/// A look is a system call, and servers between program and device make none under load.
#[test]
fn a_sleeper_that_wakes_to_work_does_not_look() {
    let status = Status::heap();
    let (mut parking, bell, supervisor, _control) = sleeper(&status);
    drop(supervisor);
    let end = clock::now() + LOOK * 2;
    let checks = std::cell::Cell::new(0);
    while clock::now() < end {
        let deadline = Some(clock::now() + LOOK / 8);
        // Nothing before the sleep, something after it.
        let has_work = || checks.replace(checks.get() + 1) % 2 == 1;
        parking.park(status.account(), deadline, |watch| watch(&bell), || false, has_work);
        assert!(!parking.control_is_readable(), "it looked");
    }
    assert!(checks.get() >= 16, "it slept, and checked before and after");
}

/// One that sleeps no longer than `timer` at a time looks in vain first, and then sees the end of its supervisor.
fn notices(timer: Option<Duration>) {
    let status = Status::heap();
    let (mut parking, bell, supervisor, _control) = sleeper(&status);
    let mut sleep = || {
        let deadline = timer.map(|timer| clock::now() + timer);
        parking.park(status.account(), deadline, |watch| watch(&bell), || false, || false);
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
