use super::*;

#[test]
fn a_byte_that_lies_elsewhere_is_found() {
    let content = content();
    assert_eq!(first_different(&content, 0, &content), None);
    let mut around = content[CHUNK - 10..].to_vec();
    around.extend_from_slice(&content[..100]);
    assert_eq!(first_different(&content, 3 * CHUNK as u64 - 10, &around), None);
    around[50] ^= 1;
    assert_eq!(first_different(&content, 3 * CHUNK as u64 - 10, &around), Some(3 * CHUNK as u64 + 40));
    assert!(first_different(&content, 1448, &content[..1448]).is_some());
}
