//! Replays the corpus: every input that once reached new code or broke something must pass.

use eft_fuzz::{KINDS, Kind};
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut all: Vec<PathBuf> = all.map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    all
}

#[test]
fn every_input_of_the_corpus_passes() {
    eft_fuzz::watch::start();
    let mut failed = Vec::new();
    for kind in KINDS {
        let files = entries(&corpus().join(kind.name));
        assert!(!files.is_empty(), "{} has no corpus", kind.name);
        for file in files {
            let bytes = std::fs::read(&file).expect("it can be read");
            let again = format!("eft-fuzz {} --input {}", kind.name, file.display());
            if std::panic::catch_unwind(|| kind.run_bytes(&bytes, &again.as_str().into())).is_err() {
                failed.push(again);
            }
        }
    }
    assert!(failed.is_empty(), "failed, again by:\n{}", failed.join("\n"));
}

#[test]
fn every_corpus_belongs_to_a_target() {
    for dir in entries(&corpus()) {
        let name = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        assert!(Kind::named(name).is_some(), "{} is for no target", dir.display());
    }
}
