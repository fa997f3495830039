//! What reports do with draws of the assumed parameters: make them side by side, and see whether an ablation breaks an effect.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, anyhow, bail};
use eft_sim::judge::Figures;

/// So many of something, each from its number; the same for any number of threads.
pub fn draws<T: Send>(count: u64, threads: u8, one: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, done) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let draw = next.fetch_add(1, Ordering::Relaxed);
            if draw >= count {
                return Ok(());
            }
            let made = one(draw)?;
            done.lock().map_err(|_| anyhow!("a thread of the draws failed"))?.push((draw, made));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|t| t.join().map_err(|_| anyhow!("a thread of the draws failed"))?)
    })?;
    let mut all = done.into_inner().map_err(|_| anyhow!("a thread of the draws failed"))?;
    all.sort_by_key(|(draw, _)| *draw);
    Ok(all.into_iter().map(|(_, made)| made).collect())
}

/// The same made twice, side by side; it fails unless both are equal.
pub fn twice<T: Send + PartialEq>(threads: u8, one: impl Fn() -> Result<T> + Sync) -> Result<T> {
    let mut both = draws(2, threads, |_| one())?;
    match (both.pop(), both.pop()) {
        (Some(one), Some(other)) if one == other => Ok(one),
        _ => bail!("two runs with one seed differ; the simulator is broken"),
    }
}

pub struct Broken {
    pub text: String,
    pub breaks: bool,
}

/// The least that counts as an effect, over 1.
const EFFECT: f64 = 0.01;

/// Without its supposed cause an effect should vanish wherever it exists: less than half of it remains.
/// `name`: of the figures `NAME/with` and `NAME/without`.
pub fn ablation(name: &str, what: &str, nominal: &Figures, draws: &[Figures]) -> Broken {
    let pair = |figures: &Figures| {
        let get = |suffix: &str| figures.get(&format!("{name}/{suffix}")).copied().unwrap_or(f64::NAN);
        (get("with"), get("without"))
    };
    let there: Vec<(f64, f64)> = draws.iter().map(pair).filter(|(with, _)| *with >= 1.0 + EFFECT).collect();
    let gone = there.iter().filter(|(with, without)| without - 1.0 < (with - 1.0) / 2.0).count();
    let (with, without) = pair(nominal);
    let text = format!(
        "{what}: {with:.3} becomes {without:.3}; of {} draws {} show the effect, of which {gone} lose it",
        draws.len(),
        there.len(),
    );
    Broken { text, breaks: gone * 10 >= there.len() * 9 }
}
