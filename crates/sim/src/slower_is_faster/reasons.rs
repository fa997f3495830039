//! Why the model does not bear a claim out, as far as that is understood.

/// The beginning of claims' names, and the reason.
const REASONS: [(&str, &str); 0] = [];

pub fn reason(claim: &str) -> Option<&'static str> {
    REASONS.iter().find(|(name, _)| claim.starts_with(name)).map(|(_, reason)| *reason)
}
