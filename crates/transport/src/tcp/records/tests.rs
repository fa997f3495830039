use super::*;

fn records(ends: &[u32]) -> Records {
    let mut records = Records::default();
    ends.iter().for_each(|end| records.add(*end, 1000, 9000));
    records
}

#[test]
fn ranges_are_cut_where_a_record_ends() {
    let r = records(&[2000, 2400, 6000]);
    let range = Range { start: 1000, end: 9000 };
    assert_eq!(r.first_part(range), Range { start: 1000, end: 2000 });
    assert_eq!(r.first_part(Range { start: 2000, ..range }), Range { start: 2000, end: 2400 });
    assert_eq!(r.first_part(Range { start: 6000, ..range }), Range { start: 6000, end: 9000 });
    assert_eq!(r.last_part(range), Range { start: 6000, end: 9000 });
    assert_eq!(r.last_part(Range { end: 6000, ..range }), Range { start: 2400, end: 6000 });
}

#[test]
fn ends_beyond_the_stream_and_out_of_order_mean_nothing() {
    assert_eq!(records(&[1000, 9001, u32::MAX]).next_end(0), None);
    let mut r = records(&[3000, 2000, 3000]);
    assert_eq!((r.next_end(0), r.next_end(3000)), (Some(3000), None));
    r.forget(3000);
    assert_eq!(r.next_end(0), None);
}

#[test]
fn an_end_is_known_by_its_low_half() {
    let (una, end) = ((1 << 32) - 10, (1 << 32) + 100);
    let mut r = Records::default();
    r.add(50, una, end);
    assert_eq!(r.next_end(una), Some((1 << 32) + 50));
}
