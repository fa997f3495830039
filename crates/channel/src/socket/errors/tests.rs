use crate::segment::Segment;
use crate::socket::{Arena, ErrorRecord, Geometry, QUOTE_MAX};

#[test]
fn an_error_is_read_as_it_was_written_and_ends_with_its_socket() {
    let geometry = Geometry { slots: 2, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
    let page = arena.socket(1).unwrap();
    let (sent, mut quote) = ([7; QUOTE_MAX + 20], [0; QUOTE_MAX]);
    for number in 0..20 {
        let record = ErrorRecord { errno: number as i32, ..ErrorRecord::default() };
        page.write_error(number, &record, &sent[..number as usize * 17]);
        page.set_errors_end(number + 1);
        assert!(page.has_errors());
        let len = (number as usize * 17).min(QUOTE_MAX);
        let back = page.read_error(number, &mut quote);
        assert_eq!(back, ErrorRecord { len: len as u16, ..record });
        assert_eq!(quote[..len], sent[..len]);
        page.set_errors_taken(number + 1);
        assert!(!page.has_errors());
    }
    page.set_errors_end(30);
    page.reset(eft_base::ComponentId::UDP);
    assert_eq!((page.errors_end(), page.errors_taken()), (0, 0));
}
