//! The `cores` process, live: it places an idle stack, dies and takes up where it was, changes its policy while it runs,
//! and refuses what cannot be with one line. As root, on a machine with two CPUs.

mod support;

use std::fs;

use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Running, Stack, build_shim, cpus, eft, wait_for};

/// Tests run beside each other, but for the one that takes a CPU away.
static CPUS: RwLock<()> = RwLock::new(());

fn all_cpus() -> RwLockReadGuard<'static, ()> {
    CPUS.read().unwrap_or_else(PoisonError::into_inner)
}

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
    let _all = all_cpus();
    let Some(cpus) = cpus() else { return };
    let topology = adaptive(cpus, "");
    let stack = Stack::start("sched", 21, Some(topology.path()));
    let cpu = wait_for("consolidation", || one_cpu(&stack));
    for c in stack.components() {
        let pid = stack.component(&c)["pid"].clone();
        // A place is shown when it is given; the component goes there when it is told.
        wait_for(&format!("{c} where it should be"), || {
            (line_of_status(&pid, "Cpus_allowed_list") == cpu.to_string()).then_some(())
        });
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
    let _all = all_cpus();
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

    // A dedicated CPU stays dedicated until another component comes.
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
    let _all = all_cpus();
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
    let _all = all_cpus();
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

/// A bulk transfer from the stack to its Linux side.
fn bulk(stack: &Stack, net: u8, seconds: &str) -> [Running; 2] {
    build_shim();
    let at = format!("10.93.{net}.1:7400");
    let sink =
        Command::new(eft()).args(["bench", "peer", "sink", &at]).stdout(Stdio::null()).spawn().unwrap();
    let source = Command::new(eft())
        .args(["run", "--name", &stack.name, "--", eft(), "bench", "peer", "source", &at, seconds])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    [Running(sink), Running(source)]
}

fn sent_bytes(stack: &Stack) -> u64 {
    stack.json(&["stat"])["tcp"]["sent_bytes"].as_u64().unwrap()
}

fn flows(stack: &Stack) {
    let before = sent_bytes(stack);
    wait_for("bytes", || (sent_bytes(stack) > before + (1 << 20)).then_some(()));
}

fn places(stack: &Stack) -> Vec<Value> {
    stack.components().iter().map(|c| stack.component(c)["cpu"].clone()).collect()
}

#[test]
fn the_stack_runs_on_under_load_when_the_scheduler_dies_and_its_successor_goes_on() {
    let _all = all_cpus();
    let Some(cpus) = cpus() else { return };
    let topology = adaptive(cpus, "");
    let stack = Stack::start("schedload", 25, Some(topology.path()));
    let _load = bulk(&stack, 25, "120");
    flows(&stack);
    let before = stack.component("cores")["generation"].clone();
    assert!(stack.eft(&["kill", "cores"]).status.success());
    flows(&stack);
    wait_for("the successor", || {
        let now = stack.component("cores");
        (now["generation"] != before && now["state"] == "running").then_some(())
    });
    // It has nothing to begin with: the plan in force is its plan.
    let decisions = stack.json(&["sched", "why"])["decisions"].clone();
    let begun = decisions.as_array().unwrap().iter().any(|d| d["reason"] == "the plan that it begins with");
    assert!(!begun, "the successor began anew: {decisions}");
    flows(&stack);
    for c in stack.components() {
        assert_eq!(stack.component(&c)["generation"], 1, "{c} died, too");
    }
}

#[test]
fn a_bad_profile_file_is_one_line_and_the_last_plan_stays() {
    let _all = all_cpus();
    let Some(cpus) = cpus() else { return };
    let topology = adaptive(cpus, "");
    let stack = Stack::start("schedprof", 26, Some(topology.path()));
    wait_for("consolidation", || one_cpu(&stack));
    let plan = stack.json(&["sched"])["state"]["plan"].clone();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let foreign =
        "[machine]\nmodel = \"another\"\ncpus = \"0-63\"\nlittle = \"\"\nmedium = \"\"\nbig = \"\"\n";
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    foreign.bytes().for_each(|b| hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let foreign = format!("# eft profiles, version 2, digest {hash:016x}\n{foreign}");
    let edited = foreign.replace("another", "edited!");
    for (text, says) in [
        ("nonsense", "this is no profile file"),
        (edited.as_str(), "its digest does not match"),
        (foreign.as_str(), "is of another machine"),
    ] {
        fs::write(path, text).unwrap();
        let line = stack.refusal(&["sched", "policy", "profile", "--profiles", path]);
        assert!(line.contains(says) && line.contains(path), "{line}");
        let status = stack.json(&["sched"]);
        assert_eq!((&status["scheduling"]["policy"], &status["state"]["plan"]), (&json!("adaptive"), &plan));
        assert_eq!(fs::read_to_string(path).unwrap(), text, "the file was touched");
    }
}

#[test]
fn a_component_that_scribbles_over_its_account_changes_no_plan() {
    let _all = all_cpus();
    let Some(cpus) = cpus() else { return };
    let topology = adaptive(cpus, "");
    let stack = Stack::start("schedbusy", 27, Some(topology.path()));
    wait_for("consolidation", || one_cpu(&stack));
    let before = places(&stack);
    let pid = stack.component("tcp")["pid"].clone();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let own = |line: &&str| line.contains("rw-s") && line.contains("status");
    let line = maps.lines().find(own).unwrap_or_else(|| panic!("no status page in\n{maps}"));
    let begin = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let memory = fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/mem")).unwrap();
    // The busy time in both places for marks, see eft_channel::account: a century, and back to nothing. It is repeated,
    // because the first sample of a component has nothing to compare with.
    const BUSY: [u64; 2] = [1024 + 128 + 16, 1024 + 192 + 16];
    let mut scribbles = [3_153_600_000_000_000_000u64, 0].into_iter().cycle();
    wait_for("both complaints", || {
        let scribble = scribbles.next().unwrap().to_ne_bytes();
        BUSY.iter().for_each(|at| memory.write_all_at(&scribble, begin + at).unwrap());
        std::thread::sleep(Duration::from_millis(500));
        let decisions = stack.json(&["sched", "why"])["decisions"].to_string();
        let told = ["tcp: was busy or polling for", "tcp: its busy and polling time went back"];
        told.iter().all(|complaint| decisions.contains(complaint)).then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(places(&stack), before);
    assert_eq!(stack.component("tcp")["generation"], 1);
}

/// Comes back whatever happens.
struct Offline(u32);

impl Offline {
    fn new(cpu: u32) -> Option<Offline> {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        fs::write(&file, "0").ok().map(|()| Offline(cpu))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let file = format!("/sys/devices/system/cpu/cpu{}/online", self.0);
        if let Err(e) = fs::write(&file, "1") {
            eprintln!("CPU {} is left offline: {e}", self.0);
        }
    }
}

#[test]
fn a_plan_with_a_cpu_that_went_away_is_refused_and_the_last_one_stays() {
    let _alone = CPUS.write().unwrap_or_else(PoisonError::into_inner);
    let Some([a, b]) = cpus() else { return };
    // The topology wants tcp on the CPU that will be gone.
    let text = TOPOLOGY.replacen("name = \"tcp\"\n", &format!("name = \"tcp\"\ncpu = {b}\n"), 1);
    let file = tempfile::NamedTempFile::new().unwrap();
    let table = format!("[scheduling]\npolicy = \"adaptive\"\nmanaged = \"{a},{b}\"\n");
    fs::write(file.path(), format!("{text}\n{table}")).unwrap();
    let stack = Stack::start("schedoff", 28, Some(file.path()));
    wait_for("consolidation", || one_cpu(&stack));
    let Some(offline) = Offline::new(b) else {
        eprintln!("skipped: CPU {b} cannot be switched off");
        return;
    };
    // What it had there goes to what is left, and it says why.
    wait_for("the other CPU", || (one_cpu(&stack) == Some(u64::from(a))).then_some(()));
    let reasons = stack.json(&["sched", "why"])["decisions"].to_string();
    assert!(reasons.contains("begins anew: the CPUs are others"), "{reasons}");

    stack.json(&["sched", "policy", "fixed"]);
    wait_for("the refusal", || {
        let trouble = stack.json(&["sched"])["trouble"].clone();
        trouble.as_str().is_some_and(|t| t.contains(&format!("CPU {b} is offline"))).then_some(())
    });
    assert_eq!(one_cpu(&stack), Some(u64::from(a)), "the last plan did not stay");
    drop(offline);
}
