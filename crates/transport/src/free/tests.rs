use super::*;

#[test]
fn a_block_that_comes_back_twice_is_given_out_once() {
    let mut free = FreeBlocks::new(3);
    assert_eq!((free.used(), free.take()), (3, None));
    assert!(free.put(2));
    assert!(!free.put(2));
    assert!(free.contains(2) && !free.contains(1));
    assert_eq!(free.used(), 2);
    assert_eq!((free.take(), free.take()), (Some(2), None));
    assert!(free.put(2), "it was in use again");
}
