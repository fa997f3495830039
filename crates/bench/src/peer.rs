//! The programs at both ends of a measurement: plain sockets of the standard library, so that on a
//! stack they are programs like any other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use eft_base::Random;

use super::crowd;
use super::progress::Progress;
use super::{datagrams, visits};

#[derive(clap::Subcommand)]
pub enum Peer {
    /// Accept connections one after another, read each to its end, and print bytes and seconds
    Sink {
        address: String,
        /// Counts the bytes in this file
        #[arg(long)]
        progress: Option<PathBuf>,
        /// End with an error at the first byte that `source` did not send there
        #[arg(long)]
        check: bool,
    },
    /// Write as fast as possible for some seconds
    Source {
        address: String,
        seconds: f64,
        /// TCP_CONGESTION, if not the default
        #[arg(long)]
        congestion: Option<String>,
    },
    /// Write to each connection as fast as possible, until it is closed
    Flood { address: String },
    /// Connect and read for some seconds; print bytes and seconds
    Drain { address: String, seconds: f64 },
    /// Write as fast as possible for some milliseconds, pause for some, and repeat
    Bursts { address: String, on_ms: u64, off_ms: u64, seconds: f64 },
    /// Send back what arrives, this many bytes at a time
    Echo {
        address: String,
        #[arg(long, default_value_t = REQUEST)]
        bytes: usize,
    },
    /// Keep many connections, and send back each byte of each
    Crowd { address: String },
    /// Keep this many connections to such a program; each line of the input asks on all of them
    Clients { address: String, count: usize },
    /// Answer one request of each connection
    ServeVisits { address: String },
    /// Connect, ask and close, from addresses of this one's network; print visits per second
    Visit { address: String, near: std::net::Ipv4Addr, seconds: f64 },
    /// Print how many datagrams came per second, after each pause
    CountDatagrams { address: String },
    /// Send datagrams of this many bytes, so many in a call
    SendDatagrams { address: String, bytes: usize, batch: usize, seconds: f64 },
    /// The load that `campaign` runs on the stack; it counts in files of the folder
    Campaign { address: String, folder: PathBuf },
    /// Send this many bytes and wait for them; print requests per second, the median and the longest time in microseconds
    Ask {
        address: String,
        connections: usize,
        seconds: f64,
        #[arg(long, default_value_t = REQUEST)]
        bytes: usize,
        /// Requests a second on all connections; as fast as answers come without it
        #[arg(long)]
        rate: Option<u32>,
        /// Counts the answers in this file
        #[arg(long)]
        progress: Option<PathBuf>,
    },
}

/// Bytes of one read or write.
const CHUNK: usize = 256 * 1024;
/// Of what streams consist of.
const CONTENT_SEED: u64 = 7;
const REQUEST: usize = 64;

pub fn run(peer: &Peer) -> Result<()> {
    let done = match peer {
        Peer::Campaign { address, folder } => return super::campaign::server::run(address, folder),
        Peer::Sink { address, progress, check } => sink(address, counter(progress)?, *check),
        Peer::Source { address, seconds, congestion } => source(address, *seconds, congestion.as_deref()),
        Peer::Flood { address } => flood(address),
        Peer::Drain { address, seconds } => drain(address, *seconds),
        Peer::Bursts { address, on_ms, off_ms, seconds } => bursts(address, *on_ms, *off_ms, *seconds),
        Peer::Crowd { address } => listen(address).and_then(crowd::serve),
        Peer::Clients { address, count } => crowd::keep(address, *count),
        Peer::ServeVisits { address } => visits::serve(address),
        Peer::Visit { address, near, seconds } => visits::visit(address, *near, *seconds),
        Peer::CountDatagrams { address } => datagrams::count(address),
        Peer::SendDatagrams { address, bytes, batch, seconds } => {
            datagrams::send(address, *bytes, *batch, *seconds)
        }
        Peer::Echo { address, bytes } => echo(address, *bytes),
        Peer::Ask { address, connections, seconds, bytes, rate, progress } => {
            // Each connection has its share of the rate.
            let pace = rate.map(|rate| Duration::from_secs(*connections as u64) / rate.max(1));
            ask(address, *connections, *seconds, *bytes, pace, counter(progress)?)
        }
    };
    done.context("peer")
}

fn counter(path: &Option<PathBuf>) -> Result<Option<Progress>> {
    path.as_deref().map(Progress::open).transpose()
}

fn listen(address: &str) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    println!("listening");
    std::io::stdout().flush()?;
    Ok(listener)
}

/// What `source` writes, again and again.
fn content() -> Vec<u8> {
    let mut random = Random::new(CONTENT_SEED);
    (0..CHUNK / 8).flat_map(|_| random.next_u64().to_ne_bytes()).collect()
}

