//! Expedited RCU grace periods (`/sys/kernel/rcu_expedited`), held for one operation only.
//!
//! They interrupt every CPU, also those that poll, so they are never left on. Promises: the holds in the journal are
//! the reference count; the next eft lowers a hold whose owner was killed. `rcu_normal` outranks them in the kernel:
//! if an operator has set it, eft holds nothing.

use crate::error::{Error, error};
use crate::journal::{Change, Journal};
use crate::sensors::Tree;

const EXPEDITED: &str = "sys/kernel/rcu_expedited";
const NORMAL: &str = "sys/kernel/rcu_normal";

/// Runs an operation under expedited grace periods, if they are available. The second value says why they are not.
pub fn while_expedited<T>(
    journal: &mut Journal,
    operation: impl FnOnce(&mut Journal) -> Result<T, Error>,
) -> Result<(T, Option<String>), Error> {
    let (hold, why_not) = match raise(journal) {
        Ok(hold) => (hold, None),
        Err(reason) => (None, Some(reason.to_string())),
    };
    let outcome = operation(journal);
    if let Some(id) = hold {
        release(journal, id)?;
    }
    outcome.map(|value| (value, why_not))
}

/// `Ok(None)`: another program has raised it, so there is nothing to hold.
fn raise(journal: &mut Journal) -> Result<Option<u64>, Error> {
    let flag = |path: &str| journal.tree().number::<u32>(path);
    if flag(NORMAL).is_some_and(|flag| flag != 0) {
        return Err(error!(Refused, "rcu_normal is set, so grace periods stay normal"));
    }
    let held = holds(journal);
    match flag(EXPEDITED) {
        None => return Err(error!(Missing, "this kernel has no rcu_expedited")),
        Some(flag) if flag != 0 && held == 0 => return Ok(None),
        Some(_) => {}
    }
    let id = journal.announce(Change::Expedite)?;
    match journal.tree().write(EXPEDITED, "1") {
        Ok(()) => Ok(Some(id)),
        Err(reason) => {
            journal.done(id)?;
            Err(reason)
        }
    }
}

fn release(journal: &mut Journal, id: u64) -> Result<(), Error> {
    if holds(journal) == 1 {
        lower(journal.tree())?;
    }
    journal.done(id)
}

fn holds(journal: &Journal) -> usize {
    journal.entries().iter().filter(|entry| entry.change == Change::Expedite).count()
}

pub fn lower(tree: &Tree) -> Result<(), Error> {
    tree.write(EXPEDITED, "0")
}
