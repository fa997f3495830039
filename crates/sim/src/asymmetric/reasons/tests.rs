use super::*;
use crate::asymmetric::claims::claims;

#[test]
fn every_reason_is_of_some_claim() {
    for (name, _) in REASONS {
        assert!(claims().iter().any(|claim| claim.id.starts_with(name)), "{name}");
    }
}