/// The first byte of a read at an offset of the stream that `source` did not send there.
fn first_different(content: &[u8], offset: u64, read: &[u8]) -> Option<u64> {
    let start = (offset % content.len() as u64) as usize;
    let expected = content[start..].iter().chain(content);
    read.iter().zip(expected).position(|(a, b)| a != b).map(|at| offset + at as u64)
}

fn sink(address: &str, progress: Option<Progress>, check: bool) -> std::io::Result<()> {
    let listener = listen(address)?;
    let mut buffer = vec![0; CHUNK];
    let content = content();
    loop {
        let (mut stream, _) = listener.accept()?;
        let (mut total, mut start) = (0u64, None);
        loop {
            let n = stream.read(&mut buffer)?;
            let start = start.get_or_insert_with(Instant::now);
            if n == 0 {
                println!("{total} {}", start.elapsed().as_secs_f64());
                std::io::stdout().flush()?;
                break;
            }
            if check && let Some(at) = first_different(&content, total, &buffer[..n]) {
                return Err(std::io::Error::other(format!("byte {at} of the stream is not what was sent")));
            }
            total += n as u64;
            if let Some(progress) = &progress {
                progress.add(n as u64);
            }
        }
    }
}

fn source(address: &str, seconds: f64, congestion: Option<&str>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    if let Some(name) = congestion {
        set_congestion(&stream, name)?;
    }
    let buffer = content();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        stream.write_all(&buffer)?;
    }
    Ok(())
}

fn flood(address: &str) -> std::io::Result<()> {
    let buffer = content();
    for stream in listen(address)?.incoming() {
        let mut stream = stream?;
        while stream.write_all(&buffer).is_ok() {}
    }
    Ok(())
}

fn drain(address: &str, seconds: f64) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let mut buffer = vec![0; CHUNK];
    let mut total = stream.read(&mut buffer)?;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::Error::other("the source ended")),
            n => total += n,
        }
    }
    println!("{total} {}", start.elapsed().as_secs_f64());
    Ok(())
}

fn set_congestion(stream: &TcpStream, name: &str) -> std::io::Result<()> {
    let (fd, value) = (stream.as_raw_fd(), name.as_ptr().cast());
    // SAFETY: a socket of ours, and a name that outlives the call.
    match unsafe {
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, name.len() as libc::socklen_t)
    } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Bursts begin by the clock, so that a slow receiver does not slow their rhythm down.
fn bursts(address: &str, on_ms: u64, off_ms: u64, seconds: f64) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let buffer = vec![7; CHUNK / 4];
    let begin = Instant::now();
    let period = Duration::from_millis((on_ms + off_ms).max(1));
    let mut next = Duration::ZERO;
    while begin.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(next.saturating_sub(begin.elapsed()));
        while begin.elapsed() < next + Duration::from_millis(on_ms) {
            stream.write_all(&buffer)?;
        }
        next += period;
    }
    Ok(())
}

fn echo(address: &str, bytes: usize) -> std::io::Result<()> {
    let listener = listen(address)?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        stream.set_nodelay(true)?;
        std::thread::spawn(move || {
            let mut buffer = vec![0; bytes];
            while stream.read_exact(&mut buffer).and_then(|()| stream.write_all(&buffer)).is_ok() {}
        });
    }
    Ok(())
}

fn ask(
    address: &str,
    connections: usize,
    seconds: f64,
    bytes: usize,
    pace: Option<Duration>,
    progress: Option<Progress>,
) -> std::io::Result<()> {
    let progress = Arc::new(progress);
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(seconds);
    let threads: Vec<_> = (0..connections)
        .map(|i| {
            let (address, progress) = (address.to_string(), progress.clone());
            std::thread::spawn(move || -> std::io::Result<Vec<f64>> {
                let mut stream = TcpStream::connect(&address)?;
                stream.set_nodelay(true)?;
                let mut buffer = vec![1; bytes];
                let mut times = Vec::new();
                // Spread over the pace, or all would send at once.
                let mut due = begin + pace.unwrap_or_default() * i as u32 / connections as u32;
                while Instant::now() < end {
                    if let Some(pace) = pace {
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        due += pace;
                    }
                    let start = Instant::now();
                    stream.write_all(&buffer)?;
                    stream.read_exact(&mut buffer)?;
                    times.push(start.elapsed().as_secs_f64() * 1e6);
                    if let Some(progress) = progress.as_ref() {
                        progress.add(1);
                    }
                }
                Ok(times)
            })
        })
        .collect();
    let mut all = Vec::new();
    for t in threads {
        all.extend(t.join().map_err(|_| std::io::Error::other("a thread died"))??);
    }
    let rate = all.len() as f64 / seconds;
    let longest = all.iter().copied().fold(0.0, f64::max);
    println!("{rate} {} {longest}", crate::samples::Samples::new(all).median);
    Ok(())
}

#[cfg(test)]
mod tests;
