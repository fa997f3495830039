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
    let connection = Connection { fd, domain, role: Role::Process, asked: 0, version: LAYOUT_VERSION };
    applications.connections.insert(ID, connection);
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
