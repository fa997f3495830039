use super::*;
use crate::protocol::PACKET_MAX;
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

#[test]
fn a_far_end_that_a_transport_misses_is_given_once_more() {
    let (_program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let (near, far) = scm::pair().unwrap();
    let socket = SocketId { domain: DomainId(1), slot: 4 };
    applications.insert(socket, ComponentId::TCP, far);
    applications.keep_again(SocketId { slot: 5, ..socket });
    applications.keep_again(socket);
    let mut buffer = vec![0; PACKET_MAX];
    let (n, fds) = scm::receive(&supervisor, &mut buffer, true).unwrap();
    let said = postcard::from_bytes(&buffer[..n]).unwrap();
    assert!(matches!(said, FromServer::Keep { slot: 4, transport: ComponentId::TCP, .. }), "{said:?}");
    scm::send(&fds[0], b"it is that one", &[], true).unwrap();
    let (n, _) = scm::receive(&near, &mut buffer, true).unwrap();
    assert_eq!(&buffer[..n], b"it is that one");
    assert!(scm::receive(&supervisor, &mut buffer, true).is_err(), "it has no other");
}

#[test]
fn a_socket_with_the_descriptor_of_another_gets_its_far_end_when_that_comes() {
    let (_program, connection) = scm::pair().unwrap();
    let (mut applications, supervisor) = life(&connection);
    let first = SocketId { domain: DomainId(1), slot: 4 };
    let further = SocketId { slot: 5, ..first };
    let tcp1 = ComponentId::new(eft_base::Role::Tcp, 1);
    applications.take_far_ends([first].into_iter(), ComponentId::TCP, Vec::new(), &mut |_| {});
    applications.carry_out(Effect::KeepBeside { socket: further, transport: tcp1, of: first });
    let mut buffer = vec![0; PACKET_MAX];
    assert!(scm::receive(&supervisor, &mut buffer, true).is_err(), "nobody has it yet");
    let (near, far) = scm::pair().unwrap();
    applications.take_far_ends([first].into_iter(), ComponentId::TCP, vec![far], &mut |_| {});
    let (n, fds) = scm::receive(&supervisor, &mut buffer, true).unwrap();
    match postcard::from_bytes(&buffer[..n]).unwrap() {
        FromServer::Keep { slot: 5, transport, .. } => assert_eq!(transport, tcp1),
        other => panic!("{other:?}"),
    }
    scm::send(&fds[0], b"it is that one", &[], true).unwrap();
    let (n, _) = scm::receive(&near, &mut buffer, true).unwrap();
    assert_eq!(&buffer[..n], b"it is that one");
    assert!(!applications.is_closed(first) && !applications.is_closed(further));
    drop(near);
    assert!(applications.is_closed(first) && applications.is_closed(further));
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
    applications.insert(socket, ComponentId::TCP, far);
    applications.unwatched.push_back(socket);
    applications.unread.push((ID, Some(socket.domain)));
    let (_mine, next) = scm::pair().unwrap();
    send(&program, op::ACCEPTED, 4, &next);
    applications.watch_some();
    assert_eq!(applications.unwatched, [socket], "it waits");
    assert_eq!(read(&mut applications), [(op::ACCEPTED, 4, true)]);
    applications.insert(socket, ComponentId::TCP, next);
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
