use super::*;

#[test]
fn what_is_written_is_read_again() {
    let first =
        Message::new(18, 0x301, 7, 9).fixed(&[2; 16]).text(3, "eft0").attribute(4, &[1, 2, 3, 4]).done();
    let all = [first, Message::new(22, 1, 8, 9).done()].concat();
    let read = requests(&all);
    assert_eq!((read.len(), read[0].kind, read[0].flags, read[0].sequence), (2, 18, 0x301, 7));
    assert_eq!(attribute(read[0].body, 16, 3), Some(&b"eft0\0"[..]));
    assert_eq!(attribute(read[0].body, 16, 4), Some(&[1, 2, 3, 4][..]));
    assert_eq!(attribute(read[0].body, 16, 5), None);
    assert_eq!(read[1].kind, 22);
}

#[test]
fn nonsense_is_not_a_request() {
    for bytes in [&[0xff; 40][..], &[0; 40], &[15, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[3; 7]] {
        assert_eq!(requests(bytes), []);
    }
    assert_eq!(attribute(&[3, 0, 1, 0], 0, 1), None);
    assert_eq!(attribute(&[200, 0, 1, 0], 0, 1), None);
    assert_eq!(number(&[1, 2], 0), 0);
}
