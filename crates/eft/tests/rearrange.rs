//! The whole stack is put on one core and spread again, over and over, while bytes go round through it: nothing may be
//! lost, nothing altered, and TCP must not take it for congestion.
//!
//! Live, as root, on a machine with two CPUs. 30 rounds; `EFT_REARRANGE_ROUNDS=1000` for the long run. Retransmissions
//! of both ends are counted and printed.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use eft_base::Random;
use support::{Stack, build_shim, cpus, eft, wait_for};

const NET: u8 = 7;
const STACK: &str = "10.93.7.2";
const PORT: u16 = 7300;
const CHUNK: usize = 64 << 10;

/// On the stack: sends everything back. Runs in this program again, started through `eft run`.
#[test]
fn echo_on_the_stack() {
    if std::env::var_os("EFT_REARRANGE_ECHO").is_none() {
        return;
    }
    let listener = TcpListener::bind((STACK, PORT)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            n => stream.write_all(&buffer[..n]).unwrap(),
        }
    }
}

/// The bytes that go round: any part can be made from its place alone.
fn fill(buffer: &mut [u8], place: u64) {
    for (i, byte) in buffer.iter_mut().enumerate() {
        let at = place + i as u64;
        *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (at >> 16) as u8;
    }
}

/// What the kernel of the far end says of its retransmissions.
fn far_retransmissions(stream: &TcpStream) -> u32 {
    // SAFETY: all-zero is a valid tcp_info; the kernel writes at most `len` bytes of it.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
        let to = (&raw mut info).cast();
        assert_eq!(libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut len), 0);
        info.tcpi_total_retrans
    }
}

/// The far end: sends until it is told to stop, and checks all that comes back.
struct Round {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
    checked: Arc<AtomicU64>,
    writer: std::thread::JoinHandle<u64>,
    reader: std::thread::JoinHandle<u64>,
}

impl Round {
    fn start(stream: TcpStream) -> Round {
        let (stop, checked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut out, mut back) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let (stopped, progress) = (stop.clone(), checked.clone());
        let writer = std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            let mut sent = 0;
            while !stopped.load(Ordering::Relaxed) {
                fill(&mut buffer, sent);
                out.write_all(&buffer).unwrap();
                sent += CHUNK as u64;
            }
            out.shutdown(Shutdown::Write).unwrap();
            sent
        });
        let reader = std::thread::spawn(move || {
            let (mut buffer, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
            let mut place = 0;
            loop {
                let n = back.read(&mut buffer).unwrap();
                if n == 0 {
                    return place;
                }
                fill(&mut expected[..n], place);
                assert!(buffer[..n] == expected[..n], "bytes differ after {place}");
                place += n as u64;
                progress.store(place, Ordering::Relaxed);
            }
        });
        Round { stream, stop, checked, writer, reader }
    }

    /// Waits until bytes have come back since: the load goes on under this arrangement, too.
    fn flows(&self, bytes: u64) {
        let begin = self.checked.load(Ordering::Relaxed);
        // A hang must fail even on a slow machine: a minute without a byte is a hang.
        let mut last = (begin, Instant::now());
        while last.0 < begin + bytes {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.checked.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
            assert!(last.1.elapsed() < Duration::from_secs(60), "the stack stands still after {now} bytes");
        }
    }

    /// Bytes that went round, and what the far end had to send twice.
    fn end(self) -> (u64, u32) {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.writer.join().unwrap();
        let received = self.reader.join().unwrap();
        assert_eq!(sent, received, "bytes are missing");
        (received, far_retransmissions(&self.stream))
    }
}

fn connect() -> TcpStream {
    wait_for("the echo", || TcpStream::connect((STACK, PORT)).ok())
}

#[test]
fn consolidating_and_spreading_loses_nothing() {
    let Some([a, b]) = cpus() else { return };
    build_shim();
    let rounds: usize = std::env::var("EFT_REARRANGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let seed = std::env::var("EFT_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_260_601);
    println!("seed {seed}, {rounds} rounds");
    let mut random = Random::new(seed);
    let stack = Stack::start("rearrange", NET, None);
    let mut echo = Command::new(eft())
        .args(["run", "--name", &stack.name, "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "echo_on_the_stack"])
        .env("EFT_REARRANGE_ECHO", "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let round = Round::start(connect());
    let before = stack.json(&["stat"])["tcp"].clone();
    let mut components = stack.components();
    for i in 0..rounds {
        // On one core, in any order of the moves.
        let core = if random.below(2) == 0 { a } else { b };
        shuffle(&mut components, &mut random);
        components.iter().for_each(|c| stack.place(c, core, false));
        round.flows(random.below(4) << 20);
        // Spread, in any way; a component that wants a core to itself gets it until another one comes.
        shuffle(&mut components, &mut random);
        for c in &components {
            let cpu = if random.below(2) == 0 { a } else { b };
            stack.place(c, cpu, random.below(2) == 0);
        }
        if i % 4 == 0 {
            let alone = components[0].clone();
            components[1..].iter().for_each(|c| stack.place(c, a, true));
            stack.place(&alone, b, true);
        }
        round.flows(random.below(4) << 20);
    }
    let after = stack.json(&["stat"])["tcp"].clone();
    let (bytes, far) = round.end();
    assert!(echo.wait().unwrap().success(), "the echo failed");
    let grew = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    let segments = grew("sent_segments");
    println!(
        "{rounds} rounds, {} moves, {} MB there and back; ours: {segments} segments, {} retransmitted, {} timeouts, \
         {} fast recoveries; far end: {far} retransmitted",
        rounds * components.len() * 2,
        bytes >> 20,
        grew("retransmitted_segments"),
        grew("retransmit_timeouts"),
        grew("fast_recoveries"),
    );
    // A component that is late is not a lost segment. One in a thousand is room for a machine that stalls by itself.
    let allowed = segments / 1000 + 1;
    assert!(grew("retransmitted_segments") <= allowed, "rearranging was taken for loss");
    assert!(u64::from(far) <= allowed, "the far end took rearranging for loss");
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i as u64 + 1) as usize);
    }
}
