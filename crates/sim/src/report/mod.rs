//! Reports on the papers' experiments, and on TCP over bad wires.

pub mod asymmetric;
pub mod bolt;
pub mod columns;
pub mod drawn;
pub mod figures;
mod file;
pub mod hosts;
pub mod hunt;
pub mod impaired;
pub mod judged;
mod machine;
pub mod multiserver;
pub mod policies;
pub mod scaling;
pub mod slower_figures;
pub mod slower_is_faster;
pub mod sweep;
pub mod thesis;
pub mod tiers;
pub mod trace;

fn print(text: &str) -> anyhow::Result<()> {
    Ok(eft_text::print(text)?)
}
