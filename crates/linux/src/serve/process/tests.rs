use super::super::park::Sleeper;
use super::*;
use crate::scm;
use eft_channel::Shared;
use eft_channel::notify::Doorbell;
use eft_channel::status::Status;
use rustix::event::{EventfdFlags, eventfd};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

/// What a server has to do, and the order in which servers had their turns.
#[derive(Default)]
struct Plan {
    /// For how many turns.
    urgent: Cell<u32>,
    has_receipt: Cell<bool>,
    deadline: Cell<Option<Instant>>,
}

struct Fake {
    peer: ComponentId,
    plan: Rc<Plan>,
    turns: Rc<RefCell<Vec<ComponentId>>>,
    status: Status,
    control: (OwnedFd, OwnedFd),
    device: Option<OwnedFd>,
}

impl Fake {
    fn take(&mut self) -> usize {
        self.turns.borrow_mut().push(self.peer);
        self.plan.deadline.set(None);
        let urgent = self.plan.urgent.get();
        self.plan.urgent.set(urgent.saturating_sub(1));
        (self.plan.has_receipt.take() || urgent > 0).into()
    }
}

impl Hosted for Fake {
    fn peer(&self) -> ComponentId {
        self.peer
    }

    fn sleeper(&mut self) -> Result<Sleeper<'_>> {
        let descriptors: Vec<BorrowedFd> = self.device.iter().map(AsFd::as_fd).collect();
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        Ok(Sleeper {
            status: self.status.clone(),
            eventfd,
            control: self.control.1.as_fd(),
            descriptors,
            bytes: Vec::new(),
        })
    }

    fn sleeps_on(&mut self, _: &Arc<OwnedFd>) {}

    fn settle(&mut self) {}

    fn begin(&mut self, _: &[ComponentId], _: bool) -> Result<()> {
        Ok(())
    }

    fn hear(&mut self, _: bool) -> Result<()> {
        Ok(())
    }

    fn turn(&mut self, _: bool, _: usize) -> usize {
        self.take()
    }

    fn answer(&mut self, _: usize) {
        self.take();
    }

    fn deadline(&self) -> Option<Instant> {
        self.plan.deadline.get()
    }

    fn has_urgent_message(&self) -> bool {
        self.plan.urgent.get() > 0
    }

    fn has_urgent_work(&self) -> bool {
        self.plan.urgent.get() > 0
    }

    fn has_work(&self) -> bool {
        self.plan.urgent.get() > 0 || self.plan.has_receipt.get()
    }

    fn bells(&self, _: &mut dyn FnMut(&Shared<Doorbell>)) {}

    fn wants_device(&self) -> bool {
        true
    }

    fn is_dedicated(&self) -> bool {
        false
    }

    fn status(&self) -> &Status {
        &self.status
    }

    fn tell_of_change(&self) {}

    fn hears_of_the_end(&self) -> bool {
        false
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn end(&mut self) {}
}

/// NIC, ip and udp in one process, and who had turns so far.
struct Company {
    process: Process,
    plans: Vec<Rc<Plan>>,
    turns: Rc<RefCell<Vec<ComponentId>>>,
}

const NIC: ComponentId = ComponentId::nic(0);

fn company() -> Company {
    let turns = Rc::default();
    let plans: Vec<Rc<Plan>> = (0..3).map(|_| Rc::default()).collect();
    let mut servers: Vec<Box<dyn Hosted>> = Vec::new();
    for (peer, plan) in [NIC, ComponentId::IP, ComponentId::UDP].into_iter().zip(&plans) {
        servers.push(Box::new(Fake {
            peer,
            plan: plan.clone(),
            turns: Rc::clone(&turns),
            status: Status::heap(),
            control: scm::pair().unwrap(),
            device: (peer == NIC).then(|| eventfd(0, EventfdFlags::CLOEXEC).unwrap()),
        }));
    }
    let sleepers = servers.iter_mut().map(|server| server.sleeper().unwrap()).collect();
    let mut process = Process::new(Parking::new(sleepers).unwrap(), servers);
    // The first turn is everybody's.
    process.is_thorough = false;
    Company { process, plans, turns }
}

impl Company {
    /// One turn of the process, and who had turns in it.
    fn turn(&mut self) -> Vec<ComponentId> {
        self.process.turn().unwrap();
        self.turns.take()
    }
}

#[test]
fn only_who_has_something_to_do_has_a_turn() {
    let mut company = company();
    company.plans[1].urgent.set(1);
    company.plans[2].deadline.set(Some(clock::now() + core::time::Duration::from_millis(1)));
    assert_eq!(company.turn(), [NIC, ComponentId::IP], "a device is read, and udp's deadline has not come");
    company.plans[1].urgent.set(1);
    company.plans[2].deadline.set(Some(clock::now()));
    assert_eq!(company.turn(), [NIC, ComponentId::IP, ComponentId::UDP]);
}

#[test]
fn who_has_no_turn_counts_as_alive() {
    let mut company = company();
    let before = company.process.servers[2].status().heartbeat();
    company.plans[1].urgent.set(1);
    assert!(!company.turn().contains(&ComponentId::UDP));
    assert_ne!(company.process.servers[2].status().heartbeat(), before);
}

#[test]
fn receipts_are_taken_before_the_process_sleeps() {
    let mut company = company();
    company.plans[2].has_receipt.set(true);
    assert_eq!(company.turn(), [NIC], "nothing is urgent");
    assert_eq!(company.turn(), [NIC, ComponentId::UDP]);
}

#[test]
fn receipts_are_taken_now_and_then_by_a_process_that_never_sleeps() {
    let mut company = company();
    company.plans[2].has_receipt.set(true);
    company.plans[1].urgent.set(10_000);
    let turns = (1..=2 * CHECK_AFTER).find(|_| company.turn().contains(&ComponentId::UDP));
    assert_eq!(turns, Some(CHECK_AFTER + 1));
}
