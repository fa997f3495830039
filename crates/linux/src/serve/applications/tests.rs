use super::*;
use crate::scm;
use eft_messages::control::Request;
use std::os::fd::AsFd;
use zerocopy::IntoBytes;

const ID: ConnectionId = ConnectionId(7);

/// The surroundings of a sockets that has one connection of a program, and the supervisor's end of its control socket.
fn life(connection: &OwnedFd) -> (Applications, OwnedFd) {
    let (supervisor, control) = scm::pair().unwrap();
    let mut applications = Applications::new(&control, 1).unwrap();
    let fd = connection.try_clone().unwrap();
    let domain = Some(DomainId(1));
    applications.add_connection(ID, Connection::new(fd, domain, Role::Process));
    (applications, supervisor)
}

/// What the program asks for, as far as it is read in a turn: the operation, the slot, and whether a descriptor came along.
fn read(applications: &mut Applications) -> Vec<(u32, u32, bool)> {
    let mut all = Vec::new();
    let again = std::mem::take(&mut applications.finished);
    for id in if again.is_empty() { vec![ID] } else { again } {
        applications.read_connection(id, &mut |event| match event {
            Event::Request { request, handle, .. } => {
                all.push((request.op, request.slot, handle != Handle::default()));
            }
            _ => panic!("no request"),
        });
    }
    all
}

fn send(program: &OwnedFd, op: u32, slot: u32, fd: &OwnedFd) {
    let request = Request { version: LAYOUT_VERSION, op, slot, ..Request::default() };
    scm::send(program, request.as_bytes(), &[fd.as_fd()], true).unwrap();
}

/// The last socket of a slot is closed, and its far end is still kept; the program has accepted the next one, of which the
/// predecessor of this server has told nobody. Whoever looks at the far end first closes the next one with it.
#[test]
fn what_a_program_has_said_is_read_before_far_ends_of_a_predecessor_are_watched() {
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, _supervisor) = life(&connection);
    let (near, far) = scm::pair().unwrap();
    drop(near);
    let socket = SocketId { domain: DomainId(1), slot: 4 };
    applications.insert(socket, ComponentId::TCP, far, true);
    applications.unwatched.push_back(socket);
    applications.unread.push((ID, Some(socket.domain)));
    let (_mine, next) = scm::pair().unwrap();
    send(&program, op::ACCEPTED, 4, &next);
    applications.watch_some();
    assert_eq!(applications.unwatched, [socket], "it waits");
    assert_eq!(read(&mut applications), [(op::ACCEPTED, 4, true)]);
    applications.insert(socket, ComponentId::TCP, next, false);
    applications.finish_requests();
    applications.watch_some();
    assert_eq!(applications.unwatched, [socket], "there may be more");
    assert_eq!(read(&mut applications), []);
    applications.watch_some();
    assert!(applications.unwatched.is_empty() && !applications.is_closed(socket), "the next one is watched");
}

/// Nothing answers `ACCEPTED`, so no program repeats it: a connection whose descriptor got lost would be reset.
#[test]
fn what_a_program_tells_once_is_there_until_it_is_carried_out() {
    let (program, connection) = scm::pair().unwrap();
    let (mine, far) = scm::pair().unwrap();
    send(&program, op::ACCEPTED, 3, &far);
    send(&program, op::ACCEPTED, 4, &far);
    drop(far);
    let (mut first, _supervisor) = life(&connection);
    assert_eq!(read(&mut first), [(op::ACCEPTED, 3, true)], "the others wait behind it");
    // It dies before the turn ends.
    drop(first);
    let (mut second, _supervisor) = life(&connection);
    assert_eq!(read(&mut second), [(op::ACCEPTED, 3, true)]);
    assert_eq!(read(&mut second), [], "once a turn");
    second.finish_requests();
    assert_eq!(second.finished, [ID], "there may be more");
    assert_eq!(read(&mut second), [(op::ACCEPTED, 4, true)]);
    second.finish_requests();
    drop(second);
    let (mut third, _supervisor) = life(&connection);
    assert_eq!(read(&mut third), []);
    assert_eq!(
        scm::receive(&mine, &mut [0; 1], true).map(|(n, _)| n),
        Ok(0),
        "no descriptor is left in a socket"
    );
}

