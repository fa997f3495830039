//! The targets under libFuzzer, which chooses bytes by the code that they reach. `EFT_FUZZ_TARGET` names the target;
//! `fuzz/coverage` builds and runs this.
#![no_main]

use eft_fuzz::{KINDS, Kind};
use std::sync::{Arc, LazyLock};

static CHOSEN: LazyLock<(&Kind, Arc<str>)> = LazyLock::new(|| {
    let name = std::env::var("EFT_FUZZ_TARGET").unwrap_or_default();
    let Some(kind) = Kind::named(&name) else {
        let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        eprintln!("EFT_FUZZ_TARGET must name a target: {}", names.join(" "));
        std::process::exit(2);
    };
    (kind, format!("EFT_FUZZ_TARGET={name} eft-fuzz-coverage FILE").into())
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (kind, again) = &*CHOSEN;
    kind.run_bytes(bytes, again);
});
