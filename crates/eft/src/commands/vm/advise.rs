//! `eft vm advise`: what a policy would do and gain, without touching anything.

use anyhow::{Result, bail};
use clap::Args;
use eft_host::actuators::holder::EndSignals;
use eft_host::clock;
use eft_host::guests::session::Session;
use eft_host::guests::session::view::View;
use eft_host::sensors::Tree;
use eft_machine::Share;
use eft_vcpu::options::Policy;
use serde_json::json;

use super::{Common, Deciding, settings};
use crate::commands::cpu;

#[derive(Args)]
pub struct AdviseArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    deciding: Deciding,
    /// How long to watch
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
}

/// Work of a class is its time by its speed: what compute-bound guests get done.
fn work(view: &View) -> f64 {
    let of =
        |dealt: &[f64]| dealt.iter().zip(&view.classes).map(|(time, class)| *time * class.speed).sum::<f64>();
    view.vcpus.iter().map(|vcpu| of(&vcpu.dealt)).sum()
}

pub fn run(arguments: &AdviseArguments) -> Result<()> {
    let length = super::seconds(arguments.seconds, "--seconds")?;
    let mut settings = settings(&arguments.common, &arguments.deciding)?;
    settings.watch_only = true;
    if length < settings.options.window {
        bail!("--seconds {}: less than a window shows nothing", arguments.seconds);
    }
    let chosen = settings.options.policy;
    let signals = EndSignals::block()?;
    let mut session = Session::open(&Tree::live(), settings)?;
    session.run(clock::now() + length, || signals.arrived());
    session.take_notes().iter().for_each(|line| eprintln!("eft: {line}"));
    let mut view_under = |policy| {
        session.set_policy(policy);
        session.view()
    };
    let fair = view_under(Policy::AmpFair(100));
    let advised = view_under(chosen);
    let gain = if work(&fair) > 0.0 { work(&advised) / work(&fair) - 1.0 } else { 0.0 };
    let slowdown = advised.vcpus.iter().map(|vcpu| vcpu.slowdown).fold(Share::NONE, Share::max);
    if arguments.common.json {
        let all = json!({ "policy": advised.policy, "gain_over_amp_fair": gain, "largest_slowdown": slowdown, "view": advised });
        return cpu::print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    if advised.vcpus.is_empty() {
        return cpu::print("no guests\n");
    }
    let mut rows = vec![
        ["GUEST", "VCPU", "UTIL", "SCORE", "AMP-FAIR", "ADVISED", "SLOWDOWN"].map(String::from).to_vec(),
    ];
    let cores = |dealt: &[f64]| format!("{:.2}", dealt.first().copied().unwrap_or(0.0));
    for (vcpu, fair) in advised.vcpus.iter().zip(&fair.vcpus) {
        rows.push(vec![
            vcpu.guest.clone(),
            vcpu.role.clone(),
            format!("{:.0}%", vcpu.utilisation.percent()),
            format!("{:.2}", vcpu.score),
            cores(&fair.dealt),
            cores(&vcpu.dealt),
            format!("{:.0}%", vcpu.slowdown.percent()),
        ]);
    }
    cpu::print(&cpu::columns(&rows))?;
    cpu::print(&format!(
        "fast cores each would get, in cores; {} would get {:+.1}% more done than amp-fair, the largest slowdown against it {:.0}%\n",
        advised.policy,
        gain * 100.0,
        slowdown.percent()
    ))
}