#[test]
fn requests_that_are_answered_are_taken_at_once() {
    let (program, connection) = scm::pair().unwrap();
    let (_mine, far) = scm::pair().unwrap();
    (0..3).for_each(|slot| send(&program, op::OPEN, slot, &far));
    let (mut applications, _supervisor) = life(&connection);
    assert_eq!(read(&mut applications), [0, 1, 2].map(|slot| (op::OPEN, slot, true)));
    assert_eq!(read(&mut applications), []);
}

/// Tells of an accepted connection for whose descriptor nobody waits in the kernel. Returns the descriptor.
fn accept(program: &OwnedFd, slot: u32) -> OwnedFd {
    let (near, far) = scm::pair().unwrap();
    let accepted =
        Request { version: LAYOUT_VERSION, op: op::ACCEPTED, slot, args: [1, 1, 0, 0], ..Request::default() };
    scm::send(program, accepted.as_bytes(), &[far.as_fd()], true).unwrap();
    near
}

/// One turn: reads what the program tells, does what the engine does about it, and ends it. Returns the operations and slots.
fn turn(applications: &mut Applications) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    let mut keep = Vec::new();
    applications.finished.clear();
    applications.read_connection(ID, &mut |event| match event {
        Event::Request { request, handle, .. } => {
            all.push((request.op, request.slot));
            if request.op == op::ACCEPTED {
                keep.push((SocketId { domain: DomainId(1), slot: request.slot }, handle));
            }
        }
        _ => panic!("no request"),
    });
    for (socket, handle) in keep {
        applications.carry_out(Effect::Keep { socket, transport: ComponentId::TCP, handle });
    }
    applications.finish_requests();
    all
}

/// What the supervisor was told: sockets to keep, with descriptors, and such to drop.
fn heard(supervisor: &OwnedFd) -> Vec<(&'static str, u32)> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok((n @ 1.., fds)) = scm::receive(supervisor, &mut buffer, true) {
        match postcard::from_bytes(&buffer[..n]) {
            Ok(FromServer::Keep { slot, .. }) if fds.len() == 1 => all.push(("keep", slot)),
            Ok(FromServer::Drop { slot, .. }) => all.push(("drop", slot)),
            _ => panic!("an unexpected message"),
        }
    }
    all
}

#[test]
fn of_a_short_connection_nobody_else_is_told() {
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let near = accept(&program, 4);
    assert_eq!(turn(&mut applications), [(op::ACCEPTED, 4)]);
    assert!(applications.settle_at.is_some());
    drop(near);
    assert!(applications.has_closed(FIRST, epoll::EventFlags::HUP));
    applications.carry_out(Effect::Leave(FIRST));
    applications.carry_out(Effect::Drop(FIRST));
    applications.settle_all();
    assert_eq!(heard(&supervisor), []);
    let mut rest = [0; 1];
    assert!(scm::receive(&connection, &mut rest, true).is_err(), "the packet is taken out");
}

#[test]
fn a_longer_one_is_kept_by_all_after_a_while() {
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let _near = accept(&program, 4);
    let _other = accept(&program, 5);
    turn(&mut applications);
    assert_eq!(heard(&supervisor), []);
    applications.settle_all();
    assert_eq!(heard(&supervisor), [("keep", 4), ("keep", 5)]);
    assert_eq!(applications.settle_at, None);
    applications.carry_out(Effect::Leave(FIRST));
    assert_eq!(heard(&supervisor), []);
    applications.carry_out(Effect::Drop(FIRST));
    assert_eq!(heard(&supervisor), [("drop", 4)]);
    // Others have the far end of the slot's last socket: they are given the next one at once.
    applications.carry_out(Effect::Leave(SECOND));
    let _next = accept(&program, 5);
    turn(&mut applications);
    assert_eq!(heard(&supervisor), [("keep", 5)]);
    // What comes later waits again.
    let _third = accept(&program, 6);
    assert_eq!(turn(&mut applications), [(op::ACCEPTED, 6)]);
    assert_eq!(heard(&supervisor), []);
}

