//! Tests of a session on a recorded machine.

use std::os::unix::net::UnixListener;

use super::*;
use crate::guests::discover::{GroupSpec, Members};

/// CPUs 0 and 1 are large, 2 and 3 small; process 7 has one thread.
struct Recorded {
    dir: tempfile::TempDir,
}

impl Recorded {
    fn new() -> Self {
        let recorded = Self { dir: tempfile::tempdir().unwrap() };
        recorded.put("sys/devices/system/cpu/present", "0-3");
        recorded.put("sys/devices/system/cpu/online", "0-3");
        recorded.put("proc/cpuinfo", "");
        recorded.put("proc/stat", "cpu 0");
        for cpu in 0..4 {
            let of = |what: &str| format!("sys/devices/system/cpu/cpu{cpu}/{what}");
            recorded.put(&of("topology/physical_package_id"), "0");
            recorded.put(&of("topology/core_id"), &cpu.to_string());
            recorded.put(&of("topology/thread_siblings_list"), &cpu.to_string());
            recorded.put(&of("cpu_capacity"), if cpu < 2 { "1024" } else { "512" });
            recorded.put(&of("online"), "1");
        }
        let fields = "0 ".repeat(20);
        let stat = format!("7 (guest) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 {fields}");
        recorded.put("proc/7/stat", &stat);
        recorded.put("proc/7/task/7/stat", &stat);
        recorded.put("proc/7/task/7/status", "Cpus_allowed_list:\t0-3");
        recorded.put("proc/7/task/7/schedstat", "1000 1000 1");
        recorded
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    fn cpus_of_the_guest(&self) -> String {
        let status = std::fs::read_to_string(self.dir.path().join("proc/7/task/7/status")).unwrap();
        status.trim().rsplit('\t').next().unwrap().to_string()
    }

    fn session(&self, qmp: Vec<PathBuf>) -> Session {
        self.session_with(qmp, BTreeMap::new())
    }

    fn session_with(&self, qmp: Vec<PathBuf>, guests: BTreeMap<String, GuestOptions>) -> Session {
        let group = GroupSpec { name: "g".into(), members: Members::Processes(vec![7]) };
        let settings = Settings {
            wanted: Wanted { groups: vec![group], qmp, groups_only: true, ..Wanted::default() },
            state_dir: self.dir.path().join("state"),
            cpu_state_dir: self.dir.path().join("cpu"),
            guests,
            ..Settings::default()
        };
        Session::open(&Tree::at(self.dir.path()), settings).unwrap()
    }
}

/// `docs/vm.md`: where there is no PMU, a counter that the guest offers stands for IPC.
#[test]
fn a_counter_that_the_guest_offers_stands_for_ipc() {
    let recorded = Recorded::new();
    let path = recorded.dir.path().join("requests");
    let options = GuestOptions { progress: Some(path.clone()), ..GuestOptions::default() };
    let mut session = recorded.session_with(Vec::new(), [("g".to_string(), options)].into());
    let mut ipc = |requests: &str, ran_s: u64| {
        std::fs::write(&path, requests).unwrap();
        recorded.put("proc/7/task/7/schedstat", &format!("{} 0 1", ran_s * 1_000_000_000));
        session.step(Due::Window);
        session.view().vcpus[0].ipc
    };
    assert_eq!(ipc("1000\n", 1), None, "a window has begun");
    assert_eq!(ipc("5000\n", 3), Some(0.5), "the gain of a fast core, where small ones are half as fast");
    for nonsense in ["", "many", "-3", "99999999999999999999999"] {
        assert_eq!(ipc(nonsense, 5), Some(0.5), "{nonsense:?}");
    }
    std::fs::remove_file(&path).unwrap();
    session.step(Due::Window);
    assert_eq!(session.view().counters, None, "nobody asked for a PMU");
}

fn classes(session: &Session) -> Vec<String> {
    session.view().classes.iter().map(|class| class.cpus.to_string()).collect()
}

#[test]
fn cpus_that_come_and_go_are_dealt_out_anew() {
    let recorded = Recorded::new();
    let mut session = recorded.session(Vec::new());
    session.step(Due::Window);
    assert_eq!(
        (classes(&session), recorded.cpus_of_the_guest()),
        (vec!["0-1".into(), "2-3".into()], "0-1".into())
    );
    session.take_notes();
    // The kernel leaves the CPU out of the result of `sched_getaffinity`.
    recorded.put("sys/devices/system/cpu/online", "0,2-3");
    recorded.put("sys/devices/system/cpu/cpu1/online", "0");
    recorded.put("proc/7/task/7/status", "Cpus_allowed_list:\t0");
    session.search();
    session.step(Due::Window);
    assert_eq!(
        (classes(&session), recorded.cpus_of_the_guest()),
        (vec!["0".into(), "2-3".into()], "0".into())
    );
    assert!(!session.view().vcpus[0].is_left_alone);
    let notes = session.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("dealt out anew"), "{notes:?}");
    recorded.put("sys/devices/system/cpu/online", "0-3");
    recorded.put("sys/devices/system/cpu/cpu1/online", "1");
    session.search();
    session.step(Due::Window);
    assert_eq!(
        (classes(&session), recorded.cpus_of_the_guest()),
        (vec!["0-1".into(), "2-3".into()], "0-1".into())
    );
    assert_eq!(session.restore(), Vec::<String>::new());
    assert_eq!(recorded.cpus_of_the_guest(), "0-3");
}

#[test]
fn a_monitor_that_hangs_delays_no_turn() {
    let recorded = Recorded::new();
    let path = recorded.dir.path().join("qmp");
    let mut session = recorded.session(vec![path.clone()]);
    session.take_notes();
    // It accepts connections and sends nothing.
    let _listener = UnixListener::bind(&path).unwrap();
    session.next_search = Instant::ZERO;
    session.step(Due::Window);
    let said =
        |session: &mut Session| session.take_notes().iter().any(|line| line.contains("does not answer"));
    assert!(!said(&mut session), "the window waited for the monitor");
    while !said(&mut session) {
        session.step(Due::Tick);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(session.searching.is_none() && session.next_search > Instant::ZERO);
}
