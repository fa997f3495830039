//! The commit alone, without an engine around it: what `eft bench commit` measures.

use super::TcpConfig;
use super::durable::Tables;
use eft_arena::Refused;
use eft_channel::Segment;

/// Blocks in an arena, changed and committed as [`super::Tcp`] does it.
pub struct CommitProbe(Tables);

impl CommitProbe {
    pub fn open(arena: Segment, config: &TcpConfig) -> Result<CommitProbe, Refused> {
        let mut tables = Tables::open(arena, config)?;
        // All that there is room for: a stack makes them when they are needed.
        while !tables.grow().is_empty() {}
        Ok(CommitProbe(tables))
    }

    /// One turn that changes these blocks' hot parts.
    pub fn turn(&mut self, blocks: impl Iterator<Item = u32>) {
        for i in blocks {
            let block = &mut self.0.blocks[i];
            block.snd_nxt = block.snd_nxt.wrapping_add(1);
        }
        self.0.commit();
    }
}

#[cfg(test)]
mod tests;
