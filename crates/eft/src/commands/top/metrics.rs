//! The same for Prometheus: one page of text, under conventional names (base units, `_total` for counters).

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use eft_base::time::nanos;
use eft_cores::observation::add_traffic;
use eft_cores::sample::{ComponentSample, Sample, Traffic};
use eft_messages::Role;

use super::view::{Source, View};

/// Limit for a scraper to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request that are read.
const REQUEST_MAX: u64 = 8192;

/// Answers scrapes, each with a fresh sample, until it is ended. It finds the successor of a stack that has ended.
pub fn serve(source: Source, address: SocketAddr, count: Option<u64>) -> Result<()> {
    let name = source.stack().to_string();
    let mut source = Some(source);
    serve_at(&listen(address)?, count, || {
        let mut current = match source.take() {
            Some(current) => current,
            None => Source::open(&name)?,
        };
        let view = current.view()?;
        source = Some(current);
        Ok(page(&view))
    });
    Ok(())
}

pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))
}

/// Answers scrapes with the current result of `page`; on its errors, with 503 and the reason.
pub fn serve_at(listener: &TcpListener, count: Option<u64>, mut page: impl FnMut() -> Result<String>) {
    let count = count.map_or(usize::MAX, |count| count as usize);
    for stream in listener.incoming().flatten().take(count) {
        // An error of a scraper that disconnects early is ignored.
        let _ = answer(stream, page());
    }
}

/// Reads until a time, however the bytes drip in.
struct Until<'a> {
    stream: &'a TcpStream,
    at: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(into)
    }
}

