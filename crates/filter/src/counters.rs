//! What the filter counts.

eft_component::counters! {
    Asked => "asked",
    Passed => "passed",
    Blocked => "blocked",
    StateHits => "state_hits",
    /// Answers that grant a connection.
    Granted => "granted",
    StatesCreated => "states_created",
    StatesExpired => "states_expired",
    StatesEvicted => "states_evicted",
    /// Blocked because every state belongs to a living connection.
    StatesFull => "states_full",
    /// States found in the arena at start.
    StatesRecovered => "states_recovered",
    /// States in the arena that were damaged, and are forgotten.
    StatesDamaged => "states_damaged",
    /// States in the arena of which a bit had changed, and was changed back.
    StatesMended => "states_mended",
    RulesLoaded => "rules_loaded",
    RulesRefused => "rules_refused",
    /// Questions that waited for the first rules.
    Held => "held",
    States => "states",
    Rules => "rules",
    /// Questions, rules and ends of states that have killed two predecessors, and did not run.
    DropFatal => "drop_fatal",
    /// Predecessors that failed while an input ran.
    Blamed => "blamed_inputs",
}
