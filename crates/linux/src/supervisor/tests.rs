//! The supervisor dies before each of the steps of a change, and another one adopts the servers.

pub mod world;

use super::accusations::Queue;
use super::ending::Ending;
use super::member::OwnedPool;
use super::{OLD_POOLS, Supervisor};
use crate::protocol::{ArenaShape, FromServer};
use crate::{memory, scm};
use eft_base::{DomainId, PoolId};
use eft_host::clock;
use eft_messages::ComponentId;
use std::collections::BTreeSet;
use std::rc::Rc;
use world::World;

#[test]
fn only_a_signal_that_asks_for_it_ends_the_stack() {
    let mut world = World::new();
    let supervisor = world.supervisor.as_mut().unwrap();
    let (ours, theirs) = scm::pair().unwrap();
    rustix::io::ioctl_fionbio(&ours, true).unwrap();
    supervisor.signals = ours;
    let arrives = |supervisor: &mut Supervisor, number: i32| {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        info[..4].copy_from_slice(&number.to_ne_bytes());
        scm::send(&theirs, &info, &[], true).unwrap();
        supervisor.take_signals();
        supervisor.ending
    };
    // SIGCHLD, and what a changed bit makes of it or of the descriptor.
    for number in [libc::SIGCHLD, libc::SIGCHLD ^ 2, libc::SIGCHLD ^ 1 << 30, 0] {
        assert_eq!(arrives(supervisor, number), None, "{number}");
    }
    scm::send(&theirs, &1u64.to_ne_bytes(), &[], true).unwrap();
    supervisor.take_signals();
    assert_eq!(supervisor.ending, None);
    assert_eq!(arrives(supervisor, libc::SIGTERM), Some(Ending::Whole));
}

#[test]
fn an_accusation_of_a_predecessor_has_no_consequence() {
    let mut world = World::new();
    let queue = |world: &mut World, writer, reader| {
        let memory = |name, len| Rc::new(memory::create(name, len).unwrap());
        let queue = Queue { writer, reader, lines: memory("lines", 4096), position: memory("position", 64) };
        let number = memory::number(&*queue.lines).unwrap();
        world.supervisor.as_mut().unwrap().keep_queue(queue);
        number
    };
    queue(&mut world, ComponentId::IP, TCP);
    let before = queue(&mut world, TCP, ComponentId::IP);
    let now = queue(&mut world, TCP, ComponentId::IP);
    for (meant, processes) in [(before, 1), (now, 0)] {
        for _ in 0..2 {
            world.server(ComponentId::IP).says(&FromServer::AccuseQueue { peer: TCP, queue: meant }, &[]);
        }
        world.rest();
        assert_eq!((world.processes(ComponentId::IP), world.processes(TCP)), (processes, 1));
    }
}

#[test]
fn a_pool_that_its_reader_misses_is_given_once_more_and_to_no_other() {
    let mut world = World::new();
    let supervisor = world.supervisor.as_mut().unwrap();
    let segment = memory::Both::make("pool", 4096).unwrap();
    let (id, readers) = (PoolId(5), vec![ComponentId::IP]);
    let tcp = supervisor.index(TCP).unwrap();
    supervisor.members[tcp].pools.push(OwnedPool { id, segment, slot_size: 64, readers });
    for peer in [ComponentId::IP, ComponentId::UDP] {
        for id in [5, 6].map(PoolId) {
            world.server(peer).says(&FromServer::LacksPool { id }, &[]);
        }
    }
    world.rest();
    let knows = |world: &mut World, peer| world.server(peer).knows.pools.clone();
    assert_eq!(knows(&mut world, ComponentId::IP), [5].into());
    assert_eq!(knows(&mut world, ComponentId::UDP), [].into());
}

#[test]
fn pools_that_were_dropped_are_not_dropped_by_each_successor_again() {
    let mut world = World::new();
    for _ in 0..3 {
        let supervisor = world.supervisor.as_mut().unwrap();
        let before = supervisor.old_pools.len();
        assert!(before <= 32, "{before} from all who died before");
        supervisor.drop_old_pools(clock::now() + OLD_POOLS);
        assert!(supervisor.old_pools.is_empty());
        world.dies_within(u32::MAX, |_| {});
        world.is_succeeded();
    }
}

const TCP: ComponentId = ComponentId::TCP;
const SOCKETS: ComponentId = ComponentId::SOCKETS;
const DOMAIN: DomainId = DomainId(1);

/// Makes the same change again and again, in a new stack each time, until it is made without a death. After each death the
/// servers run on but for those that `may_end`, and `check` is shown what came of it.
fn dies_before_each_step(
    prepare: impl Fn(&mut World),
    change: impl Fn(&mut World),
    may_end: &[ComponentId],
    check: impl Fn(&mut World),
) {
    for step in 0.. {
        let mut world = World::new();
        prepare(&mut world);
        let all = world.running();
        let is_done = world.dies_within(step, &change);
        world.is_succeeded();
        let ended: BTreeSet<_> = all.difference(&world.running()).copied().collect();
        assert!(ended.iter().all(|peer| may_end.contains(peer)), "before step {step}: {ended:?} ended");
        check(&mut world);
        if is_done {
            assert!(step > 2, "the change has {step} steps");
            return;
        }
    }
}

