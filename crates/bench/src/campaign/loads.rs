//! The mixed load: each of its parts counts what it achieved, the connections that it lost, and bytes that were wrong.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use eft_base::Random;

use super::content::{self, CHUNK};
use super::late::LateAnswers;
use super::server::{PAUSE, PORT, RETURN, SEND, TAKE};
use crate::progress::Progress;
use crate::stack::{STACK, Serving, peer_on};

/// Until a connection without a sign of life is given up: beyond several doublings of TCP's time-out.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many lost connections of a part are described.
const ENDS_KEPT: usize = 8;

/// One part of the load.
pub struct Part {
    pub name: &'static str,
    /// Connections that it keeps open; 0: a new one each time.
    pub connections: u64,
    pub progress: AtomicU64,
    pub lost: AtomicU64,
    pub damaged: AtomicU64,
    /// Requests whose answers came late.
    pub late: LateAnswers,
    /// How the last connections were lost.
    ends_seen: Mutex<Vec<String>>,
    ends: AtomicBool,
}

impl Part {
    fn goes_on(&self) -> bool {
        !self.ends.load(Relaxed)
    }

    /// A connection that had begun at `begin` is lost, and this is what its program sees of it.
    fn lost(&self, begin: Instant, why: impl Display) {
        if let Ok(mut ends) = self.ends_seen.lock() {
            ends.push(format!("{why}, after {:.1} s", begin.elapsed().as_secs_f64()));
            let many = ends.len().saturating_sub(ENDS_KEPT);
            ends.drain(..many);
        }
        self.lost.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }

    /// How the last `count` connections were lost, as far as that is kept.
    pub fn last_ends(&self, count: u64) -> String {
        let Ok(ends) = self.ends_seen.lock() else { return String::new() };
        ends[ends.len().saturating_sub(count as usize)..].join("; ")
    }
}

/// The whole load. It ends with the value.
pub struct Loads {
    pub parts: Vec<Arc<Part>>,
    pub taken: Progress,
    damaged: Progress,
    _servers: Vec<Daemon>,
    _own: Serving,
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that we have not reaped.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

impl Loads {
    /// `folder` is for files of its programs.
    pub fn start(stack: &str, folder: &std::path::Path) -> Result<Loads> {
        let (taken, damaged) =
            (Progress::create(&folder.join("taken"))?, Progress::create(&folder.join("damaged"))?);
        let folder_text = folder.to_string_lossy().into_owned();
        let own = Serving::start(peer_on(stack, &["campaign", STACK, &folder_text])?)?;
        let mut loads = Loads { parts: Vec::new(), taken, damaged, _servers: Vec::new(), _own: own };
        loads.add("bulk from the stack", 2, download);
        loads.add("bulk to the stack", 2, upload);
        loads.add("requests", 4, |part| echo(part, 64, Duration::from_millis(1)));
        loads.add("idle (as ssh)", 8, |part| echo(part, 48, Duration::from_millis(250)));
        loads.add("new connections", 0, connect);
        loads.add("datagrams", 0, datagrams);
        loads.add_nginx(stack, folder)?;
        loads.add_redis(stack, folder)?;
        Ok(loads)
    }

    fn add(&mut self, name: &'static str, connections: u64, run: impl Fn(&Part) + Clone + Send + 'static) {
        let zero = || AtomicU64::new(0);
        let ends = AtomicBool::new(false);
        let (progress, lost, damaged, late) = (zero(), zero(), zero(), LateAnswers::default());
        let ends_seen = Mutex::default();
        let part = Arc::new(Part { name, connections, progress, lost, damaged, late, ends_seen, ends });
        for _ in 0..connections.max(1) {
            let (part, run) = (part.clone(), run.clone());
            // A thread on a connection that hangs is not joined: it ends with the process.
            std::thread::spawn(move || {
                while part.goes_on() {
                    run(&part);
                }
            });
        }
        self.parts.push(part);
    }

