//! What a process does that is not protected: a program of its own, since that holds for a whole process.

use eft_base::{PacketRef, PoolId, protection};
use eft_channel::Segment;
use eft_channel::memory::PoolView;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_changed_view_is_used() {
    let mut changed = PoolView::new(Segment::heap(1 << 16), 1 << 12, 1 << 10, 60);
    changed.base ^= 4;
    let at = PacketRef { pool: PoolId(1), slot: 3, generation: 0, offset: 8, len: 8 };
    assert!(catch_unwind(AssertUnwindSafe(|| changed.locate(at))).is_err(), "it is protected");
    protection::switch_off();
    assert_eq!(changed.locate(at), Some((1 << 12) + 4 + (3 << 10) + 8));
}
