//! `eft profile` and `eft up --config`, live: a tiny load is swept, listed, shown, plotted and pruned; the stack, its
//! policy and its CPUs are then what they were; wrong inputs are one line. As root, on a machine with two CPUs.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{Stack, build_shim, cpus, eft, wait_for};

const TOPOLOGY: &str = include_str!("../../../topologies/default.toml");

fn topology(cpus: [u32; 2]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let [a, b] = cpus;
    let table = format!("[scheduling]\npolicy = \"adaptive\"\nmanaged = \"{a},{b}\"\n");
    fs::write(file.path(), format!("{TOPOLOGY}\n{table}")).unwrap();
    file
}

fn profile(file: &Path, arguments: &[&str]) -> Output {
    Command::new(eft()).args(["profile", "--file"]).arg(file).args(arguments).output().unwrap()
}

fn json(file: &Path, arguments: &[&str]) -> Value {
    let output = profile(file, &[&["--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refusal(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was accepted");
    assert_eq!(text.trim().lines().count(), 1, "{text}");
    text
}

/// Opens connections to the stack, each with five bytes, until it is told to end, and then says something.
fn connections(address: &str, last_line: &str) -> String {
    format!(
        "exec 2>/dev/null; trap 'echo {last_line}; exit' TERM; \
         while true; do (echo -n hello >/dev/tcp/{address}/7); done"
    )
}

/// An echo server on the stack.
struct Echo(std::process::Child);

impl Echo {
    fn start(stack: &Stack, address: &str) -> Echo {
        use std::io::Read;
        let mut child = Command::new(eft())
            .args([
                "run",
                "--name",
                &stack.name,
                "--",
                eft(),
                "bench",
                "peer",
                "echo",
                &format!("{address}:7"),
            ])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        Echo(child)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_sweep_is_recorded_and_everything_is_put_back() {
    let Some([a, b]) = cpus() else { return };
    build_shim();
    let topology = topology([a, b]);
    let stack = Stack::start("sweep", 31, Some(topology.path()));
    let _echo = Echo::start(&stack, "10.93.31.2");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles.toml");
    let load = connections("10.93.31.2", "throughput=3 latency_us=40");
    let sweep = |search: &str, name: &str, load: &str| {
        profile(
            &file,
            &[
                "--json",
                "sweep",
                "--name",
                &stack.name,
                "--load",
                name,
                "--search",
                search,
                "--seconds",
                "0.1",
            ]
            .iter()
            .chain(&["--settle", "0.05", "--", "bash", "-c", load])
            .copied()
            .collect::<Vec<_>>(),
        )
    };
    let output = sweep("exhaustive", "little", &load);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let swept: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = swept["configurations"].as_array().unwrap().len();
    // Each cut of the way of a packet both ways round, and each CPU alone at least.
    assert!(count >= 10, "{swept}");
    assert_eq!(stack.json(&["sched"])["scheduling"]["policy"], "adaptive", "the policy was not put back");
    assert!(stack.json(&["sched"])["speeds"].as_object().unwrap().is_empty());
    assert!(sweep("steps", "steps", &load).status.success());

    let list = json(&file, &["list"]);
    assert_eq!(list["loads"].as_array().unwrap().len(), 2);
    assert_eq!(list["loads"][0]["configurations"], count);
    let shown = json(&file, &["show", "little"]);
    assert_eq!(shown["outcomes"].as_array().unwrap().len(), count);
    assert!(shown["outcomes"].as_array().unwrap().iter().all(|o| o["power_w"].as_f64().unwrap() > 0.0));
    assert!(shown["outcomes"].as_array().unwrap().iter().all(|o| o["latency_us"] == 40.0), "{shown}");
    let picture = dir.path().join("plot.svg");
    assert!(profile(&file, &["plot", "--svg", picture.to_str().unwrap()]).status.success());
    assert!(fs::read_to_string(&picture).unwrap().matches("<circle").count() > count);
    assert!(
        String::from_utf8(profile(&file, &["plot", "little"]).stdout).unwrap().contains("Mbyte/s over W")
    );

    // The policy takes what was recorded; from a copy, for what is pruned below may be all that it would go by.
    let taken = dir.path().join("taken.toml");
    fs::copy(&file, &taken).unwrap();
    let policy = ["sched", "policy", "profile", "--profiles", taken.to_str().unwrap()];
    assert_eq!(stack.json(&policy)["scheduling"]["policy"], "profile");

    let before = list["loads"].as_array().unwrap().iter().map(|l| l["configurations"].as_u64().unwrap());
    let pruned = json(&file, &["prune"]);
    let left = pruned["left"].as_u64().unwrap();
    assert_eq!(left + pruned["removed"]["outcomes"].as_u64().unwrap(), before.sum::<u64>());
    assert!(left >= 1);
    json(&file, &["prune", "--remove", "little"]);
    assert!(refusal(&profile(&file, &["show", "little"])).contains("there is no load `little`"));

    // Wrong loads: one line, and everything is put back.
    for (load, says) in [
        ("exit 3", "the load ended before"),
        ("sleep 0.4; exit 3", "the load failed"),
        ("sleep 9", "the load sent nothing"),
        (&connections("10.93.31.2", "throughput=lots"), "`throughput=lots`, which is no figure"),
    ] {
        let said = refusal(&sweep("exhaustive", "wrong", load));
        assert!(said.contains(says), "{load}: {said}");
    }
    assert_eq!(stack.json(&["sched"])["scheduling"]["policy"], "profile");
}

#[test]
fn wrong_inputs_are_one_line() {
    let Some(_) = cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles.toml");
    assert!(refusal(&profile(&file, &["list"])).contains("there are no profiles yet"));
    for (text, says) in [
        ("", "no profile file of eft"),
        ("# eft profiles, version 9, digest 0\n", "version 9"),
        ("# eft profiles, version 2, digest 0\n[machine]\n", "damaged"),
    ] {
        fs::write(&file, text).unwrap();
        for command in [&["list"][..], &["show", "x"], &["plot"], &["prune"]] {
            assert!(refusal(&profile(&file, command)).contains(says), "{text:?}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "a file that is none of ours was touched");
    }
    let nobody = ["sweep", "--name", "nosuch", "--", "true"];
    assert!(refusal(&profile(&file, &nobody)).contains("there is no running stack `nosuch`"));

    let stack = Stack::start("sweepno", 32, None);
    let sweep = |more: &[&str]| {
        let all = [&["sweep", "--name", &stack.name], more, &["--", "true"]].concat();
        refusal(&profile(&file, &all))
    };
    assert!(sweep(&[]).contains("manages no CPUs"));
    assert!(sweep(&["--managed", "0,4999"]).contains("CPU 4999 is not there"));
    assert!(sweep(&["--managed", "0", "--seconds", "0"]).contains("--seconds 0"));
    assert!(sweep(&["--managed", "0"]).contains("damaged"), "an unusable file is found out before the sweep");
    assert!(stack.component("tcp")["cpu"].is_null());
}

#[test]
fn a_configuration_file_starts_a_stack_that_says_when_it_is_ready() {
    let Some(_) = cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let id = std::process::id();
    let (config, socket) = (dir.path().join("web.toml"), dir.path().join("notify"));
    let name = format!("upfile{id}");
    let text = "name = \"loses\"\naddress = \"10.93.33.2/24\"\nhost-address = \"10.93.33.1/24\"\n\
                topology = \"mine.toml\"\n";
    let device = format!("device = \"tap:eft33m{}\"\n", id % 100_000);
    fs::write(&config, format!("{device}{text}")).unwrap();
    fs::write(dir.path().join("mine.toml"), TOPOLOGY).unwrap();
    let notify = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let up = || {
        let mut command = Command::new(eft());
        command.args(["up", "--name", &name, "--config"]).arg(&config);
        command
    };
    let mut child = up().env("NOTIFY_SOCKET", &socket).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut buffer = [0; 64];
    notify.set_nonblocking(true).unwrap();
    let ended = wait_for("READY=1", || match notify.recv(&mut buffer) {
        Ok(n) => Some(buffer[..n] != *b"READY=1"),
        Err(_) => child.try_wait().unwrap().map(|_| true),
    });
    let ps = Command::new(eft()).args(["ps", "--name", &name]).output().unwrap();
    // SAFETY: a signal to a child that was not reaped yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success() && !ended && ps.status.success());

    fs::write(&config, format!("{device}{text}adress = 3\n")).unwrap();
    let said = refusal(&up().output().unwrap());
    assert!(said.contains("web.toml: line 6 (`adress = 3`): unknown field `adress`"), "{said}");
    fs::write(&config, text).unwrap();
    assert!(refusal(&up().output().unwrap()).contains("there is no device"));
}
