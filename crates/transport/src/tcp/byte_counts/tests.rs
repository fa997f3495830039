use super::*;

fn parsed(option: ([u8; LEN_MAX], usize)) -> Option<ByteCounts> {
    let (bytes, _) = option;
    ByteCounts::parse(bytes[0], &bytes[2..bytes[1] as usize])
}

#[test]
fn a_built_option_is_read_back() {
    let bytes = [5, 70_000, 0x0100_0002];
    let whole = option(bytes, 3);
    assert_eq!((whole.0[0], whole.0[1], whole.1), (174, 11, 12));
    let told = parsed(whole).unwrap();
    assert_eq!([ECT_1, ECT_0, CE].map(|at| told.get(at)), [Some(6), Some(70_001), Some(2)]);
    assert_eq!([ECT_1, ECT_0, CE].map(|at| told.growth(at, bytes[at])), [0; 3]);
}

#[test]
fn what_has_no_room_is_the_code_that_is_not_in_use() {
    for (bytes, kind, missing) in [([0, 9, 9], 172, ECT_1), ([9, 0, 9], 174, ECT_0)] {
        let short = option(bytes, 2);
        assert_eq!((short.0[0], short.0[1], short.1), (kind, 8, 8));
        let told = parsed(short).unwrap();
        assert_eq!((told.get(missing), told.get(CE)), (None, Some(9)));
        assert_eq!(told.growth(missing, 77), 0);
    }
    assert_eq!([0, 4, 7, 8, 11, 12, 28].map(fitting), [0, 0, 0, 2, 2, 3, 3]);
}

#[test]
fn a_count_that_went_round_grew_and_one_of_before_shrank() {
    let told = |count| parsed(option([0, count, 0], 3)).unwrap();
    assert_eq!(told(0x0100_0064).growth(ECT_0, 0xff_fff0), 0x74);
    assert_eq!(told(1000).growth(ECT_0, 2460), -1460);
    assert_eq!(told(0xff_ff00).growth(ECT_0, 0x0100_0010), -0x110);
}

#[test]
fn an_option_that_was_cleared_is_noticed() {
    let read = |data: &[u8]| ByteCounts::parse(174, data).unwrap();
    assert!(
        read(&[0; 9]).is_cleared()
            && read(&[0, 0, 0]).is_cleared()
            && read(&[0, 0, 1, 0, 0, 0, 0, 0, 0]).is_cleared()
    );
    let none = read(&[]);
    assert!(none.is_empty() && !none.is_cleared());
    // Nor is one with half a field more.
    let odd = read(&[0, 0, 1, 0, 0]);
    assert_eq!((odd.get(ECT_1), odd.get(CE), odd.is_cleared()), (Some(1), None, false));
    assert_eq!(ByteCounts::parse(173, &[0; 9]), None);
}
