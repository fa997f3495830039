//! `eft vm top`, and how what is known is shown: table, JSON, Prometheus.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use eft_host::guests::session::STATE_DIR;
use eft_host::guests::session::view::{VcpuView, View};

use super::Metrics;
use crate::commands::cpu;
use crate::commands::top::metrics::{Metric, serve_pages};

#[derive(Args)]
pub struct TopArguments {
    /// Where `eft vm run` keeps its status
    #[arg(long, value_name = "DIR", default_value = STATE_DIR)]
    state_dir: PathBuf,
    #[arg(long)]
    json: bool,
    /// How often to show it; 0 is until ended
    #[arg(long, default_value_t = 1)]
    count: u64,
    #[command(flatten)]
    metrics: Metrics,
}

/// A status that is older than this was left behind.
const STALE: Duration = Duration::from_secs(10);

pub fn run(arguments: &TopArguments) -> Result<(), String> {
    let path = arguments.state_dir.join("status.json");
    if let Some(address) = arguments.metrics.metrics {
        return serve_pages(address, None, || Ok(page(&read(&path)?)));
    }
    let mut shown = 0;
    loop {
        let view = read(&path)?;
        if arguments.json {
            print_json(&view)?
        } else {
            print(&view)?
        }
        shown += 1;
        if shown == arguments.count {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn read(path: &Path) -> Result<View, String> {
    let is_fresh = std::fs::metadata(path)
        .and_then(|data| data.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age < STALE));
    if !is_fresh {
        return Err(format!("no 'eft vm run' publishes in {}", path.parent().unwrap_or(path).display()));
    }
    let text = std::fs::read(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{} is damaged ({error})", path.display()))
}

pub fn print_json(view: &View) -> Result<(), String> {
    cpu::print(&(serde_json::to_string_pretty(view).map_err(|error| error.to_string())? + "\n"))
}

pub fn print(view: &View) -> Result<(), String> {
    let mut text = format!("policy {}", view.policy);
    if view.even > 0.0 && view.even < 1.0 {
        text += &format!(" ({:.0}% of the fast time evenly)", view.even * 100.0);
    }
    for class in &view.classes {
        text += &format!(", {} CPU {} at {:.2}", class.name, class.cpus, class.speed);
    }
    cpu::print(&(text + "\n"))?;
    if view.vcpus.is_empty() {
        return cpu::print("no guests\n");
    }
    let head = [
        "GUEST", "VCPU", "TID", "ON", "IPC", "UTIL", "WAIT", "SCORE", "DEALT", "FAST", "MOVES", "CACHE",
        "SLOWDOWN",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(view.vcpus.iter().map(row));
    cpu::print(&cpu::columns(&rows))
}

fn row(vcpu: &VcpuView) -> Vec<String> {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let on = match (&vcpu.class, vcpu.is_left_alone, vcpu.is_active) {
        (_, true, _) => "left alone".into(),
        (_, _, false) => "asleep".into(),
        (Some(class), ..) => class.clone(),
        (None, ..) => "-".into(),
    };
    let plain: String = vcpu.role.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    vec![
        vcpu.guest.clone(),
        plain,
        vcpu.tid.to_string(),
        on,
        vcpu.ipc.map_or("-".into(), |ipc| format!("{ipc:.2}")),
        percent(vcpu.utilisation),
        percent(vcpu.waiting),
        format!("{:.2}", vcpu.score),
        percent(vcpu.dealt.first().copied().unwrap_or(0.0)),
        percent(vcpu.fast_share),
        vcpu.moves.to_string(),
        vcpu.cache_moves.to_string(),
        percent(vcpu.slowdown),
    ]
}

/// What a scrape is answered with.
pub fn page(view: &View) -> String {
    let mut out = String::new();
    let gauges: [(&'static str, &str, fn(&VcpuView) -> Option<f64>); 7] = [
        ("eft_vcpu_ipc", "Instructions a cycle, as the score uses it.", |v| v.ipc),
        ("eft_vcpu_utilisation_ratio", "Part of the last window in which it ran.", |v| Some(v.utilisation)),
        ("eft_vcpu_waiting_ratio", "Part of the last window in which it waited for a core.", |v| {
            Some(v.waiting)
        }),
        ("eft_vcpu_score", "Fast core efficiency.", |v| Some(v.score)),
        ("eft_vcpu_fast_ratio", "Part of its run time on the fastest cores.", |v| Some(v.fast_share)),
        ("eft_vcpu_fast_dealt_cores", "Fast core time dealt to it.", |v| v.dealt.first().copied()),
        ("eft_vcpu_slowdown_ratio", "Less done than under amp-fair, by prediction.", |v| Some(v.slowdown)),
    ];
    for (name, help, of) in gauges {
        let mut metric = Metric::new(&mut out, name, "gauge", help);
        for (vcpu, value) in view.vcpus.iter().filter_map(|vcpu| Some((vcpu, of(vcpu)?))) {
            metric
                .put(&[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &vcpu.tid.to_string())], value);
        }
    }
    let counters: [(&'static str, &str, fn(&VcpuView) -> f64); 2] = [
        ("eft_vcpu_moves_total", "Moves to another group of cores.", |v| v.moves as f64),
        ("eft_vcpu_cache_moves_total", "Moves that left a last-level cache.", |v| v.cache_moves as f64),
    ];
    for (name, help, of) in counters {
        let mut metric = Metric::new(&mut out, name, "counter", help);
        for vcpu in &view.vcpus {
            metric.put(
                &[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &vcpu.tid.to_string())],
                of(vcpu),
            );
        }
    }
    let mut time = Metric::new(&mut out, "eft_vcpu_seconds_total", "counter", "Run time by core class.");
    for vcpu in &view.vcpus {
        for (class, seconds) in view.classes.iter().zip(&vcpu.ran_s) {
            let tid = vcpu.tid.to_string();
            time.put(
                &[("guest", &vcpu.guest), ("vcpu", &vcpu.role), ("tid", &tid), ("class", &class.name)],
                *seconds,
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_guests_do_no_harm_to_a_page() {
        let vcpu = VcpuView {
            guest: "a\"b\\\nc".into(),
            role: "CPU 0/KVM".into(),
            ran_s: vec![1.5],
            ..VcpuView::default()
        };
        let classes =
            vec![eft_host::guests::session::view::ClassView { name: "fast".into(), ..Default::default() }];
        let page = page(&View { vcpus: vec![vcpu], classes, ..View::default() });
        assert!(
            page.lines().all(|line| line.starts_with("# ") || line.contains("guest=\"a\\\"b\\\\\\nc\"")),
            "{page}"
        );
        assert!(page.contains("class=\"fast\"} 1.5"));
    }
}
