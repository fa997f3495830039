use super::*;
use std::os::fd::AsFd;

/// A packet with a descriptor that is readable as long as its other end is open.
fn send_one(to: &OwnedFd, word: &[u8]) -> OwnedFd {
    let (one, other) = pair().unwrap();
    send(to, word, &[one.as_fd()], true).unwrap();
    other
}

fn is_closed(other: &OwnedFd) -> bool {
    matches!(receive(other, &mut [0; 8], true), Ok((0, _)))
}

#[test]
fn a_packet_that_was_looked_at_comes_again_with_its_descriptors() {
    let (from, to) = pair().unwrap();
    let other = send_one(&to, b"first");
    send(&to, b"second", &[], true).unwrap();
    let mut buffer = [0; 32];
    for _ in 0..2 {
        let (n, fds, _) = peek_with_sender(&from, &mut buffer).unwrap();
        assert_eq!((&buffer[..n], fds.len()), (&b"first"[..], 1));
    }
    let (n, fds) = receive(&from, &mut buffer, true).unwrap();
    assert_eq!((&buffer[..n], fds.len()), (&b"first"[..], 1));
    assert!(!is_closed(&other));
    drop(fds);
    assert!(is_closed(&other), "no duplicate is left");
    assert_eq!(peek_with_sender(&from, &mut buffer).unwrap().0, 6);
}

#[test]
fn a_packet_that_is_thrown_away_takes_its_descriptors_along() {
    let (from, to) = pair().unwrap();
    let other = send_one(&to, b"first");
    send(&to, b"second", &[], true).unwrap();
    take_out(&from).unwrap();
    assert!(is_closed(&other));
    let mut buffer = [0; 32];
    let (n, _) = receive(&from, &mut buffer, true).unwrap();
    assert_eq!(&buffer[..n], b"second");
    assert_eq!(take_out(&from).unwrap_err(), Errno::AGAIN, "there is none");
}

#[test]
fn packets_are_looked_at_one_behind_the_other_and_taken_out_together() {
    let (from, to) = pair().unwrap();
    look_on(&from).unwrap();
    let words = [&b"first"[..], b"second", b"third", b"fourth"];
    let others: Vec<OwnedFd> = words.iter().map(|word| send_one(&to, word)).collect();
    let mut buffer = [0; 32];
    let mut look = || {
        let (n, fds, _) = peek_with_sender(&from, &mut buffer)?;
        Ok::<_, Errno>((buffer[..n].to_vec(), fds.len()))
    };
    for word in &words[..3] {
        assert_eq!(look(), Ok((word.to_vec(), 1)));
    }
    assert_eq!(take_out_some(&from, 2), 2);
    assert_eq!(others.iter().map(is_closed).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(look(), Ok((words[3].to_vec(), 1)), "the third was looked at and is still there");
    assert_eq!(look(), Err(Errno::AGAIN));
    // Who begins anew, as a successor does, sees what is there.
    look_on(&from).unwrap();
    assert_eq!(look(), Ok((words[2].to_vec(), 1)));
    drop(to);
    assert_eq!(look(), Ok((words[3].to_vec(), 1)));
    assert_eq!(look(), Ok((Vec::new(), 0)), "the end comes behind them");
    assert_eq!(take_out_some(&from, 2), 2);
    assert!(others.iter().all(is_closed));
}

#[test]
fn an_empty_packet_is_not_the_end() {
    let (from, to) = pair().unwrap();
    assert!(!is_over(&from));
    send(&to, b"", &[], true).unwrap();
    assert!(!is_over(&from));
    assert!(matches!(receive(&from, &mut [0; 8], true), Ok((0, _))));
    assert!(!is_over(&from));
    drop(to);
    assert!(is_over(&from));
}
