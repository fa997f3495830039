use super::*;
use crate::thesis::claims::claims;

#[test]
fn every_reason_is_of_some_claim() {
    for (name, why) in REASONS {
        assert!(claims().iter().any(|claim| reason(claim.id) == Some(why)), "{name}");
    }
}
