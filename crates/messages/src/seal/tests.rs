use super::*;
use eft_base::{PoolId, Random};

#[test]
fn every_single_bit_counts_but_those_of_the_checksum() {
    let mut random = Random::new(1);
    for (len, checksum_at) in [(20, 16), (32, 16), (60, 16), (8, 6), (21, 16)] {
        for refs in 0..4 {
            let mut header: Vec<u8> = (0..len).map(|_| random.next_u32() as u8).collect();
            let mut payload: Vec<PacketRef> = (0..refs)
                .map(|_| PacketRef {
                    pool: PoolId(random.next_u32() as u16),
                    generation: random.next_u32() as u16,
                    slot: random.next_u32(),
                    offset: random.next_u32(),
                    len: random.next_u32(),
                })
                .collect();
            let sealed = seal(&header, checksum_at, &payload);
            for bit in 0..len * 8 {
                header[bit / 8] ^= 1 << (bit % 8);
                let left_out = (checksum_at..checksum_at + 2).contains(&(bit / 8));
                assert_eq!(seal(&header, checksum_at, &payload) == sealed, left_out, "{len} {bit}");
                header[bit / 8] ^= 1 << (bit % 8);
            }
            for bit in 0..refs * size_of::<PacketRef>() * 8 {
                let flip = |payload: &mut [PacketRef]| payload.as_mut_bytes()[bit / 8] ^= 1 << (bit % 8);
                flip(&mut payload);
                assert_ne!(seal(&header, checksum_at, &payload), sealed, "{refs} {bit}");
                flip(&mut payload);
            }
            assert_ne!(seal(&header[..len - 1], checksum_at, &payload), sealed);
            if refs > 1 {
                payload.swap(0, 1);
                assert_ne!(seal(&header, checksum_at, &payload), sealed);
                payload.pop();
                assert_ne!(seal(&header, checksum_at, &payload), sealed);
            }
        }
    }
}

#[test]
fn a_mixture_of_two_is_not_sealed() {
    let mut random = Random::new(2);
    for _ in 0..10_000 {
        let mut make = || {
            let header: [u8; 32] = core::array::from_fn(|_| random.below(3) as u8);
            let r = PacketRef {
                pool: PoolId(3),
                generation: 0,
                slot: random.below(4) as u32,
                offset: random.below(1 << 20) as u32,
                len: random.below(1 << 16) as u32,
            };
            (header, r)
        };
        let ((a, from), (b, other)) = (make(), make());
        if a != b {
            assert_ne!(seal(&a, 16, &[from]), seal(&b, 16, &[from]));
        }
        assert_ne!(seal(&a, 16, &[from]), seal(&a, 16, &[other]));
    }
}
