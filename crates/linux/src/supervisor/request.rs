//! Parses operators' requests; carrying them out is separate.
//!
//! Promise: any bytes give a request whose numbers are in range, or one line that says what is wrong.

use crate::Result;
use crate::error::error;
use eft_component::fault::Fault;
use eft_control::network::Change;
use eft_machine::CpuId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings that may change while a stack runs.
pub const SETTINGS: [&str; 10] = [
    "congestion",
    "ecn",
    "fastopen",
    "fastopen-key",
    "timestamps",
    "min-tso-segs",
    "slow-start-after-idle",
    "pacing",
    "mtu-probing",
    "tail-probes",
];

/// A request of `eft ps`, `stat`, `kill` and the like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    Ps {
        /// With what each process may do, as far as the supervisor may know it.
        #[serde(default)]
        security: bool,
    },
    Info,
    Stat,
    /// Read-only descriptors of the transports' arenas.
    Arenas,
    /// The arena of a program domain, for `eft ss`.
    Domain {
        domain: u16,
    },
    /// The placement of each component.
    Members,
    /// A component's status page, read-only.
    Page {
        component: String,
    },
    Kill {
        component: String,
    },
    /// A component is about to be broken: by the client itself, or by the component's own loop if there is a `fault`.
    Inject {
        component: String,
        #[serde(default)]
        fault: Option<Fault>,
        /// Messages that pass before the fault.
        #[serde(default)]
        skip: u32,
        /// Whether its death is to count as the component's own failure.
        #[serde(default)]
        counts: bool,
    },
    /// Updates a component to the program file whose descriptor comes along.
    Update {
        component: String,
    },
    Place {
        component: String,
        #[serde(default)]
        cpu: Option<CpuId>,
        #[serde(default)]
        dedicated: bool,
    },
    /// Puts a component into the process of this name, or into one of its own.
    Regroup {
        component: String,
        #[serde(default)]
        process: Option<String>,
    },
    /// A request for `cores`, which parses the rest.
    Sched {
        #[serde(default)]
        what: Scheduling,
        #[serde(flatten)]
        rest: serde_json::Map<String, serde_json::Value>,
    },
    /// Addresses and routes: changes them if there is a change, and shows what holds then.
    Network {
        #[serde(default)]
        change: Option<Change>,
    },
    /// The neighbours that ip knows, found and configured.
    Neighbours,
    /// Other values of settings, by their keys in the store, which are among [`SETTINGS`].
    Set {
        #[serde(default)]
        values: BTreeMap<String, String>,
        /// tcp forgets what it has learned about servers.
        #[serde(default, rename = "forget-servers")]
        forget_servers: bool,
    },
    PfLoad {
        rules: String,
    },
    PfShow {
        #[serde(default)]
        what: Shown,
    },
    Capture {
        /// The NIC's number.
        #[serde(default)]
        interface: u8,
    },
    Stop,
    /// From an `eft up` of the same stack, whose configuration `likeness` describes.
    HandOver {
        likeness: String,
    },
}

/// What operators may ask `cores`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    #[default]
    Status,
    Why,
    Sample,
    Policy,
}

impl Scheduling {
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Status => "status",
            Scheduling::Why => "why",
            Scheduling::Sample => "sample",
            Scheduling::Policy => "policy",
        }
    }
}

/// What the filter can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    #[default]
    Rules,
    States,
}

impl Shown {
    pub fn name(self) -> &'static str {
        match self {
            Shown::Rules => "rules",
            Shown::States => "states",
        }
    }
}

/// Reads a request.
pub fn parse(bytes: &[u8]) -> Result<Request> {
    // The position in the JSON text does not help an operator who typed a command.
    serde_json::from_slice(bytes).map_err(|e| {
        let e = e.to_string();
        let reason = e.split(" at line ").next().unwrap_or(&e).replace(char::is_control, " ");
        error!(Invalid, "the request cannot be read: {reason}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_the_commands_write_them() {
        let place = Request::Place { component: "tcp".into(), cpu: Some(CpuId(1)), dedicated: true };
        for (text, expected) in [
            (r#"{"op":"ps"}"#, Request::Ps { security: false }),
            (r#"{"op":"ps","security":true}"#, Request::Ps { security: true }),
            (r#"{"op":"kill","component":"ip"}"#, Request::Kill { component: "ip".into() }),
            (r#"{"op":"place","component":"tcp","cpu":1,"dedicated":true}"#, place),
            (
                r#"{"op":"regroup","component":"ip","process":"edge"}"#,
                Request::Regroup { component: "ip".into(), process: Some("edge".into()) },
            ),
            (
                r#"{"op":"regroup","component":"ip","process":null}"#,
                Request::Regroup { component: "ip".into(), process: None },
            ),
            (r#"{"op":"pf-show"}"#, Request::PfShow { what: Shown::Rules }),
            (r#"{"op":"pf-show","what":"states"}"#, Request::PfShow { what: Shown::States }),
            (
                r#"{"op":"inject","component":"tcp","fault":"DoubleFree"}"#,
                Request::Inject {
                    component: "tcp".into(),
                    fault: Some(Fault::DoubleFree),
                    skip: 0,
                    counts: false,
                },
            ),
            (
                r#"{"op":"inject","component":"tcp","counts":true}"#,
                Request::Inject { component: "tcp".into(), fault: None, skip: 0, counts: true },
            ),
            (r#"{"op":"capture","interface":3,"more":[]}"#, Request::Capture { interface: 3 }),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(expected), "{text}");
        }
        let nowhere = parse(br#"{"op":"place","component":"tcp","cpu":null}"#);
        assert_eq!(nowhere, Ok(Request::Place { component: "tcp".into(), cpu: None, dedicated: false }));
    }

    #[test]
    fn what_cannot_be_is_one_line() {
        for (text, reason) in [
            ("", "EOF"),
            ("nonsense", "expected"),
            ("{}", "missing field `op`"),
            (r#"{"op":"dance\nsing"}"#, "unknown variant `dance sing`"),
            (r#"{"op":"kill"}"#, "missing field `component`"),
            // These numbers were once cut to 8 and 32 bits, and then meant another interface and CPU.
            (r#"{"op":"capture","interface":256}"#, "invalid value"),
            (r#"{"op":"place","component":"tcp","cpu":4294967296}"#, "invalid value"),
            (r#"{"op":"pf-show","what":"secrets"}"#, "unknown variant"),
            (r#"{"op":"inject","component":"tcp","fault":"Explode"}"#, "unknown variant"),
        ] {
            let e = parse(text.as_bytes()).expect_err(text).to_string();
            assert!(e.contains(reason) && !e.contains('\n'), "{text}: {e}");
        }
    }
}
