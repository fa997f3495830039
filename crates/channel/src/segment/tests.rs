use super::*;

#[test]
fn bounds_and_rights_are_checked() {
    let s = Segment::heap(100);
    s.write(90, &[7; 10]).unwrap();
    assert_eq!(s.write(91, &[7; 10]), Err(OutOfBounds));
    assert_eq!(s.write(usize::MAX, &[7; 10]), Err(OutOfBounds));
    assert_eq!(s.read_only().write(0, &[1]), Err(OutOfBounds));
    let mut b = [0; 10];
    s.read_only().read(90, &mut b).unwrap();
    assert_eq!(b, [7; 10]);
    assert!(s.atomic_u64(4).is_err());
}
