//! Makes a plan so: places through the supervisor, speeds and parking through the actuators, which journal everything
//! first.
//!
//! Order: first what makes room (unpark, speed up), then the moves, and only when all have arrived what takes room away
//! (slow down, park), so that no component ever stands on a CPU that is parked or not fast enough yet.

use std::collections::{BTreeMap, BTreeSet};

use eft_cores::duty::Phase;
use eft_cores::park::Delays;
use eft_cores::speed::Speed;
use eft_machine::CpuSet;

use super::decide::Wanted;
use eft_host::actuators::parking::ParkOptions;
use eft_host::actuators::scope::Scope;
use eft_host::actuators::session::{Host, Session, state_dir};
use eft_host::sensors::Tree;

/// Speeds closer than this are one.
const SPEED_EQUAL: f64 = 0.005;

/// Changes speeds and parking on this host.
pub struct Actuator {
    host: Host,
}

impl Actuator {
    pub fn new(managed: &CpuSet) -> Result<Actuator, String> {
        let tree = Tree::live();
        let program =
            std::env::current_exe().map_err(|e| format!("cannot find eft's own program file: {e}"))?;
        let dir = state_dir(&tree);
        std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(Actuator { host: Host { tree, dir, managed: managed.clone(), program } })
    }

    /// What must come before the moves.
    pub fn make_room(&self, old: &Wanted, new: &Wanted) -> Result<(), String> {
        let unpark: CpuSet = old.parked.difference(&new.parked).copied().collect();
        let faster = speeds(old, new, |before, after| after > before);
        if unpark.is_empty() && faster.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(&self.host)?;
        let parked = unpark.and(&session.held().parked());
        if !parked.is_empty() {
            session.unpark(&parked)?;
        }
        self.set_speeds(&mut session, &faster)
    }

    /// What must come after the moves.
    pub fn take_away(&self, old: &Wanted, new: &Wanted) -> Result<(), String> {
        let park: CpuSet = new.parked.difference(&old.parked).copied().collect();
        let slower = speeds(old, new, |before, after| after < before);
        if park.is_empty() && slower.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(&self.host)?;
        self.set_speeds(&mut session, &slower)?;
        if park.is_empty() {
            return Ok(());
        }
        let options = ParkOptions {
            back_end: None,
            scope: Scope::All,
            spread: Vec::new(),
            managed: self.host.managed.clone(),
            force: false,
        };
        session.park(&park, &options, Delays::default(), false).map(drop)
    }

    fn set_speeds(&self, session: &mut Session, speeds: &BTreeMap<u32, f64>) -> Result<(), String> {
        if speeds.is_empty() {
            return Ok(());
        }
        let wishes: Vec<(u32, Speed)> =
            speeds.iter().map(|(cpu, share)| (*cpu, Speed::Share(*share))).collect();
        session.set_speeds(&wishes, None, Phase::default(), None).map(drop)
    }

    /// Everything as it was before: at the end, and when a plan could not be carried out.
    pub fn undo(&self, applied: &Wanted) -> Result<(), String> {
        let nothing = Wanted { places: applied.places.clone(), ..Wanted::default() };
        self.make_room(applied, &nothing)
    }
}

/// What is in force when room was made for `new` and nothing taken away yet.
pub fn with_room(old: &Wanted, new: Wanted) -> Wanted {
    let of = |plan: &Wanted, cpu: u32| plan.speeds.get(&cpu).copied().unwrap_or(1.0);
    let cpus: BTreeSet<u32> = old.speeds.keys().chain(new.speeds.keys()).copied().collect();
    let speeds = cpus.into_iter().map(|cpu| (cpu, of(old, cpu).max(of(&new, cpu)))).collect();
    let parked = old.parked.intersection(&new.parked).copied().collect();
    Wanted { speeds, parked, places: new.places }
}

/// CPUs whose speed changes in that direction, and to what.
fn speeds(old: &Wanted, new: &Wanted, wanted: impl Fn(f64, f64) -> bool) -> BTreeMap<u32, f64> {
    let of = |plan: &Wanted, cpu: u32| plan.speeds.get(&cpu).copied().unwrap_or(1.0);
    let cpus: BTreeSet<u32> = old.speeds.keys().chain(new.speeds.keys()).copied().collect();
    cpus.into_iter()
        .map(|cpu| (cpu, of(old, cpu), of(new, cpu)))
        .filter(|(_, before, after)| (before - after).abs() > SPEED_EQUAL && wanted(*before, *after))
        .map(|(cpu, _, after)| (cpu, after))
        .collect()
}

/// Whether a plan needs the actuators at all.
pub fn touches_cpus(wanted: &Wanted) -> bool {
    !wanted.speeds.is_empty() || !wanted.parked.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_before_and_taken_after() {
        let plan =
            |speeds: &[(u32, f64)]| Wanted { speeds: speeds.iter().copied().collect(), ..Wanted::default() };
        let (old, new) = (plan(&[(0, 0.5), (1, 1.0)]), plan(&[(1, 0.25), (2, 0.999)]));
        assert_eq!(speeds(&old, &new, |b, a| a > b), BTreeMap::from([(0, 1.0)]));
        assert_eq!(speeds(&old, &new, |b, a| a < b), BTreeMap::from([(1, 0.25)]));
        // Overtaken half way, the next plan starts from what was really done.
        let between = with_room(&old, new.clone());
        assert_eq!(speeds(&between, &new, |b, a| a > b), BTreeMap::new());
        assert_eq!(speeds(&between, &new, |b, a| a < b), BTreeMap::from([(1, 0.25)]));
    }
}