#[test]
fn a_closed_one_is_left_with_somebody_until_its_transport_knows() {
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    drop(accept(&program, 4));
    turn(&mut applications);
    applications.carry_out(Effect::Leave(FIRST));
    applications.settle_all();
    assert_eq!(heard(&supervisor), [("keep", 4)]);
    applications.carry_out(Effect::Drop(FIRST));
    assert_eq!(heard(&supervisor), [("drop", 4)]);
}

#[test]
fn a_successor_reads_of_connections_that_only_its_predecessor_had() {
    let (program, connection) = scm::pair().unwrap();
    let (mut first, _supervisor) = life(&connection);
    let _near = accept(&program, 4);
    assert_eq!(turn(&mut first), [(op::ACCEPTED, 4)]);
    drop(first);
    let (mut second, supervisor) = life(&connection);
    assert_eq!(turn(&mut second), [(op::ACCEPTED, 4)]);
    second.settle_all();
    assert_eq!(heard(&supervisor), [("keep", 4)]);
    drop(second);
    let (mut third, _supervisor) = life(&connection);
    assert_eq!(turn(&mut third), []);
    let _next = accept(&program, 5);
    assert_eq!(turn(&mut third), [(op::ACCEPTED, 5)]);
}

#[test]
fn a_packet_behind_those_that_stay_waits_until_they_are_settled() {
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let _near = accept(&program, 4);
    let (_, other) = scm::pair().unwrap();
    send(&program, op::OPEN, 0, &other);
    assert_eq!(turn(&mut applications), [(op::ACCEPTED, 4)]);
    assert_eq!(heard(&supervisor), [("keep", 4)]);
    assert_eq!(applications.finished, [ID], "there is more");
    let _next = accept(&program, 5);
    assert_eq!(turn(&mut applications), [(op::OPEN, 0), (op::ACCEPTED, 5)]);
    // Somebody waits for it now.
    let watched = Request { version: LAYOUT_VERSION, op: op::WATCHED, slot: 5, ..Request::default() };
    scm::send(&program, watched.as_bytes(), &[], true).unwrap();
    assert_eq!(turn(&mut applications), []);
    assert_eq!(heard(&supervisor), [("keep", 5)]);
    assert_eq!(turn(&mut applications), []);
    // The program ends, and others still have the descriptor.
    let _last = accept(&program, 6);
    drop(program);
    assert_eq!(turn(&mut applications), [(op::ACCEPTED, 6)]);
    assert_eq!(heard(&supervisor), [("keep", 6)]);
}

