//! What a process does that is not protected: a program of its own, since that holds for a whole process.

use eft_base::protection;
use eft_messages::transport::SendDescriptor;
use zerocopy::FromZeros;

#[test]
fn nothing_is_sealed() {
    let descriptor = SendDescriptor { header_len: 20, checksum_offset: 16, ..SendDescriptor::new_zeroed() };
    assert_ne!(descriptor.sealed().seal, 0, "it is protected");
    protection::switch_off();
    assert_eq!(descriptor.sealed().seal, 0);
}
