//! The `cores` process, live: it places an idle stack, dies and takes up where it was, changes its policy while it runs,
//! and refuses what cannot be with one line. As root, on a machine with two CPUs.

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Stack, cpus, eft, wait_for};

const TOPOLOGY: &str = include_str!("../../../topologies/default.toml");

fn adaptive(cpus: [u32; 2], more: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let [a, b] = cpus;
    let table = format!("[scheduling]\npolicy = \"adaptive\"\nmanaged = \"{a},{b}\"\n{more}");
    fs::write(file.path(), format!("{TOPOLOGY}\n{table}")).unwrap();
    file
}

/// The CPU that all components are on, if there is one.
fn one_cpu(stack: &Stack) -> Option<u64> {
    let places: Vec<Option<u64>> =
        stack.components().iter().map(|c| stack.component(c)["cpu"].as_u64()).collect();
    let first = places[0]?;
    places.iter().all(|p| *p == Some(first)).then_some(first)
}

fn line_of_status(pid: &Value, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_start_matches(':').trim().to_string()
}

#[test]
fn an_idle_stack_is_consolidated_and_a_reborn_scheduler_leaves_it_there() {
    let Some(cpus) = cpus() else { return };
    let topology = adaptive(cpus, "");
    let stack = Stack::start("sched", 21, Some(topology.path()));
    let cpu = wait_for("consolidation", || one_cpu(&stack));
    for c in stack.components() {
        let pid = stack.component(&c)["pid"].clone();
        assert_eq!(
            line_of_status(&pid, "Cpus_allowed_list"),
            cpu.to_string(),
            "{c} is not where it should be"
        );
    }
    let status = stack.json(&["sched"]);
    assert_eq!(status["scheduling"]["policy"], "adaptive");
    assert!(stack.json(&["sched", "why"])["decisions"][0]["plan"]["places"]["tcp"]["cpu"].is_u64());

    let before = stack.component("cores");
    assert!(stack.eft(&["kill", "cores"]).status.success());
    wait_for("the successor", || {
        let now = stack.component("cores");
        (now["generation"] != before["generation"] && now["state"] == "running").then_some(())
    });
    assert_eq!(one_cpu(&stack), Some(cpu), "the plan was lost with the scheduler");
    for c in stack.components() {
        assert_eq!(stack.component(&c)["generation"], 1, "{c} died, too");
    }

    // What is chosen while running outlives the process that was told.
    stack.json(&["sched", "policy", "adaptive", "--objective", "least-power", "--floor", "0.9"]);
    assert!(stack.eft(&["kill", "cores"]).status.success());
    let scheduling = wait_for("the next successor", || {
        let output = stack.eft(&["sched", "--json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(answer["scheduling"].clone())
    });
    assert_eq!((&scheduling["objective"], &scheduling["floor"]), (&json!("least-power"), &json!(0.9)));

    stack.json(&["sched", "policy", "fixed"]);
    wait_for("the topology's places", || stack.component("tcp")["cpu"].is_null().then_some(()));
}

#[test]
fn what_cannot_be_is_one_line_and_changes_nothing() {
    let Some([a, b]) = cpus() else { return };
    let stack = Stack::start("schedno", 22, None);
    assert!(stack.refusal(&["move", "tcp", "cpu=4999"]).contains("there is no CPU 4999"));
    assert!(stack.refusal(&["move", "nobody", "cpu=0"]).contains("there is no component `nobody`"));
    assert!(stack.refusal(&["move", "tcp", "any", "dedicated"]).contains("needs cpu=N"));
    assert!(stack.component("tcp")["cpu"].is_null());
    let no_cpus = stack.refusal(&["sched", "policy", "adaptive"]);
    assert!(no_cpus.contains("scheduling.managed names none"), "{no_cpus}");
    assert!(stack.refusal(&["sched", "policy", "profile"]).contains("scheduling"));
    assert_eq!(stack.json(&["sched"])["scheduling"]["policy"], "fixed");

    // Without managed CPUs it has no right to change any.
    let cores = stack.component("cores")["pid"].clone();
    assert_eq!(line_of_status(&cores, "Seccomp"), "2");
    let capabilities = u64::from_str_radix(&line_of_status(&cores, "CapEff"), 16).unwrap();
    assert_eq!(capabilities & !(1 << 38), 0, "more than CAP_PERFMON");

    // A dedicated CPU is one as long as nobody else is there.
    stack.place("tcp", a, true);
    stack.place("ip", b, true);
    assert_eq!(
        (&stack.component("tcp")["alone"], &stack.component("ip")["alone"]),
        (&json!(true), &json!(true))
    );
    stack.place("ip", a, false);
    assert_eq!(stack.component("tcp")["alone"], false);
    stack.place("ip", b, false);
    let (tcp, ip) = (stack.component("tcp"), stack.component("ip"));
    assert_eq!((&tcp["alone"], &tcp["dedicated"], &ip["alone"]), (&json!(true), &json!(true), &json!(false)));
}

#[test]
fn a_stack_without_a_scheduler_says_so() {
    let Some(_) = cpus() else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let cores = TOPOLOGY.find("[[component]]\nname = \"cores\"\n").unwrap();
    let without =
        TOPOLOGY.replacen(&TOPOLOGY[cores..cores + "[[component]]\nname = \"cores\"\n".len()], "", 1);
    fs::write(file.path(), without).unwrap();
    let stack = Stack::start("schednone", 23, Some(file.path()));
    for arguments in [&["sched"][..], &["sched", "why"], &["sched", "policy", "fixed"]] {
        assert!(stack.refusal(arguments).contains("no cores component"));
    }
    stack.place("tcp", 0, false);
}

#[test]
fn a_bad_scheduling_table_is_refused_before_anything_starts() {
    let Some(cpus) = cpus() else { return };
    for (more, says) in [
        ("floor = 7", "scheduling.floor is 7"),
        ("policy = 3", "policy"),
        ("unneeded = \"keep\"", "keep"),
        ("period_ms = 0", "period_ms is 0"),
    ] {
        // A key twice is an error of its own: the table's first lines give way.
        let file = adaptive(cpus, more);
        let text = fs::read_to_string(file.path()).unwrap();
        let text =
            if more.starts_with("policy") { text.replace("policy = \"adaptive\"\n", "") } else { text };
        fs::write(file.path(), text).unwrap();
        let output = std::process::Command::new(eft())
            .args(["up", "--name", "schedbad", "--device", "tap:eftbad", "--address", "10.93.24.2/24"])
            .arg("--topology")
            .arg(file.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(says), "{more}: {text}");
    }
}
