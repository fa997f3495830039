//! What is kept of a server's end, for its operator.

use super::member::Member;
use std::path::{Path, PathBuf};

/// Crash reports that are kept of one component.
const REPORTS_MAX: u32 = 64;
/// Recordings that are kept of one component's failures.
const RECORDINGS_MAX: u32 = 4;

/// What is known of a server's end.
pub struct Report {
    name: String,
    generation: u32,
    text: String,
}

impl Report {
    /// Writes it down, and removes one of long ago.
    pub fn keep(&self, dir: &Path) {
        let _ = std::fs::create_dir_all(dir);
        let file = |generation: u32| dir.join(format!("{}-{generation}.txt", self.name));
        let _ = std::fs::write(file(self.generation), &self.text);
        let _ = std::fs::remove_file(file(self.generation.wrapping_sub(REPORTS_MAX)));
    }
}

impl Member {
    /// The file in which a generation is recorded.
    pub fn recording(&self, dir: &Path, generation: u32) -> PathBuf {
        dir.join(format!("{}-{generation}.eftrec", self.name))
    }

    /// What is known of its end, before its successor writes to its page. `company`: who died with it.
    pub fn report(&mut self, how: &str, company: &[String]) -> Report {
        let counters: Vec<String> = (0..64).map(|i| self.status.get(i)).map(|v| v.to_string()).collect();
        let text = format!(
            "component: {}\n{}generation: {}\nended: {how}\nturns: {}\ncounters: {}\nlast words:\n{}\n",
            self.name,
            if company.is_empty() { String::new() } else { format!("with: {}\n", company.join(", ")) },
            self.generation,
            self.status.heartbeat(),
            counters.join(" "),
            std::mem::take(&mut self.last_words)
        );
        Report { name: self.name.clone(), generation: self.generation, text }
    }

    /// Removes an old recording from the folder of lives that ended in a failure.
    pub fn drop_old_recording(&self, dir: &Path) {
        let _ = std::fs::remove_file(self.recording(dir, self.generation.wrapping_sub(RECORDINGS_MAX)));
    }
}
