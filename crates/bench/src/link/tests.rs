use super::*;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// A wire between two sockets, and their other ends.
fn link() -> (Link, [UnixDatagram; 2]) {
    let pairs = [0, 1].map(|_| UnixDatagram::pair().unwrap());
    let [(near, a), (far, b)] = pairs;
    let ends = [a, b].map(|end| {
        end.set_nonblocking(true).unwrap();
        File::from(OwnedFd::from(end))
    });
    (Link::start(ends), [near, far])
}

fn set(link: &Link, wire: Wire) {
    link.set(wire);
    // The relay checks for orders ten times a second.
    std::thread::sleep(Duration::from_millis(250));
}

#[test]
fn frames_arrive_in_order_after_the_delay() {
    let (link, [near, far]) = link();
    set(&link, Wire { delay: Duration::from_millis(20), ..Wire::CLEAR });
    let begun = Instant::now();
    (0..10u8).for_each(|n| assert_eq!(near.send(&[n; 100]).unwrap(), 100));
    let mut buffer = [0; FRAME_MAX];
    for n in 0..10 {
        assert_eq!((far.recv(&mut buffer).unwrap(), buffer[0]), (100, n));
    }
    assert!(begun.elapsed() >= Duration::from_millis(20));
}

#[test]
fn so_many_are_lost_and_the_rest_arrives() {
    let (link, [near, far]) = link();
    set(&link, Wire { loss: 0.5, seed: 7, ..Wire::CLEAR });
    for n in 0..200u8 {
        near.send(&[n]).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = [0; FRAME_MAX];
    let arrived = std::iter::from_fn(|| far.recv(&mut buffer).ok()).count();
    assert!((60..=140).contains(&arrived), "{arrived} of 200");
}

#[test]
fn what_does_not_fit_the_queue_is_lost() {
    let (link, [near, far]) = link();
    // Ten frames of 100 bytes wait for a wire that takes one in a second.
    set(&link, Wire { rate: 100, queue: 150, ..Wire::CLEAR });
    (0..10u8).for_each(|n| assert_eq!(near.send(&[n; 100]).unwrap(), 100));
    std::thread::sleep(Duration::from_millis(300));
    set(&link, Wire::CLEAR);
    far.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut buffer = [0; FRAME_MAX];
    let arrived = std::iter::from_fn(|| far.recv(&mut buffer).ok()).count();
    assert_eq!(arrived, 1);
}

#[test]
fn some_arrive_twice() {
    let (link, [near, far]) = link();
    set(&link, Wire { duplicate: 0.5, seed: 7, ..Wire::CLEAR });
    for n in 0..100u8 {
        near.send(&[n]).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = [0; FRAME_MAX];
    let arrived = std::iter::from_fn(|| far.recv(&mut buffer).ok()).count();
    assert!((120..=180).contains(&arrived), "{arrived} of 100");
}
