use super::*;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::time::Instant;

fn say(to: &OwnedFd, message: &ToKeeper, fds: &[&OwnedFd]) {
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    scm::send(to, &encode(message), &fds, false).unwrap();
}

fn socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

fn listening(name: &str) -> (OwnedFd, SocketAddrUnix) {
    let name = format!("eft-keeper-{name}-{}", std::process::id());
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let listener = socket();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    (listener, address)
}

fn keeper(supervisor: OwnedFd) -> Keeper {
    Keeper {
        entries: Entries::new(),
        supervisor: Some(supervisor),
        successors: None,
        place: None,
        ended: false,
        buffer: vec![0; PACKET_MAX],
    }
}

#[test]
fn it_ends_when_nobody_comes() {
    let (ours, theirs) = scm::pair().unwrap();
    let (listener, _) = listening("patience");
    say(&ours, &ToKeeper::Begin { place: None }, &[&listener]);
    drop(ours);
    keeper(theirs).keep(Duration::from_millis(1)).unwrap();
}

/// A server may hang for longer than anybody's patience, and a successor may come late: on a busy machine, or to take over.
#[test]
fn it_waits_longer_while_a_server_lives() {
    let mut server = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&server);
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    let (ours, theirs) = scm::pair().unwrap();
    let (listener, _) = listening("lives");
    say(&ours, &ToKeeper::Begin { place: None }, &[&listener]);
    say(&ours, &ToKeeper::Put { name: "process/tcp".into(), value: vec![] }, &[&pidfd]);
    say(&ours, &ToKeeper::Put { name: "device/0".into(), value: vec![] }, &[&listener]);
    drop(ours);
    let mut keeper = keeper(theirs);
    let (patience, begun) = (Duration::from_millis(20), Instant::now());
    keeper.keep(patience).unwrap();
    assert!(begun.elapsed() >= patience * WHILE_SERVERS_LIVE);
    assert_eq!(keeper.times(), WHILE_SERVERS_LIVE);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(keeper.times(), 1);
}

#[test]
fn who_comes_when_it_is_ending_begins_afresh() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keeper");
    let listener = operator::listen(&path).unwrap();
    let coming = {
        let path = path.clone();
        std::thread::spawn(move || take_over("test", &path).unwrap().is_none())
    };
    while !matches!(poll(&mut [PollFd::new(&listener, PollFlags::IN)], None), Ok(1..)) {}
    drop(listener);
    assert!(coming.join().unwrap());
    assert!(take_over("test", &dir.path().join("none")).unwrap().is_none());
}

#[test]
fn what_was_put_and_not_dropped_goes_to_the_successor_alone() {
    let (listener, address) = listening("test");
    let (ours, theirs) = scm::pair().unwrap();
    let keeping = std::thread::spawn(move || {
        keeper(theirs).keep(Duration::from_secs(60)).unwrap();
    });
    let memory = crate::memory::create("eft-kept", 4096).unwrap();
    say(&ours, &ToKeeper::Begin { place: None }, &[&listener]);
    for (name, value) in [("a", 1), ("b", 2), ("a", 3)] {
        say(&ours, &ToKeeper::Put { name: name.into(), value: vec![value] }, &[&memory]);
    }
    say(&ours, &ToKeeper::Drop { name: "b".into() }, &[]);
    // Two supervisors die one after the other; a successor that comes while one lives has to wait.
    let early = socket();
    rustix::net::connect(&early, &address).unwrap();
    drop(ours);
    let entries = take_all(&early).unwrap().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!((entries["a"].value.as_slice(), entries["a"].fds.len()), (&[3u8][..], 1));
    say(&early, &ToKeeper::Put { name: "c".into(), value: vec![4] }, &[]);
    drop(early);
    let last = socket();
    rustix::net::connect(&last, &address).unwrap();
    let entries = take_all(&last).unwrap().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["a", "c"]);
    let stat = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_ino;
    assert_eq!(stat(&entries["a"].fds[0]), stat(&memory), "another descriptor");
    say(&last, &ToKeeper::End, &[]);
    keeping.join().unwrap();
}

#[test]
fn one_that_was_replaced_ends_and_the_other_serves() {
    let dir = tempfile::tempdir().unwrap();
    let place = |n: u32| Place { from: dir.path().join(format!("new{n}")), to: dir.path().join("keeper") };
    let path = place(1).to;
    let begin = |n: u32| {
        let (ours, theirs) = scm::pair().unwrap();
        say(&ours, &ToKeeper::Put { name: format!("of {n}"), value: vec![] }, &[]);
        let listener = operator::listen(&place(n).from).unwrap();
        let file = std::fs::metadata(place(n).from).unwrap().ino();
        say(&ours, &ToKeeper::Begin { place: Some(place(n)) }, &[&listener]);
        let patience = Duration::from_secs(60);
        let keeping =
            std::thread::spawn(move || keeper(theirs).keep(patience).map_err(|why| why.to_string()));
        let until = Instant::now() + Duration::from_secs(20);
        while !std::fs::metadata(&path).is_ok_and(|there| there.ino() == file) {
            assert!(Instant::now() < until);
        }
        (ours, keeping, listener)
    };
    let (first, keeping, listener) = begin(1);
    // A successor comes too early, and waits at the first.
    let coming = {
        let path = path.clone();
        std::thread::spawn(move || take_over("test", &path).unwrap().unwrap())
    };
    while !matches!(poll(&mut [PollFd::new(&listener, PollFlags::IN)], None), Ok(1..)) {}
    drop(listener);
    // The supervisor dies when the second has everything, and the first was not told to end.
    let (second, other, _listener) = begin(2);
    drop((first, second));
    assert!(keeping.join().unwrap().unwrap_err().contains("another keeper"));
    let (successor, entries) = coming.join().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["of 2"]);
    say(&successor, &ToKeeper::End, &[]);
    other.join().unwrap().unwrap();
}

#[test]
fn one_whose_supervisor_died_before_it_had_everything_ends_and_removes_nothing() {
    let (ours, theirs) = scm::pair().unwrap();
    say(&ours, &ToKeeper::Put { name: "a".into(), value: vec![] }, &[]);
    drop(ours);
    assert!(keeper(theirs).keep(Duration::from_secs(60)).is_err());
}