    fn add_nginx(&mut self, stack: &str, folder: &std::path::Path) -> Result<()> {
        if !is_installed("nginx") || !is_installed("curl") {
            eprintln!("campaign: without nginx and curl, which are not installed");
            return Ok(());
        }
        let f = folder.display();
        let mut file = vec![0; CHUNK * 64];
        file.chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| content::fill(chunk, (i * CHUNK) as u64));
        let config = format!(
            "user root; worker_processes 1; daemon off; pid {f}/nginx.pid; error_log {f}/error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; sendfile on; client_body_temp_path {f}/body; proxy_temp_path {f}/proxy;\n\
             fastcgi_temp_path {f}/fcgi; uwsgi_temp_path {f}/uwsgi; scgi_temp_path {f}/scgi;\n\
             server {{ listen {STACK}:8080; root {f}; }} }}\n"
        );
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).with_context(|| format!("{f}/{name}"))
        };
        write("file", &file)?;
        write("nginx.conf", config.as_bytes())?;
        self.serve(stack, &["nginx", "-c", &format!("{f}/nginx.conf")], 8080)?;
        self.add("nginx and curl", 0, curl);
        Ok(())
    }

    fn add_redis(&mut self, stack: &str, folder: &std::path::Path) -> Result<()> {
        if !is_installed("redis-server") || !is_installed("redis-cli") {
            eprintln!("campaign: without redis, which is not installed");
            return Ok(());
        }
        let folder = folder.to_string_lossy();
        let server = [
            "redis-server",
            "--bind",
            STACK,
            "--port",
            "6400",
            "--save",
            "",
            "--dir",
            &folder,
            "--protected-mode",
            "no",
        ];
        self.serve(stack, &server, 6400)?;
        self.add("redis and redis-cli", 1, redis);
        Ok(())
    }

    fn serve(&mut self, stack: &str, command: &[&str], port: u16) -> Result<()> {
        let mut run = Command::new(crate::stack::exe()?);
        run.args(["run", "--name", stack, "--"]).args(command).stdout(Stdio::null());
        let child = run.spawn().with_context(|| command[0].to_string())?;
        self._servers.push(Daemon(child));
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((STACK, port)).is_err() {
            if Instant::now() > until {
                bail!("{} does not listen", command[0]);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What each part achieved so far.
    pub fn progress(&self) -> Vec<u64> {
        let own = |part: &Arc<Part>| match part.name {
            // What was written may never arrive.
            "bulk to the stack" => self.taken.get(),
            _ => part.progress.load(Relaxed),
        };
        self.parts.iter().map(own).collect()
    }

    /// Established connections that ended so far, and new ones that failed.
    pub fn lost(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.lost.load(Relaxed)).collect()
    }

    pub fn damaged(&self) -> u64 {
        self.damaged.get() + self.parts.iter().map(|part| part.damaged.load(Relaxed)).sum::<u64>()
    }

    /// Connections that are always open.
    pub fn established(&self) -> u64 {
        self.parts.iter().map(|part| part.connections).sum()
    }

    /// Answers to requests: all, and those that came late after `broke`.
    pub fn answers(&self, broke: Instant) -> (u64, u64) {
        let requests = self.parts.iter().find(|part| part.name == "requests");
        requests.map_or((0, 0), |part| (part.progress.load(Relaxed), part.late.since(broke)))
    }

    /// Bytes of all bulk connections so far.
    pub fn bulk(&self) -> u64 {
        self.parts[0].progress.load(Relaxed) + self.taken.get()
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| part.ends.store(true, Relaxed));
    }
}

pub fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(sbin).any(|folder| folder.join(program).is_file())
}

fn open(what: u8) -> std::io::Result<TcpStream> {
    let address = (STACK.parse::<std::net::Ipv4Addr>().map_err(std::io::Error::other)?, PORT).into();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&[what])?;
    Ok(stream)
}

/// One connection, until it is lost or the part ends.
fn keep(part: &Part, what: u8, turn: impl Fn(&mut TcpStream, u64) -> std::io::Result<u64>) {
    let begin = Instant::now();
    let mut stream = match open(what) {
        Ok(stream) => stream,
        Err(why) => return part.lost(begin, why),
    };
    let mut place = 0;
    while part.goes_on() {
        match turn(&mut stream, place) {
            Ok(n) => place += n,
            Err(why) => return part.lost(begin, why),
        }
    }
}

fn download(part: &Part) {
    keep(part, SEND, |stream, place| {
        let mut buffer = [0; CHUNK];
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (damaged, came) = content::follow(&buffer[..n], place);
        part.damaged.fetch_add(damaged, Relaxed);
        part.progress.fetch_add(n as u64, Relaxed);
        Ok(came)
    });
}

