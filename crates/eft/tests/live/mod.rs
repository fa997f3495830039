//! What the live tests of `eft cpu` share: one machine, one after the other, and everything put back.
#![allow(dead_code)] // Each test program uses a part.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

static LIVE: Mutex<()> = Mutex::new(());

/// For a test that reads the state of CPUs which other tests switch off and on.
pub fn turn() -> MutexGuard<'static, ()> {
    LIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn eft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eft")).args(arguments).env_remove("EFT_MANAGED").output().unwrap()
}

/// The single line of an error.
pub fn refusal(arguments: &[&str]) -> String {
    let output = eft(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?} was accepted");
    assert_eq!(text.trim().lines().count(), 1, "{arguments:?}: {text}");
    text
}

pub fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A state folder of the test's own; dropping it restores the machine.
pub struct Live {
    pub dir: tempfile::TempDir,
    pub online: String,
    _turn: MutexGuard<'static, ()>,
}

impl Live {
    /// `None`, with a line that says why, where this machine cannot do it.
    pub fn new() -> Option<Self> {
        let turn = turn();
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let is_root = fs::metadata("/proc/self")
            .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0);
        if !is_root || !Path::new("/sys/devices/system/cpu/cpu1/online").exists() || online.trim() == "0" {
            eprintln!("skipped: this needs root and a second CPU that can be switched");
            return None;
        }
        Some(Self { dir: tempfile::tempdir().unwrap(), online, _turn: turn })
    }

    pub fn eft(&self, arguments: &[&str]) -> Output {
        let state = self.dir.path().to_str().unwrap();
        eft(&[&["cpu", "--state-dir", state, "--managed", "1"], arguments].concat())
    }

    pub fn holder(&self) -> Option<i32> {
        let held = fs::read_to_string(self.dir.path().join("held.json")).ok()?;
        held.split("\"tid\":").nth(1)?.split(',').next()?.parse().ok()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A test may have taken the CPU offline as another program would.
        let _ = fs::write("/sys/devices/system/cpu/cpu1/online", "1");
        self.eft(&["restore"]);
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        if !std::thread::panicking() {
            assert_eq!(online, self.online);
            assert!(!Path::new("/sys/fs/cgroup/cpuset/eft").exists());
        }
    }
}

/// A program that is ours to move about.
pub struct Sleeper(std::process::Child);

impl Sleeper {
    pub fn start(command: &str) -> Self {
        Self(Command::new("sh").args(["-c", command]).spawn().unwrap())
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Where it may run.
    pub fn allowed(&self) -> eft_machine::CpuSet {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
