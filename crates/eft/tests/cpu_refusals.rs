//! What `eft cpu` must refuse on this machine, each by one clear line and with nothing half done: real-time threads
//! without budget, a read-only sysfs, an ordinary user, a core that somebody else took offline, somebody else's cpuset.

mod live;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use live::{Live, Sleeper, out};

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// The one line of a refusal.
fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was accepted: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(text.trim().lines().count(), 1, "{text}");
    text
}

impl Live {
    /// Runs eft from a shell that has prepared something first.
    fn after(&self, preparation: &str, arguments: &str) -> Output {
        let program = env!("CARGO_BIN_EXE_eft");
        let state = self.dir.path().display();
        let script =
            format!("{preparation} && exec {program} cpu --state-dir {state} --managed 1 {arguments}");
        Command::new("sh").args(["-c", &script]).env_remove("EFT_MANAGED").output().unwrap()
    }

    /// The journal holds nothing, and the CPU is where it was.
    fn assert_untouched(&self) {
        let journal = fs::read_to_string(self.dir.path().join("journal")).unwrap_or_default();
        assert_eq!(journal, "", "something is still in the journal");
        assert_eq!(fs::read_to_string("/sys/devices/system/cpu/online").unwrap(), self.online);
        assert_eq!(fs::read_to_string("/sys/kernel/rcu_expedited").unwrap().trim(), "0");
        assert!(!Path::new("/sys/fs/cgroup/cpuset/eft").exists());
    }
}

