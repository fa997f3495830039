//! `eft cpu` from the outside: wrong input on a recorded machine and on this one, and live changes where this machine
//! allows them. Live tests run one after the other, and put everything back, also when they fail.

mod live;

use eft_machine::CpuId;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use live::{Live, Sleeper, eft, out, refusal, turn};

#[test]
fn wrong_input_gets_one_clear_line() {
    // The messages differ while a live test has the CPU offline.
    let _turn = turn();
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let cpu = |arguments: &[&str]| refusal(&[&["cpu", "--state-dir", state], arguments].concat());
    assert!(cpu(&["park", "1"]).contains("not managed"));
    assert!(cpu(&["--managed", "0-1", "park", "0"]).contains("base CPU"));
    assert!(cpu(&["--managed", "1", "park", "4000"]).contains("does not exist"));
    assert!(cpu(&["--managed", "1", "unpark", "1"]).contains("not parked"));
    assert!(cpu(&["--managed", "1", "offline", "0"]).contains("base CPU"));
    assert!(cpu(&["--managed", "1", "speed", "1", "2"]).contains("share"));
    assert!(cpu(&["--managed", "1", "speed", "1", "0.01"]).contains("0.0625"));
    assert!(cpu(&["speed", "1", "1/2"]).contains("not managed"));
    assert!(cpu(&["emulate", "/nonexistent"]).contains("cannot be read"));
    assert!(cpu(&["acpi", "--tables", state]).contains("neither"));
    assert!(cpu(&["--config", "/nonexistent"]).contains("cannot be read"));
    assert!(cpu(&["--managed", "1", "park", "1", "--offline-after", "1e30"]).contains("--offline-after"));
    let nowhere = refusal(&["bench", "reconfigure", "--state-dir", state, "--managed", "4000"]);
    assert!(nowhere.contains("does not exist"), "{nowhere}");
    assert!(!eft(&["cpu", "park", "1-"]).status.success());
}

#[test]
fn every_cpu_is_listed_as_table_and_json() {
    let _turn = turn();
    let table = out(&eft(&["cpu", "--interval", "20"]));
    let json = out(&eft(&["cpu", "--json", "--interval", "300"]));
    let machine: serde_json::Value = serde_json::from_str(&json).unwrap();
    for cpu in machine["cpus"].as_array().unwrap() {
        let number = cpu["cpu"].to_string();
        assert!(table.lines().any(|line| line.split_whitespace().next() == Some(&number)), "{table}");
        assert!(cpu["load"].is_number() || cpu["online"] == false);
    }
    let power = out(&eft(&["cpu", "power", "--sensitivity", "--for", "50"]));
    assert!(power.contains("modelled") && power.contains("static share"));
}

#[test]
fn parking_moves_a_program_and_gives_the_cpu_back() {
    let Some(live) = Live::new() else { return };
    let sleeper = Sleeper::start("while :; do :; done");
    let parked = live.eft(&["park", "1", "--scope", &sleeper.pid(), "--observe", "20", "--json"]);
    let parked: serde_json::Value = serde_json::from_str(&out(&parked)).unwrap();
    assert_eq!(parked["parked"], "1");
    assert!(!sleeper.allowed().contains(CpuId(1)), "{}", sleeper.allowed());
    out(&live.eft(&["unpark", "1"]));
    assert!(sleeper.allowed().contains(CpuId(1)));
}

#[test]
fn a_parked_cpu_goes_offline_in_the_background_and_returns() {
    let Some(live) = Live::new() else { return };
    let sleeper = Sleeper::start("sleep 30");
    out(&live.eft(&["park", "1", "--scope", &sleeper.pid(), "--observe", "1", "--offline-after", "0.1"]));
    let begin = Instant::now();
    while fs::read_to_string("/sys/devices/system/cpu/cpu1/online").unwrap().trim() != "0" {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never went offline");
        std::thread::sleep(Duration::from_millis(5));
    }
    while fs::read_to_string("/sys/kernel/rcu_expedited").unwrap().trim() != "0" {
        assert!(begin.elapsed() < Duration::from_secs(20), "grace periods stay expedited");
        std::thread::sleep(Duration::from_millis(1));
    }
    out(&live.eft(&["unpark", "1"]));
    assert_eq!(fs::read_to_string("/sys/devices/system/cpu/cpu1/online").unwrap().trim(), "1");
    assert!(sleeper.allowed().contains(CpuId(1)));
}

