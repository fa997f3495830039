use super::*;
use std::os::unix::net::UnixListener;

#[test]
fn half_a_line_is_not_the_same_as_no_answer() {
    let (mut there, stream) = UnixStream::pair().unwrap();
    let mut monitor = Monitor { stream, until: Instant::now(), bytes: Vec::new() };
    assert!(monitor.line().unwrap_err().to_string().contains("does not answer"));
    there.write_all(b"{\"QMP\": ").unwrap();
    let mut buffer = [0u8; 8];
    monitor.stream.read_exact(&mut buffer).unwrap();
    monitor.bytes.extend_from_slice(&buffer);
    assert!(monitor.line().unwrap_err().to_string().ends_with("stops in the middle of a line"));
}

/// A monitor that answers each line it receives with the next of these, and then closes or hangs.
fn monitor(lines: &'static [&'static str], hangs: bool) -> Result<Answer, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("qmp");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for (i, line) in lines.iter().enumerate() {
            if i > 0 && stream.read(&mut [0u8; 256]).is_err() {
                return;
            }
            if stream.write_all(format!("{line}\r\n").as_bytes()).is_err() {
                return;
            }
        }
        if hangs {
            std::thread::sleep(PATIENCE * 2);
        }
    });
    let begin = Instant::now();
    let answer = ask(&path);
    assert!(begin.elapsed() < PATIENCE * 3, "{:?}", begin.elapsed());
    server.join().unwrap();
    answer
}

const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": []}}"#;

#[test]
fn vcpus_are_told_with_their_threads() {
    let lines = &[
        GREETING,
        r#"{"return": {}}"#,
        "{\"event\": \"STOP\"}\n{\"return\": [{\"cpu-index\": 0, \"thread-id\": 71}, {\"cpu-index\": 1, \"thread-id\": 72}]}",
        r#"{"return": {"running": false, "status": "paused"}}"#,
    ];
    let answer = monitor(lines, false).unwrap();
    assert_eq!((answer.vcpus, answer.is_running), (vec![(0, 71), (1, 72)], false));
    assert_eq!(answer.process, std::process::id() as i32);
}

#[test]
fn liars_hangers_and_quitters_are_one_line_each() {
    let bad: [(&'static [&'static str], bool, &str); 8] = [
        (&[], false, "closes"),
        (&[], true, "does not answer"),
        (&["hello"], false, "no JSON"),
        (&["{}"], false, "does not greet"),
        (&[GREETING, r#"{"error": {"desc": "no\nway"}}"#], false, "refuses qmp_capabilities"),
        (&[GREETING, r#"{"return": {}}"#, r#"{"return": 7}"#, r#"{"return": {}}"#], false, "no list"),
        (
            &[GREETING, r#"{"return": {}}"#, r#"{"return": [{"thread-id": -4}]}"#, r#"{"return": {}}"#],
            false,
            "no vCPU",
        ),
        (&[GREETING, r#"{"return": {}}"#], true, "does not answer"),
    ];
    for (lines, hangs, what) in bad {
        let error = monitor(lines, hangs).unwrap_err().to_string();
        assert!(error.contains(what) && !error.contains('\n'), "{error}");
    }
    assert!(ask(Path::new("/nowhere")).unwrap_err().to_string().contains("cannot be connected"));
}
