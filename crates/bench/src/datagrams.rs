//! `eft bench datagrams`: UDP at full speed, short and long, without and with segmentation offload, beside the kernel.

use super::figure::{Aim, Figure};
use super::report::print;
use super::side::{Comparison, Setting, Side, at_far_end, chosen};
use super::stack::{Serving, host_peer};
use super::stolen::Stolen;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Bytes of a datagram, and how many one call sends.
const LOADS: [(&str, usize, usize); 4] =
    [("64 B", 64, 1), ("1400 B", 1400, 1), ("64 B, GSO", 64, 32), ("1400 B, GSO", 1400, 32)];
/// Beside the kernel, in the order of the settings.
const AIMS: [f64; 3] = [0.7, 0.8, 1.0];
const PORT: u16 = 7008;
/// A receiver to which nothing comes for this long has received all.
const SILENCE: Duration = Duration::from_millis(200);

pub fn run(arguments: &Comparison) -> Result<()> {
    let stolen = Stolen::begin(None);
    let settings = chosen(&arguments.setting);
    let mut sides = Vec::new();
    for (number, _) in &settings {
        sides.push(Side::of_stack(*number, Setting::ALL[*number].topology, &[])?);
    }
    sides.push(Side::of_kernels()?);
    // Receivers beyond the wire, and on this side of it.
    let mut receivers = Vec::new();
    for side in &sides {
        let [beyond, here] = [&side.far, &side.near].map(|address| format!("{address}:{PORT}"));
        receivers.push([
            Serving::start(at_far_end(side, &["count-datagrams", &beyond])?)?,
            Serving::start(host_peer(&["count-datagrams", &here])?)?,
        ]);
    }
    let mut figures = Vec::new();
    for (name, bytes, batch) in LOADS {
        for (way, direction) in ["in", "out"].into_iter().enumerate() {
            let mut rates = vec![Vec::new(); sides.len()];
            for _ in 0..arguments.rounds {
                for ((side, receivers), rates) in sides.iter().zip(&mut receivers).zip(&mut rates) {
                    let load = [bytes.to_string(), batch.to_string(), arguments.seconds.to_string()];
                    let to = format!("{}:{PORT}", if way == 0 { &side.far } else { &side.near });
                    let [a, b, c] = &load;
                    let all = ["send-datagrams", &to, a, b, c];
                    let mut sender = if way == 0 { host_peer(&all)? } else { at_far_end(side, &all)? };
                    if !sender.status()?.success() {
                        bail!("a sender failed");
                    }
                    let line = receivers[way].line()?;
                    rates.push(line.parse().with_context(|| format!("a receiver said `{line}`"))?);
                }
            }
            let kernel = rates.pop().unwrap_or_default();
            for ((number, setting), rates) in settings.iter().zip(rates) {
                figures.push(
                    Figure::new(format!("{setting}: {name}, {direction}"), "1/s", rates)
                        .beside("two kernels over veth", kernel.clone())
                        .aim(Aim::AtLeast(AIMS[*number])),
                );
            }
        }
    }
    print("datagrams", &figures, &[stolen.describe()], arguments.json)
}

/// Counts what arrives. After each pause prints how many datagrams came a second.
pub fn count(address: &str) -> std::io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    println!("listening");
    std::io::stdout().flush()?;
    let mut buffer = vec![0; 65536];
    loop {
        socket.set_read_timeout(None)?;
        socket.recv(&mut buffer)?;
        let (begin, mut last, mut received) = (Instant::now(), Instant::now(), 0u64);
        socket.set_read_timeout(Some(SILENCE))?;
        while socket.recv(&mut buffer).is_ok() {
            received += 1;
            last = Instant::now();
        }
        println!("{}", received as f64 / (last - begin).as_secs_f64().max(1e-3));
        std::io::stdout().flush()?;
    }
}

/// Sends datagrams of `bytes`, `batch` in a call.
pub fn send(address: &str, bytes: usize, batch: usize, seconds: f64) -> std::io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    if batch > 1 {
        segment(&socket, bytes as libc::c_int)?;
    }
    let buffer = vec![7; bytes * batch];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        match socket.send(&buffer) {
            Ok(_) => {}
            // Nobody had listened yet, or the device was full: as UDP does.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNREFUSED | libc::ENOBUFS)) => {}
            Err(error) => return Err(error),
        }
    }
    // One that comes after the crowd, so that the receiver counts even if all others were lost.
    std::thread::sleep(SILENCE / 10);
    let _ = socket.send(&buffer[..bytes]);
    Ok(())
}

/// Each send is cut into datagrams of so many bytes (UDP_SEGMENT).
fn segment(socket: &UdpSocket, bytes: libc::c_int) -> std::io::Result<()> {
    // SAFETY: a socket of ours, and a number that outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