#[test]
fn after_a_sigkill_the_next_start_undoes() {
    let Some(live) = Live::new() else { return };
    let sleeper = Sleeper::start("sleep 30");
    out(&live.eft(&["park", "1", "--scope", &sleeper.pid(), "--observe", "1"]));
    out(&live.eft(&["offline", "1"]));
    let holder = live.holder().unwrap();
    out(&Command::new("kill").args(["-9", &holder.to_string()]).output().unwrap());
    while fs::read_to_string(format!("/proc/{holder}/stat")).is_ok_and(|stat| !stat.contains(") Z")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let restored = live.eft(&["restore"]);
    assert!(String::from_utf8_lossy(&restored.stderr).contains("left behind"), "{restored:?}");
    assert_eq!(fs::read_to_string("/sys/devices/system/cpu/online").unwrap(), live.online);
    assert!(sleeper.allowed().contains(CpuId(1)));
}

#[test]
fn a_signal_to_the_holder_undoes() {
    let Some(live) = Live::new() else { return };
    out(&live.eft(&["offline", "1"]));
    let holder = live.holder().unwrap();
    out(&Command::new("kill").args(["-TERM", &holder.to_string()]).output().unwrap());
    let begin = Instant::now();
    while fs::read_to_string("/sys/devices/system/cpu/online").unwrap() != live.online {
        assert!(begin.elapsed() < Duration::from_secs(20), "the holder did not undo");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_emulated_speed_is_held_and_released() {
    let Some(live) = Live::new() else { return };
    let set = live.eft(&["speed", "1", "1/2", "--no-measure"]);
    if !set.status.success() {
        let reason = String::from_utf8_lossy(&set.stderr).into_owned();
        assert!(reason.contains("real-time"), "{reason}");
        return;
    }
    let listed: serde_json::Value =
        serde_json::from_str(&out(&live.eft(&["--json", "--interval", "10"]))).unwrap();
    assert_eq!(listed["cpus"][1]["speed_set"]["back_end"], "emulated");
    let holder = live.holder().unwrap();
    out(&live.eft(&["speed", "1", "full", "--no-measure"]));
    let begin = Instant::now();
    while fs::read_to_string(format!("/proc/{holder}/stat")).is_ok_and(|stat| !stat.contains(") Z")) {
        assert!(begin.elapsed() < Duration::from_secs(20), "with nothing to hold the holder ends");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_trace_shows_the_kernels_steps() {
    let Some(live) = Live::new() else { return };
    let picture = live.dir.path().join("offline.svg");
    let traced = live.eft(&["trace", "--json", "--picture", picture.to_str().unwrap(), "--", "offline", "1"]);
    if !traced.status.success() {
        let reason = String::from_utf8_lossy(&traced.stderr).into_owned();
        assert!(reason.contains("trac"), "{reason}");
        return;
    }
    let trace: serde_json::Value = serde_json::from_str(&out(&traced)).unwrap();
    assert!(trace["steps"].as_array().unwrap().len() > 10);
    assert!(trace["groups"].as_array().unwrap().iter().any(|group| group["group"] == "stop-machine"));
    assert!(fs::read_to_string(picture).unwrap().starts_with("<svg"));
    out(&live.eft(&["online", "1"]));
}

#[test]
fn the_benchmark_loses_nothing_and_leaves_nothing() {
    let Some(live) = Live::new() else { return };
    let state = live.dir.path().to_str().unwrap();
    let run = eft(&[
        "bench",
        "reconfigure",
        "--managed",
        "1",
        "--state-dir",
        state,
        "--rounds",
        "2",
        "--threads",
        "20",
        "--ways",
        "park,park-lazy,park-cancel,expedited",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&out(&run)).unwrap();
    assert_eq!((&report["tasks_lost"], report["left_changed"].as_array().unwrap().len()), (&0.into(), 0));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["leave"]["call_us"]["samples"].as_array().unwrap().len(), 2, "{row}");
        let lazy = row["way"].as_str().unwrap().starts_with("park-");
        assert_eq!(row["lazy_us"]["samples"].as_array().unwrap().len(), if lazy { 2 } else { 0 }, "{row}");
    }
    // All of the lazy work ends with the CPU offline, so coming back is dearer than cancelling it.
    let back = |way: &str| {
        let row = rows.iter().find(|row| row["way"] == way).unwrap();
        row["back"]["call_us"]["median"].as_f64().unwrap()
    };
    assert!(back("park-lazy") > back("park-cancel"), "{report}");
}

#[test]
fn a_stopped_benchmark_reports_what_it_has() {
    let Some(live) = Live::new() else { return };
    let state = live.dir.path().to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_eft"));
    command.args(["bench", "reconfigure", "--managed", "1", "--state-dir", state, "--json"]);
    command.args(["--rounds", "100000", "--threads", "5", "--ways", "park,expedited"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let journal = live.dir.path().join("journal");
    while fs::metadata(&journal).map_or(0, |metadata| metadata.len()) < 2000 {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    out(&Command::new("kill").args(["-INT", &run.id().to_string()]).output().unwrap());
    let run = run.wait_with_output().unwrap();
    assert!(!run.status.success() && String::from_utf8_lossy(&run.stderr).contains("asked to end"));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(!report["rows"][0]["leave"]["call_us"]["samples"].as_array().unwrap().is_empty());
    assert_eq!((&report["tasks_lost"], report["left_changed"].as_array().unwrap().len()), (&0.into(), 0));
    assert_eq!(fs::read_to_string(journal).unwrap(), "");
}
