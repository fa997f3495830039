use super::*;

fn of(len: u32) -> DatagramHeader {
    DatagramHeader { len, port: 7, ttl: 64, ..DatagramHeader::default() }
}

fn alone(len: u32) -> OpenRecord {
    OpenRecord { turn: 0, at: 0, header: of(len), count: 1 }
}

#[test]
fn equal_lengths_and_a_shorter_last_one_make_a_record() {
    let two = alone(100).with(&of(100)).unwrap();
    assert_eq!((two.header.len, two.header.segment, two.count), (200, 100, 2));
    let three = two.with(&of(30)).unwrap();
    assert_eq!((three.header.len, three.header.segment, three.count), (230, 100, 3));
    assert!(three.with(&of(30)).is_none(), "a shorter one is the last");
    assert!(two.with(&of(101)).is_none(), "a longer one begins anew");
    assert!(two.with(&of(0)).is_none(), "an empty one would not be seen");
    assert!(alone(0).with(&of(0)).is_none());
}

#[test]
fn what_a_record_says_is_true_of_each() {
    let others = [
        DatagramHeader { port: 8, ..of(100) },
        DatagramHeader { tos: 1, ..of(100) },
        DatagramHeader { ttl: 63, ..of(100) },
        DatagramHeader { local: eft_base::WireAddress([1; 16]), ..of(100) },
    ];
    assert!(others.iter().all(|other| alone(100).with(other).is_none()));
}

#[test]
fn a_record_has_no_more_than_a_datagram_could_and_64_of_them() {
    let mut record = alone(1);
    while let Some(more) = record.with(&of(1)) {
        record = more;
    }
    assert_eq!(record.count, 64);
    assert!(alone(40000).with(&of(40000)).is_none());
}
