//! The processes that parking affects.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, error};
use crate::sensors::{Tree, tasks};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every process that no container or service manager has put into a cpuset of its own.
    #[default]
    All,
    /// These and their descendants. Other tasks on a parked CPU stay, and are reported.
    Processes(Vec<i32>),
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "all" {
            return Ok(Self::All);
        }
        let pid = |part: &str| part.trim().parse::<i32>().ok().filter(|pid| *pid > 0);
        let pids: Option<Vec<i32>> = text.split(',').map(pid).collect();
        pids.map(Self::Processes)
            .ok_or_else(|| error!(Invalid, "'{text}' is no scope (all, or process ids as 12,34)"))
    }
}

/// The user processes of a scope that exist now, as leaders.
pub fn processes(tree: &Tree, scope: &Scope) -> Result<Vec<tasks::Task>, Error> {
    let leaders: Vec<tasks::Task> =
        tasks::processes(tree).into_iter().filter_map(|pid| tasks::leader(tree, pid)).collect();
    let users = leaders.into_iter().filter(|task| !task.kernel);
    let Scope::Processes(roots) = scope else {
        return Ok(users.collect());
    };
    let users: Vec<tasks::Task> = users.collect();
    if let Some(missing) = roots.iter().find(|pid| !users.iter().any(|task| task.process == **pid)) {
        return Err(error!(Missing, "process {missing} does not exist, or is a kernel thread"));
    }
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    users.iter().for_each(|task| children.entry(task.parent).or_default().push(task.process));
    let (mut tree, mut open) = (BTreeSet::new(), roots.clone());
    while let Some(pid) = open.pop() {
        if tree.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    Ok(users.into_iter().filter(|task| tree.contains(&task.process)).collect())
}
