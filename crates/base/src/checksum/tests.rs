use super::*;

#[test]
fn example_of_rfc_1071() {
    let sum = Checksum::new().add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
    assert_eq!(sum.partial(), 0xddf2);
}

#[test]
fn wide_sum_equals_the_naive_one() {
    let bytes: Vec<u8> = (0..1501u32).map(|i| (i * 7 + i / 13) as u8).collect();
    for n in 0..bytes.len() {
        let mut naive: u64 = 0;
        for c in bytes[..n].chunks(2) {
            naive += u16::from_be_bytes([c[0], *c.get(1).unwrap_or(&0)]) as u64;
        }
        assert_eq!(Checksum::new().add_bytes(&bytes[..n]).partial(), fold(naive), "{n}");
    }
}