fn domain_is_asked_for(world: &mut World) {
    let shape = ArenaShape { slots: 0, send_len: 0, receive_len: 0 };
    world.server(SOCKETS).says(&FromServer::NewDomain { id: 1, shape }, &[]);
}

fn a_far_end_comes(world: &mut World, slot: u32) {
    let fd = memory::create("a far end", 4096).unwrap();
    world.server(SOCKETS).says(&FromServer::Keep { domain: DOMAIN, slot, transport: TCP }, &[&fd]);
}

fn with_a_domain(world: &mut World) {
    domain_is_asked_for(world);
    world.rest();
}

#[test]
fn a_new_domain_is_made_once_and_its_program_hears_of_it() {
    dies_before_each_step(
        |_| {},
        domain_is_asked_for,
        &[],
        |world| {
            assert_eq!(world.server(SOCKETS).knows.connections[&1], Some(1));
            for peer in [TCP, ComponentId::UDP, SOCKETS] {
                assert_eq!(world.server(peer).knows.domains, [1].into(), "{peer}");
            }
            assert!(world.entries.contains_key("domain/1") && !world.entries.contains_key("domain/2"));
            assert!(!world.entries.contains_key("announced/1"));
        },
    );
}

#[test]
fn a_domain_that_ends_ends_everywhere() {
    let prepare = |world: &mut World| {
        with_a_domain(world);
        a_far_end_comes(world, 7);
        world.rest();
    };
    let close = |world: &mut World| {
        world.server(SOCKETS).knows.domains.clear();
        world.server(SOCKETS).says(&FromServer::CloseDomain { domain: DOMAIN }, &[]);
    };
    dies_before_each_step(prepare, close, &[], |world| {
        for peer in [TCP, ComponentId::UDP, SOCKETS] {
            assert!(world.server(peer).knows.domains.is_empty(), "{peer}");
        }
        let left = |name: &&String| name.starts_with("domain/") || name.starts_with("far/");
        assert_eq!(world.entries.keys().find(left), None);
    });
}

#[test]
fn a_far_end_that_was_lost_comes_once_more() {
    let ask = |world: &mut World| {
        world.server(TCP).says(&FromServer::Lacks { domain: DOMAIN, slot: 7 }, &[]);
    };
    dies_before_each_step(with_a_domain, ask, &[], |world| {
        // A supervisor that dies in it may lose the question, which is asked again after a second.
        ask(world);
        world.rest();
        assert_eq!(world.server(TCP).knows.far, [7].into());
        assert!(world.entries.contains_key("far/1/7"));
    });
}

#[test]
fn far_ends_come_and_go_in_order() {
    let change = |world: &mut World| {
        for slot in 1..5 {
            a_far_end_comes(world, slot);
        }
        world.server(SOCKETS).says(&FromServer::Drop { domain: DOMAIN, slot: 2 }, &[]);
        a_far_end_comes(world, 2);
        world.server(SOCKETS).says(&FromServer::Drop { domain: DOMAIN, slot: 3 }, &[]);
    };
    dies_before_each_step(with_a_domain, change, &[], |world| {
        assert_eq!(world.server(TCP).knows.far, [1, 2, 4].into());
        let kept: Vec<_> = world.entries.keys().filter(|name| name.starts_with("far/")).collect();
        assert_eq!(kept, ["far/1/1", "far/1/2", "far/1/4"]);
    });
}

#[test]
fn a_setting_is_in_force_and_kept_or_its_server_starts_again() {
    let change = |world: &mut World| {
        let supervisor = world.supervisor.as_mut().unwrap();
        let values = [("ecn".to_string(), "off".to_string()), ("pacing".to_string(), "on".to_string())];
        supervisor.set(values.into(), false).unwrap();
    };
    dies_before_each_step(
        |_| {},
        change,
        &[TCP, ComponentId::UDP],
        |world| {
            let running = world.running();
            for peer in [TCP, ComponentId::UDP].into_iter().filter(|peer| running.contains(peer)) {
                for (key, before) in [("ecn", "answer"), ("pacing", "auto")] {
                    let supervisor = world.supervisor.as_ref().unwrap();
                    let kept = supervisor.store.get(key).map(|(_, value)| value.to_vec()).unwrap();
                    let knows = world.server(peer).knows.settings.get(key).cloned();
                    assert_eq!(knows.unwrap_or_else(|| before.into()), kept, "{peer} {key}");
                }
            }
        },
    );
}

#[test]
fn a_server_that_is_started_again_is_the_only_one() {
    let prepare = |is_kept| {
        move |world: &mut World| {
            with_a_domain(world);
            a_far_end_comes(world, 7);
            world.rest();
            world.add_standby(TCP, is_kept);
        }
    };
    for is_kept in [false, true] {
        dies_before_each_step(
            prepare(is_kept),
            |world| world.dies(TCP),
            &[TCP],
            |world| {
                let tcp = world.server(TCP).knows.clone();
                let running = world.running().contains(&TCP);
                assert_eq!(world.processes(TCP), usize::from(running), "nobody else has its memory");
                if running {
                    assert_eq!((tcp.domains, tcp.far), ([1].into(), [7].into()));
                }
                for peer in [ComponentId::IP, SOCKETS] {
                    let knows = world.server(peer).knows.neighbours.contains(&TCP);
                    assert_eq!(knows, running, "{peer}");
                }
            },
        );
    }
}
