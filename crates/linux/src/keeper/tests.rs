use super::*;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

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

#[test]
fn who_comes_when_it_is_ending_begins_afresh() {
    let (listener, address) = listening("late");
    let late = socket();
    rustix::net::connect(&late, &address).unwrap();
    drop(listener);
    assert!(take_over(&late).unwrap().is_none());
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
    let entries = take_over(&early).unwrap().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!((entries["a"].value.as_slice(), entries["a"].fds.len()), (&[3u8][..], 1));
    say(&early, &ToKeeper::Put { name: "c".into(), value: vec![4] }, &[]);
    drop(early);
    let last = socket();
    rustix::net::connect(&last, &address).unwrap();
    let entries = take_over(&last).unwrap().unwrap();
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
    let begin = |n: u32| {
        let (ours, theirs) = scm::pair().unwrap();
        say(&ours, &ToKeeper::Put { name: format!("of {n}"), value: vec![] }, &[]);
        let listener = operator::listen(&place(n).from).unwrap();
        say(&ours, &ToKeeper::Begin { place: Some(place(n)) }, &[&listener]);
        let patience = Duration::from_secs(60);
        (ours, std::thread::spawn(move || keeper(theirs).keep(patience).map_err(|why| why.to_string())))
    };
    let (first, keeping) = begin(1);
    let until = Instant::now() + Duration::from_secs(20);
    while !place(1).to.exists() {
        assert!(Instant::now() < until);
    }
    // The supervisor dies when the second has everything, and the first was not told to end.
    let (second, other) = begin(2);
    drop((first, second));
    assert!(keeping.join().unwrap().unwrap_err().contains("another keeper"));
    let successor = operator::connect("test", &place(1).to).unwrap();
    assert_eq!(take_over(&successor).unwrap().unwrap().keys().collect::<Vec<_>>(), ["of 2"]);
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
