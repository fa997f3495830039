//! Many connections to a stack: programs on it that keep and answer them, and processes beside it that keep their other ends.
//!
//! A process has a limited number of descriptors, and a client a limited number of ports for one server: both are spread over
//! as many pairs of processes as it takes, each with a port of its own.

use super::stack::{Serving, host_peer, peer_on};
use anyhow::{Context, Result, ensure};
use rustix::event::epoll;
use rustix::process::{Resource, getrlimit};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

/// Descriptors of a process that are for something else than connections.
const RESERVE: usize = 500;
/// Connections of one client to one server: Linux takes some 28,000 ports for them (`net.ipv4.ip_local_port_range`).
const PORTS: usize = 20_000;
/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Events that are taken at once.
const EVENTS: usize = 64;

/// How many connections each pair of processes has.
fn spread(connections: usize, descriptors: usize) -> Vec<usize> {
    let most = descriptors.saturating_sub(RESERVE).clamp(1, PORTS);
    let pairs = connections.div_ceil(most);
    (0..pairs).map(|n| most.min(connections - n * most)).collect()
}

/// Established connections, each of which can be asked.
pub struct Crowd {
    clients: Vec<Clients>,
    // They end after those who are connected with them.
    _servers: Vec<Serving>,
}

impl Crowd {
    /// Connects with the stack, which has this address, at this port and those that follow.
    pub fn start(stack: &str, address: &str, port: u16, connections: usize) -> Result<Crowd> {
        let limit = getrlimit(Resource::Nofile).maximum.map_or(usize::MAX, |limit| limit as usize);
        ensure!(
            connections + RESERVE <= limit,
            "{connections} connections need as many descriptors in the supervisor, in sockets and in tcp, and a process here has at \
             most {limit} (`ulimit -Hn`)"
        );
        let mut crowd = Crowd { clients: Vec::new(), _servers: Vec::new() };
        for (n, count) in spread(connections, limit).into_iter().enumerate() {
            let place = format!("{address}:{}", port + n as u16);
            crowd._servers.push(Serving::start(peer_on(stack, &["crowd", &place])?)?);
            crowd.clients.push(Clients::start(&place, count)?);
        }
        Ok(crowd)
    }

    /// Sees to it that no connection was lost: each is asked, and answers.
    pub fn ask_all(&mut self) -> Result<()> {
        self.clients.iter_mut().try_for_each(Clients::ask).context("a connection was lost")
    }
}

/// A process that keeps the far ends of connections.
struct Clients {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Clients {
    fn start(place: &str, count: usize) -> Result<Clients> {
        let mut command = host_peer(&["clients", place, &count.to_string()])?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("clients")?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let orders = orders.context("no input")?;
        let answers = BufReader::new(answers.context("no output")?);
        let mut clients = Clients { child, orders, answers };
        clients.hear(CONNECTED).with_context(|| format!("{count} connections to {place}"))?;
        Ok(clients)
    }

    fn ask(&mut self) -> Result<()> {
        writeln!(self.orders, "ask")?;
        self.hear(ANSWERED)
    }

    fn hear(&mut self, word: &str) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(line.trim() == word, "the clients ended");
        Ok(())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CONNECTED: &str = "connected";
const ANSWERED: &str = "answered";

/// The process that keeps the far ends: connects, and asks on all connections at each line of its input.
pub fn keep(address: &str, count: usize) -> io::Result<()> {
    super::raise_file_limit();
    let mut streams = Vec::with_capacity(count);
    for n in 0..count {
        let stream = TcpStream::connect(address);
        streams
            .push(stream.map_err(|e| io::Error::new(e.kind(), format!("connection {n} of {count}: {e}")))?);
    }
    say(CONNECTED)?;
    for line in io::stdin().lines() {
        line?;
        for stream in &mut streams {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"?")?;
        }
        for stream in &mut streams {
            stream.read_exact(&mut [0])?;
        }
        say(ANSWERED)?;
    }
    Ok(())
}

fn say(word: &str) -> io::Result<()> {
    println!("{word}");
    io::stdout().flush()
}

/// The program on the stack: keeps connections, and sends back each byte of each.
pub fn serve(listener: TcpListener) -> io::Result<()> {
    super::raise_file_limit();
    listener.set_nonblocking(true)?;
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&set, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    // By the numbers of their descriptors.
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    loop {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let (ready, _) = epoll::wait(&set, &mut events, None)?;
        for event in ready.iter() {
            match event.data.u64() {
                u64::MAX => accept(&listener, &set, &mut streams)?,
                n => answer(&mut streams[n as usize], &set),
            }
        }
    }
}

/// Takes all connections that wait.
fn accept(
    listener: &TcpListener,
    set: &impl std::os::fd::AsFd,
    streams: &mut Vec<Option<TcpStream>>,
) -> io::Result<()> {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e),
        };
        let n = stream.as_raw_fd() as usize;
        epoll::add(set, &stream, epoll::EventData::new_u64(n as u64), epoll::EventFlags::IN)?;
        if streams.len() <= n {
            streams.resize_with(n + 1, || None);
        }
        streams[n] = Some(stream);
    }
}

fn answer(place: &mut Option<TcpStream>, set: &impl std::os::fd::AsFd) {
    let Some(stream) = place else { return };
    let mut byte = [0];
    if stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_err() {
        let _ = epoll::delete(set, &*stream);
        *place = None;
    }
}

#[cfg(test)]
mod tests;