#[test]
fn when_no_more_can_stay_the_older_half_goes() {
    use unhurried::STAY_MAX;
    let (program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let all: Vec<OwnedFd> = (0..STAY_MAX as u32 + 8).map(|slot| accept(&program, slot)).collect();
    let slots: Vec<u32> = (0..4).flat_map(|_| turn(&mut applications)).map(|(_, slot)| slot).collect();
    assert_eq!(slots, (0..all.len() as u32).collect::<Vec<_>>(), "each is read once");
    let half = (0..STAY_MAX as u32 / 2).map(|slot| ("keep", slot));
    assert_eq!(heard(&supervisor), half.collect::<Vec<_>>());
}

const FIRST: SocketId = SocketId { domain: DomainId(1), slot: 4 };
const SECOND: SocketId = SocketId { domain: DomainId(1), slot: 5 };

/// Which survivors the engine is told of.
fn told(applications: &mut Applications, sockets: &[SocketId], fds: Vec<OwnedFd>) -> Vec<SocketId> {
    let mut all = Vec::new();
    let sockets = sockets.iter().copied();
    applications.take_far_ends(sockets, ComponentId::TCP, fds, &mut |event| match event {
        Event::Survivor { socket, .. } => all.push(socket),
        _ => panic!("no survivor"),
    });
    all
}

#[test]
fn survivors_are_known_before_their_far_ends_are_here() {
    let (custodian, connection) = scm::pair().unwrap();
    let (mut applications, _supervisor) = life(&connection);
    applications.custodians.insert(DomainId(1), ID);
    let (program, far) = scm::pair().unwrap();
    assert_eq!(told(&mut applications, &[FIRST, SECOND], vec![]), [FIRST, SECOND]);
    // A program binds it meanwhile: its custodian is told when the far end is here, and gets a duplicate.
    let note = Reply { version: LAYOUT_VERSION, slot: 4, value: op::BIND as u64, ..Reply::default() };
    applications.note(FIRST, note);
    let mut buffer = [0; 4096];
    assert!(scm::receive(&custodian, &mut buffer, true).is_err());
    assert!(told(&mut applications, &[FIRST], vec![far]).is_empty(), "it is known");
    assert_eq!(scm::receive(&custodian, &mut buffer, true).unwrap().1.len(), 1);
    assert!(!applications.unwatched.is_empty(), "it is to be watched");
    drop(program);
    assert!(applications.is_closed(FIRST));
}

#[test]
fn a_far_end_that_nobody_announced_is_a_survivor_unless_the_slot_has_another() {
    let (_program, connection) = scm::pair().unwrap();
    let (mut applications, _supervisor) = life(&connection);
    let (first, far) = scm::pair().unwrap();
    assert_eq!(told(&mut applications, &[FIRST], vec![far]), [FIRST]);
    let (_second, far) = scm::pair().unwrap();
    drop(first);
    assert!(told(&mut applications, &[FIRST], vec![far]).is_empty());
    assert!(applications.is_closed(FIRST), "it has the first one");
    // One that was dropped before its far end came is a survivor again, and closed then.
    told(&mut applications, &[SECOND], vec![]);
    applications.drop_socket(SECOND);
    let (_, far) = scm::pair().unwrap();
    assert_eq!(told(&mut applications, &[SECOND], vec![far]), [SECOND]);
}

/// What a program holds without descriptors is found when its connection ends, and again by a successor if this server dies then.
#[test]
fn who_held_connections_leaves_them_to_be_closed() {
    let domain = DomainId(1);
    let geometry = eft_channel::socket::Geometry { slots: 8, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(eft_channel::Segment::heap(geometry.arena_len()), geometry).unwrap();
    arena.touch(ComponentId::TCP, 6);
    for (slot, holder) in [(2, ID.0), (3, ID.0 + 1), (5, ID.0)] {
        arena.socket(slot).unwrap().hold(holder);
    }
    arena.socket(4).unwrap().set_inode(ID.0);
    let (program, connection) = scm::pair().unwrap();
    let with_domain = || {
        let (mut applications, supervisor) = life(&connection);
        let [fd, bell] = [(); 2].map(|()| connection.try_clone().unwrap());
        applications.domains.insert(domain, Domain { arena: arena.clone(), arena_fd: fd, bell });
        (applications, supervisor)
    };
    let read = |applications: &mut Applications| {
        let mut released = Vec::new();
        applications.read_connection(ID, &mut |event| match event {
            Event::Released(socket) => released.push(socket.slot),
            _ => panic!("nothing else"),
        });
        released
    };
    let (mut first, supervisor) = with_domain();
    let request = Request { version: LAYOUT_VERSION, op: op::HOLD, sequence: 9, ..Request::default() };
    scm::send(&program, request.as_bytes(), &[], true).unwrap();
    assert!(read(&mut first).is_empty());
    let mut bytes = [0; eft_messages::control::REPLY_LEN];
    scm::receive(&program, &mut bytes, true).unwrap();
    let reply: Reply = zerocopy::transmute!(bytes);
    assert_eq!((reply.errno, reply.sequence, reply.value), (0, 9, ID.0));
    drop(program);
    assert_eq!(read(&mut first), [2, 5]);
    // It dies before the turn ends, so the supervisor still has the connection.
    assert_eq!(scm::receive(&supervisor, &mut [0; 4096], true).err(), Some(rustix::io::Errno::AGAIN));
    drop(first);
    let (mut second, supervisor) = with_domain();
    second.connections.get_mut(&ID).unwrap().may_hold = true;
    assert_eq!(read(&mut second), [2, 5]);
    second.forget_ended();
    let mut buffer = [0; 4096];
    let (n, _) = scm::receive(&supervisor, &mut buffer, true).unwrap();
    let told: FromServer = postcard::from_bytes(&buffer[..n]).unwrap();
    assert!(matches!(told, FromServer::DropConnection { id } if id == ID.0));
}
