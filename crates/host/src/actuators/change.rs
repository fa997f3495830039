//! Applies a scheduler's changes of CPUs, through the journal.

use std::collections::BTreeMap;

use eft_cores::duty::Phase;
use eft_cores::park::Delays;
use eft_cores::speed::Speed;
use eft_cores::wanted::CpuChange;
use eft_machine::{CpuId, CpuSet, Share};

use super::parking::ParkOptions;
use super::scope::Scope;
use super::session::{Host, Session, state_dir};
use crate::error::{Error, error};
use crate::sensors::Tree;

/// Changes speeds and parking on this host.
pub struct Actuator {
    host: Host,
}

impl Actuator {
    pub fn new(managed: &CpuSet) -> Result<Actuator, Error> {
        let tree = Tree::live();
        let program =
            std::env::current_exe().map_err(|e| error!(System, "cannot find eft's own program file: {e}"))?;
        let dir = state_dir(&tree);
        std::fs::create_dir_all(&dir).map_err(|e| error!(System, "{}: {e}", dir.display()))?;
        Ok(Actuator { host: Host { tree, dir, managed: managed.clone(), program } })
    }

    /// Unparks, speeds up, slows down and parks, in this order; stops at the first failure.
    pub fn change(&self, change: &CpuChange) -> Result<(), Error> {
        if change.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(&self.host)?;
        let parked = change.unpark.and(&session.held().parked());
        if !parked.is_empty() {
            session.unpark(&parked)?;
        }
        set_speeds(&mut session, &change.faster)?;
        set_speeds(&mut session, &change.slower)?;
        if change.park.is_empty() {
            return Ok(());
        }
        let options = ParkOptions {
            back_end: None,
            scope: Scope::All,
            spread: Vec::new(),
            managed: self.host.managed.clone(),
            force: false,
        };
        session.park(&change.park, &options, Delays::default(), false).map(drop)
    }
}

fn set_speeds(session: &mut Session, speeds: &BTreeMap<CpuId, Share>) -> Result<(), Error> {
    if speeds.is_empty() {
        return Ok(());
    }
    let wishes: Vec<(CpuId, Speed)> =
        speeds.iter().map(|(cpu, share)| (*cpu, Speed::Share(*share))).collect();
    session.set_speeds(&wishes, None, Phase::default(), None).map(drop)
}