fn answer(stream: TcpStream, page: Result<String>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let until = Until { stream: &stream, at: Instant::now() + PATIENCE };
    let mut request = BufReader::new(until.take(REQUEST_MAX));
    request.read_line(&mut line)?;
    // The rest of the head: a connection that is closed with unread bytes is reset, and the answer lost.
    let mut rest = String::new();
    while request.read_line(&mut rest)? > 2 {
        rest.clear();
    }
    let (status, body) = match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["GET", "/metrics" | "/", ..] => match page {
            Ok(page) => ("200 OK", page),
            Err(reason) => ("503 Service Unavailable", format!("{reason:#}\n")),
        },
        ["GET", ..] => ("404 Not Found", "metrics are at /metrics\n".into()),
        _ => ("400 Bad Request", "ask GET /metrics\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (&stream).write_all(head.as_bytes())?;
    (&stream).write_all(body.as_bytes())
}

/// One metric: its head, then a line for each set of labels.
pub struct Metric<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl<'a> Metric<'a> {
    pub fn new(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Metric<'a> {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Metric { out, name }
    }

    pub fn put(&mut self, labels: &[(&str, &str)], value: f64) {
        let escape = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
        let _ = writeln!(self.out, "{}{{{}}} {value}", self.name, labels.join(","));
    }
}

fn page(view: &View) -> String {
    let mut out = String::new();
    components(&mut out, view);
    traffic(&mut out, &view.stack, &view.sample);
    cpus(&mut out, view);
    out
}

fn components(out: &mut String, view: &View) {
    let stack = view.stack.as_str();
    let all = &view.sample.components;
    let mut up = Metric::new(out, "eft_component_up", "gauge", "Whether the component runs.");
    all.iter()
        .for_each(|c| up.put(&[("stack", stack), ("component", &c.name)], f64::from(u8::from(c.running))));
    let mut deaths = Metric::new(out, "eft_component_deaths_total", "counter", "Deaths of the component.");
    for c in &view.components {
        deaths.put(&[("stack", stack), ("component", &c.name)], c.restarts as f64);
    }
    let mut time =
        Metric::new(out, "eft_component_seconds_total", "counter", "Time by what it was spent on.");
    for c in all {
        for (phase, length) in
            [("busy", c.busy), ("polling", c.polling), ("waiting", c.waiting), ("sleeping", c.sleeping)]
        {
            time.put(&[("stack", stack), ("component", &c.name), ("phase", phase)], seconds(length));
        }
    }
    let simple: [(&'static str, &str, fn(&ComponentSample) -> f64); 3] = [
        ("eft_component_cpu_seconds_total", "CPU time by the kernel's account.", |c| seconds(c.cpu_time)),
        ("eft_component_wake_ups_total", "Returns from sleeps in the kernel.", |c| c.wake_ups as f64),
        ("eft_component_wakes_sent_total", "Peers woken by a system call.", |c| c.wakes_sent as f64),
    ];
    for (name, help, of) in simple {
        let mut metric = Metric::new(out, name, "counter", help);
        all.iter().for_each(|c| metric.put(&[("stack", stack), ("component", &c.name)], of(c)));
    }
    let mut over = Metric::new(out, "eft_queue_overloads_total", "counter", "Rises above the upper mark.");
    for c in all {
        for q in &c.queues {
            over.put(&[("stack", stack), ("from", &q.from), ("to", &c.name)], q.overloads as f64);
        }
    }
}

/// What all instances of a transport count together; `None` if the stack has none.
fn of_role(sample: &Sample, role: Role) -> Option<Traffic> {
    let its = sample.components.iter().filter(|c| crate::commands::role_of(&c.name) == Some(role));
    its.map(|c| c.traffic).reduce(|mut all, one| {
        add_traffic(&mut all, &one);
        all.connections_open = all.connections_open.saturating_add(one.connections_open);
        all
    })
}

fn traffic(out: &mut String, stack: &str, sample: &Sample) {
    let Some(tcp) = of_role(sample, Role::Tcp) else { return };
    let udp = of_role(sample, Role::Udp).unwrap_or_default();
    let mut received = Metric::new(out, "eft_received_bytes_total", "counter", "Payload received.");
    received.put(&[("stack", stack), ("protocol", "tcp")], tcp.received_bytes as f64);
    received.put(&[("stack", stack), ("protocol", "udp")], udp.received_bytes as f64);
    let mut sent = Metric::new(out, "eft_sent_bytes_total", "counter", "Payload sent.");
    sent.put(&[("stack", stack), ("protocol", "tcp")], tcp.sent_bytes as f64);
    sent.put(&[("stack", stack), ("protocol", "udp")], udp.sent_bytes as f64);
    let mut began =
        Metric::new(out, "eft_tcp_connections_total", "counter", "Connections by how they began or ended.");
    for (event, count) in [
        ("outbound", tcp.outbound_connections),
        ("accepted", tcp.accepted_connections),
        ("closed", tcp.closed_connections),
    ] {
        began.put(&[("stack", stack), ("event", event)], count as f64);
    }
    Metric::new(out, "eft_tcp_connections", "gauge", "Connections now.")
        .put(&[("stack", stack)], tcp.connections_open as f64);
}

fn cpus(out: &mut String, view: &View) {
    let stack = view.stack.as_str();
    let mut speed =
        Metric::new(out, "eft_cpu_speed_ratio", "gauge", "Share of full speed that the CPU is set to.");
    view.cpus.iter().for_each(|c| speed.put(&[("stack", stack), ("cpu", &c.cpu.to_string())], c.speed.0));
    let mut time = Metric::new(out, "eft_cpu_seconds_total", "counter", "Time by the kernel's account.");
    for c in &view.sample.cpus {
        for (mode, length) in [("busy", c.busy), ("idle", c.idle), ("stolen", c.stolen)] {
            time.put(&[("stack", stack), ("cpu", &c.cpu.to_string()), ("mode", mode)], seconds(length));
        }
    }
    let mut parked = Metric::new(out, "eft_cpu_parked", "gauge", "Whether the CPU is parked.");
    for c in &view.cpus {
        parked.put(&[("stack", stack), ("cpu", &c.cpu.to_string())], f64::from(u8::from(c.parked)));
    }
    if let Some(energy) = view.sample.energy {
        Metric::new(out, "eft_energy_joules_total", "counter", "Energy of all packages since this began.")
            .put(&[("stack", stack)], energy.0 as f64 / 1e6);
    }
    if let Some(decisions) = view.scheduling["decisions"].as_u64() {
        Metric::new(out, "eft_scheduler_decisions_total", "counter", "Decisions of the scheduler.")
            .put(&[("stack", stack)], decisions as f64);
    }
}

/// As exact as the nanoseconds are.
fn seconds(length: Duration) -> f64 {
    nanos(length) as f64 / 1e9
}

#[cfg(test)]
mod tests;
