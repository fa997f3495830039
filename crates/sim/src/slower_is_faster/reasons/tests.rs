use super::*;
use crate::slower_is_faster::claims::claims;

#[test]
fn every_reason_is_of_some_claim() {
    for (name, _) in REASONS {
        assert!(claims().iter().any(|claim| reason(claim.id) == reason(name)), "{name}");
    }
}
