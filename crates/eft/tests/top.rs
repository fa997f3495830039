//! `eft top` without a screen: what it serves to Prometheus, and to whom.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use support::{Running, Stack, cpus, eft, wait_for};

fn scrape(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_name_components_as_ps_does_and_no_scraper_keeps_others_waiting() {
    if cpus().is_none() {
        return;
    }
    let stack = Stack::start("topmetrics", 33, None);
    // Free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut top = Command::new(eft());
    top.args(["top", "--name", &stack.name, "--metrics", &address]);
    let _top = Running(top.spawn().unwrap());
    wait_for("the endpoint", || TcpStream::connect(&address).ok().map(drop));

    let answer = scrape(&address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for component in stack.components() {
        let wanted = format!("eft_component_up{{stack=\"{}\",component=\"{component}\"}} 1\n", stack.name);
        assert!(answer.contains(&wanted), "{wanted} is not in\n{answer}");
    }
    assert!(answer.contains("mode=\"stolen\""), "{answer}");
    assert!(scrape(&address, "GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(scrape(&address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));

    // A client that sends its request byte by byte would take hours if each byte restarted the time limit.
    let mut slow = TcpStream::connect(&address).unwrap();
    let drip = std::thread::spawn(move || {
        while slow.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(scrape(&address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    drip.join().unwrap();

    // A scraper's endpoint outlives the stack, and finds its successor.
    drop(stack);
    let answer = scrape(&address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no running stack"), "{answer}");
    let _stack = Stack::start("topmetrics", 33, None);
    let answer = scrape(&address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
