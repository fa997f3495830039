//! The mixed load: each of its parts counts what it achieved, the connections that it lost, and bytes that were wrong.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Result;
use eft_base::Random;

use super::content::{self, CHUNK};
use super::part::Part;
use super::programs::{Daemon, curl, nginx, redis, redis_server};
use super::server::{PAUSE, PORT, RETURN, SEND, TAKE, taken};
use crate::progress::Progress;
use crate::stack::{STACK, Serving, peer_on};

/// Until a connection without a sign of life is given up: beyond several doublings of TCP's time-out.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connections with bulk data in each direction, and of both.
const BULK_EACH: usize = 2;
pub const BULK: usize = 2 * BULK_EACH;

/// The whole load. It ends with the value.
pub struct Loads {
    pub parts: Vec<Arc<Part>>,
    /// What each connection to the stack, and from it, has brought.
    taken: [Progress; BULK_EACH],
    sent: Arc<[AtomicU64; BULK_EACH]>,
    damaged: Progress,
    _servers: Vec<Daemon>,
    _own: Serving,
}

impl Loads {
    /// `folder` is for files of its programs.
    pub fn start(stack: &str, folder: &std::path::Path) -> Result<Loads> {
        let taken = [Progress::create(&folder.join(taken(0)))?, Progress::create(&folder.join(taken(1)))?];
        let damaged = Progress::create(&folder.join("damaged"))?;
        let folder_text = folder.to_string_lossy().into_owned();
        let own = Serving::start(peer_on(stack, &["campaign", STACK, &folder_text])?)?;
        let sent = Arc::<[AtomicU64; BULK_EACH]>::default();
        let counts = sent.clone();
        let mut loads = Loads { parts: Vec::new(), taken, sent, damaged, _servers: Vec::new(), _own: own };
        loads.add("bulk from the stack", BULK_EACH, move |part, n| download(part, &counts[n]));
        loads.add("bulk to the stack", BULK_EACH, upload);
        loads.add("requests", 4, |part, _| echo(part, 64, Duration::from_millis(1)));
        loads.add("idle (as ssh)", 8, |part, _| echo(part, 48, Duration::from_millis(250)));
        loads.add("new connections", 0, |part, _| connect(part));
        loads.add("datagrams", 0, |part, _| datagrams(part));
        if let Some(server) = nginx(stack, folder)? {
            loads._servers.push(server);
            loads.add("nginx and curl", 0, |part, _| curl(part));
        }
        if let Some(server) = redis_server(stack, folder)? {
            loads._servers.push(server);
            loads.add("redis and redis-cli", 1, |part, _| redis(part));
        }
        Ok(loads)
    }

    /// `run` gets the number of its connection.
    fn add(
        &mut self,
        name: &'static str,
        connections: usize,
        run: impl Fn(&Part, usize) + Clone + Send + 'static,
    ) {
        let part = Arc::new(Part::new(name, connections as u64));
        for n in 0..connections.max(1) {
            let (part, run) = (part.clone(), run.clone());
            // A thread on a connection that hangs is not joined: it ends with the process.
            std::thread::spawn(move || {
                while part.goes_on() {
                    run(&part, n);
                }
            });
        }
        self.parts.push(part);
    }

    /// What each part achieved so far.
    pub fn progress(&self) -> Vec<u64> {
        let own = |part: &Arc<Part>| match part.name {
            // What was written may never arrive.
            "bulk to the stack" => self.taken.iter().map(Progress::get).sum(),
            "bulk from the stack" => self.sent.iter().map(|sent| sent.load(Relaxed)).sum(),
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

    /// Bytes of each bulk connection so far.
    pub fn bulk(&self) -> [u64; BULK] {
        let (sent, taken) = (&self.sent, &self.taken);
        [sent[0].load(Relaxed), sent[1].load(Relaxed), taken[0].get(), taken[1].get()]
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| part.end());
    }
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

fn download(part: &Part, sent: &AtomicU64) {
    keep(part, SEND, |stream, place| {
        let mut buffer = [0; CHUNK];
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (damaged, came) = content::follow(&buffer[..n], place);
        part.damaged.fetch_add(damaged, Relaxed);
        sent.fetch_add(n as u64, Relaxed);
        Ok(came)
    });
}

fn upload(part: &Part, n: usize) {
    keep(part, TAKE[n], |stream, place| {
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
