use super::*;

#[test]
fn blocks_are_whole_and_padded() {
    let mut out = Vec::new();
    let mut w = PcapWriter::new(&mut out, "eft0").unwrap();
    w.write(&CapturedFrame { bytes: vec![7; 61], at: Instant(5), outgoing: true, lost: 0 }).unwrap();
    let mut at = 0;
    let mut kinds = Vec::new();
    while at < out.len() {
        let word = |i: usize| u32::from_le_bytes(out[i..i + 4].try_into().unwrap());
        let len = word(at + 4) as usize;
        assert_eq!(len % 4, 0);
        assert_eq!(word(at + len - 4) as usize, len);
        kinds.push(word(at));
        at += len;
    }
    assert_eq!((at, kinds), (out.len(), vec![0x0a0d_0d0a, 1, 6]));
}