/// A cgroup that goes with the value.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where this hierarchy of cgroup v1 is not mounted.
    fn make(controller: &str) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/{controller}/eft-test-{}", std::process::id()));
        fs::create_dir(&path).ok().map(|()| Self(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn without_a_budget_real_time_threads_are_refused_and_a_switch_is_only_slower() {
    let Some(live) = Live::new() else { return };
    let Some(group) = Cgroup::make("cpu").filter(|group| group.0.join("cpu.rt_runtime_us").exists()) else {
        eprintln!("skipped: no RT group scheduling here");
        return;
    };
    let join = format!("echo $$ > {}/cgroup.procs", group.0.display());
    let refused = line(&live.after(&join, "speed 1 1/2"));
    assert!(refused.contains("real-time threads are refused") && refused.contains("budget"), "{refused}");
    live.assert_untouched();
    out(&live.after(&join, "offline 1"));
    assert_eq!(fs::read_to_string(ONLINE).unwrap().trim(), "0");
    out(&live.after(&join, "online 1"));
    out(&live.eft(&["restore"]));
    live.assert_untouched();
}

#[test]
fn a_read_only_sysfs_changes_nothing() {
    let Some(live) = Live::new() else { return };
    let in_namespace = |mounts: &str, arguments: &str| {
        let remount: Vec<String> =
            mounts.split(' ').map(|at| format!("mount -o remount,bind,ro {at}")).collect();
        let program = env!("CARGO_BIN_EXE_eft");
        let state = live.dir.path().display();
        let script = format!(
            "{} && exec {program} cpu --state-dir {state} --managed 1 {arguments}",
            remount.join(" && ")
        );
        Command::new("unshare").args(["-m", "sh", "-c", &script]).env_remove("EFT_MANAGED").output().unwrap()
    };
    let refused = line(&in_namespace("/sys", "offline 1"));
    assert!(refused.contains("read-only"), "{refused}");
    live.assert_untouched();
    if Path::new("/sys/fs/cgroup/cpuset").exists() {
        let refused = line(&in_namespace("/sys /sys/fs/cgroup/cpuset", "park 1 --back-end v1"));
        assert!(refused.contains("ead-only"), "{refused}");
        live.assert_untouched();
    }
}

#[test]
fn an_ordinary_user_gets_one_line() {
    let Some(live) = Live::new() else { return };
    // The build folder may be closed to others.
    let (place, program) = (tempfile::tempdir_in("/var/tmp").unwrap(), "eft");
    fs::copy(env!("CARGO_BIN_EXE_eft"), place.path().join(program)).unwrap();
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    open(place.path(), 0o755);
    let state = place.path().join("state");
    fs::create_dir(&state).unwrap();
    open(&state, 0o777);
    let as_nobody = |state: &str, arguments: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(place.path().join(program))
            .args(["cpu", "--managed", "1", "--state-dir", state])
            .args(arguments)
            .env_remove("EFT_MANAGED")
            .output()
            .unwrap()
    };
    let closed = live.dir.path().to_str().unwrap();
    let mine = state.to_str().unwrap();
    assert!(line(&as_nobody(closed, &["park", "1"])).contains("needs root"));
    for arguments in [
        &["offline", "1"][..],
        &["speed", "1", "1/2", "--no-measure"],
        &["park", "1", "--back-end", "v1"],
        &["trace", "--", "offline", "1"],
    ] {
        let refused = line(&as_nobody(mine, arguments));
        let is_clear =
            ["needs root", "CAP_SYS_NICE", "ermission denied"].iter().any(|word| refused.contains(word));
        assert!(is_clear, "{arguments:?}: {refused}");
        assert_eq!(fs::read_to_string(state.join("journal")).unwrap_or_default(), "", "{arguments:?}");
        live.assert_untouched();
    }
    // Listing needs no privilege.
    out(&as_nobody(mine, &["--interval", "10"]));
}

#[test]
fn a_core_that_somebody_else_took_offline_is_left_alone() {
    let Some(live) = Live::new() else { return };
    fs::write(ONLINE, "0").unwrap();
    for arguments in [&["park", "1"][..], &["offline", "1"], &["speed", "1", "1/2"]] {
        assert!(line(&live.eft(arguments)).contains("is offline"), "{arguments:?}");
    }
    fs::write(ONLINE, "1").unwrap();
    live.assert_untouched();
    // Meanwhile: after it was parked, and before it is given back.
    let sleeper = Sleeper::start("sleep 60");
    out(&live.eft(&["park", "1", "--scope", &sleeper.pid(), "--observe", "1"]));
    fs::write(ONLINE, "0").unwrap();
    let back = live.eft(&["unpark", "1"]);
    out(&back);
    assert!(String::from_utf8_lossy(&back.stderr).contains("not by eft; it stays so"), "{back:?}");
    assert_eq!(fs::read_to_string(ONLINE).unwrap().trim(), "0", "it is theirs to bring back");
    fs::write(ONLINE, "1").unwrap();
    live.assert_untouched();
}

#[test]
fn a_cpu_in_somebody_elses_cpuset_stays_theirs() {
    let Some(live) = Live::new() else { return };
    let Some(theirs) = Cgroup::make("cpuset") else {
        eprintln!("skipped: no cpuset of cgroup v1 here");
        return;
    };
    fs::write(theirs.0.join("cpuset.mems"), "0").unwrap();
    fs::write(theirs.0.join("cpuset.cpus"), "1").unwrap();
    for arguments in [&["park", "1"][..], &["offline", "1"]] {
        let refused = line(&live.eft(arguments));
        assert!(refused.contains("eft-test-") && refused.contains("--force"), "{arguments:?}: {refused}");
    }
    assert_eq!(fs::read_to_string(theirs.0.join("cpuset.cpus")).unwrap().trim(), "1");
    live.assert_untouched();
}

#[test]
fn the_holder_holds_no_descriptor_of_who_started_it() {
    let Some(live) = Live::new() else { return };
    let theirs = live.dir.path().join("theirs");
    out(&live.after(&format!("exec 9>{}", theirs.display()), "offline 1"));
    let open = fs::read_dir(format!("/proc/{}/fd", live.holder().unwrap())).unwrap();
    let targets: Vec<PathBuf> = open.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
    assert!(!targets.contains(&theirs), "{targets:?}");
}
