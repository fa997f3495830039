//! `eft set`: changes settings of a running stack's TCP that `eft up` made. They hold for connections from then on, and until
//! the stack ends.

use anyhow::{Result, bail};
use eft_linux::operator;
use eft_transport::tcp::{
    Algorithm, CookieKeys, Ecn, FastOpen, MinSegments, MtuProbing, Pacing, SlowStartAfterIdle, TailProbes,
    Timestamps,
};
use serde_json::{Map, Value, json};

#[derive(clap::Args, Debug)]
pub struct SetArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// As of `eft up`
    #[arg(long)]
    ecn: Option<Ecn>,
    /// As of `eft up`
    #[arg(long)]
    congestion: Option<Algorithm>,
    /// As of `eft up`
    #[arg(long)]
    fastopen: Option<FastOpen>,
    /// As of `eft up`
    #[arg(long)]
    fastopen_key: Option<CookieKeys>,
    /// As of `eft up`
    #[arg(long)]
    timestamps: Option<Timestamps>,
    /// As of `eft up`
    #[arg(long)]
    min_tso_segs: Option<MinSegments>,
    /// As of `eft up`
    #[arg(long)]
    slow_start_after_idle: Option<SlowStartAfterIdle>,
    /// As of `eft up`
    #[arg(long)]
    pacing: Option<Pacing>,
    /// As of `eft up`
    #[arg(long)]
    mtu_probing: Option<MtuProbing>,
    /// As of `eft up`
    #[arg(long)]
    tail_probes: Option<TailProbes>,
    /// Forget what TCP has learned about servers: their Fast Open cookies
    #[arg(long)]
    forget_servers: bool,
}

pub fn run(arguments: &SetArguments) -> Result<()> {
    let settings = Settings {
        ecn: arguments.ecn,
        congestion: arguments.congestion,
        fastopen: arguments.fastopen,
        fastopen_key: arguments.fastopen_key,
        timestamps: arguments.timestamps,
        min_tso_segs: arguments.min_tso_segs,
        slow_start_after_idle: arguments.slow_start_after_idle,
        pacing: arguments.pacing,
        mtu_probing: arguments.mtu_probing,
        tail_probes: arguments.tail_probes,
        forget_servers: arguments.forget_servers,
    };
    settings.make(&arguments.stack.name)
}

/// What is to change.
#[derive(Debug, Default, PartialEq)]
pub struct Settings {
    pub ecn: Option<Ecn>,
    pub congestion: Option<Algorithm>,
    pub fastopen: Option<FastOpen>,
    pub fastopen_key: Option<CookieKeys>,
    pub timestamps: Option<Timestamps>,
    pub min_tso_segs: Option<MinSegments>,
    pub slow_start_after_idle: Option<SlowStartAfterIdle>,
    pub pacing: Option<Pacing>,
    pub mtu_probing: Option<MtuProbing>,
    pub tail_probes: Option<TailProbes>,
    pub forget_servers: bool,
}

impl Settings {
    pub fn make(&self, stack: &str) -> Result<()> {
        let values = [
            ("ecn", self.ecn.map(|v| v.name().to_string())),
            ("congestion", self.congestion.map(|v| v.name().to_string())),
            ("fastopen", self.fastopen.map(|v| v.to_string())),
            ("fastopen-key", self.fastopen_key.map(|v| v.to_string())),
            ("timestamps", self.timestamps.map(|v| v.name().to_string())),
            ("min-tso-segs", self.min_tso_segs.map(|v| v.to_string())),
            ("slow-start-after-idle", self.slow_start_after_idle.map(|v| v.name().to_string())),
            ("pacing", self.pacing.map(|v| v.name().to_string())),
            ("mtu-probing", self.mtu_probing.map(|v| v.name().to_string())),
            ("tail-probes", self.tail_probes.map(|v| v.name().to_string())),
        ];
        let given =
            values.into_iter().filter_map(|(key, value)| Some((key.to_string(), Value::from(value?))));
        let given: Map<String, Value> = given.collect();
        if given.is_empty() && !self.forget_servers {
            bail!("there is nothing to set: give an option, see `eft set --help`");
        }
        let request = json!({ "op": "set", "values": given, "forget-servers": self.forget_servers });
        operator::ask(stack, &request)?;
        Ok(())
    }
}
