//! Makes a program that shows a difference short: steps are left out as long as it stays the same difference.

use crate::program::Program;

/// The shortest that was found. `shows`: whether a program still shows the difference.
pub fn shrink(program: &Program, mut shows: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut size = best.steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut shorter = best.clone();
            shorter.steps.drain(at..(at + size).min(best.steps.len()));
            if shows(&shorter) {
                best = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    best
}

#[cfg(test)]
mod tests;