fn upload(part: &Part) {
    keep(part, TAKE, |stream, place| {
        let mut buffer = [0; CHUNK];
        content::fill(&mut buffer, place);
        stream.write_all(&buffer)?;
        std::thread::sleep(PAUSE);
        Ok(CHUNK as u64)
    });
}

fn echo(part: &Part, bytes: usize, pause: Duration) {
    keep(part, RETURN, |stream, place| {
        ask(part, stream, bytes, place)?;
        std::thread::sleep(pause);
        Ok(bytes as u64)
    });
}

fn ask(part: &Part, stream: &mut TcpStream, bytes: usize, place: u64) -> std::io::Result<()> {
    let mut buffer = [0; CHUNK];
    let buffer = &mut buffer[..bytes];
    content::fill(buffer, place);
    let begin = Instant::now();
    stream.write_all(buffer)?;
    buffer.fill(0);
    stream.read_exact(buffer)?;
    part.late.note(begin);
    part.damaged.fetch_add(content::damaged(buffer, place), Relaxed);
    part.progress.fetch_add(1, Relaxed);
    Ok(())
}

fn connect(part: &Part) {
    let begin = Instant::now();
    match open(RETURN).and_then(|mut stream| ask(part, &mut stream, 64, 0)) {
        Ok(()) => std::thread::sleep(Duration::from_millis(10)),
        Err(why) => part.lost(begin, why),
    }
}

/// Datagrams may be lost, but those that arrive must be as they were sent.
fn datagrams(part: &Part) {
    let Ok(socket) = UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect((STACK, PORT)).map(|()| s)) else {
        return;
    };
    let _ = socket.set_read_timeout(Some(Duration::from_millis(20)));
    let mut random = Random::new(part.progress.load(Relaxed));
    while part.goes_on() {
        let sent: [u8; 512] = std::array::from_fn(|_| random.next_u32() as u8);
        let mut got = [0; 2048];
        let _ = socket.send(&sent);
        loop {
            match socket.recv(&mut got) {
                Ok(n) if got[..n] == sent => drop(part.progress.fetch_add(1, Relaxed)),
                // A late answer to an earlier datagram.
                Ok(512) => continue,
                Ok(_) => drop(part.damaged.fetch_add(1, Relaxed)),
                Err(_) => {}
            }
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn curl(part: &Part) {
    let begin = Instant::now();
    let address = format!("http://{STACK}:8080/file");
    let output = match Command::new("curl").args(["-sSf", "--max-time", "30", &address]).output() {
        Ok(output) => output,
        Err(why) => return part.lost(begin, why),
    };
    let wrong = output
        .stdout
        .chunks(CHUNK)
        .enumerate()
        .map(|(i, chunk)| content::damaged(chunk, (i * CHUNK) as u64))
        .sum();
    part.damaged.fetch_add(wrong, Relaxed);
    match output.status.success() && output.stdout.len() == CHUNK * 64 {
        true => drop(part.progress.fetch_add(1, Relaxed)),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            part.lost(begin, format_args!("{} bytes, {}", output.stdout.len(), said.trim()))
        }
    }
    std::thread::sleep(Duration::from_millis(20));
}

/// Increments a counter in redis and checks that each answer is one more than the last. redis-cli does not report
/// reconnections, so the server is asked.
fn redis(part: &Part) {
    let begin = Instant::now();
    let command = ["-h", STACK, "-p", "6400"];
    let child = Command::new("redis-cli").args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(why) => return part.lost(begin, why),
    };
    let Some((mut input, output)) = child.stdin.take().zip(child.stdout.take()) else { return };
    let mut lines = BufReader::new(output).lines();
    let mut say = |text: &str| -> Option<String> {
        writeln!(input, "{text}").ok()?;
        lines.next()?.ok()
    };
    let name = say("CLIENT ID");
    let mut last: Option<u64> = None;
    while part.goes_on() {
        let (count, id) = (say("INCR count").and_then(|line| line.parse().ok()), say("CLIENT ID"));
        if count.is_none() || id != name {
            part.lost(begin, format_args!("client {name:?} became {id:?}"));
            break;
        }
        part.damaged.fetch_add(last.is_some_and(|last| count != Some(last + 1)) as u64, Relaxed);
        last = count;
        part.progress.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}
