//! `eft bench visits`: connect, one request and its answer, close; from many addresses, beside the kernel.

use super::figure::{Aim, Figure};
use super::report::print;
use super::side::{Comparison, Setting, Side, at_far_end, chosen};
use super::stack::{Serving, host_peer};
use super::stolen::Stolen;
use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Beside the kernel, in the order of the settings.
const AIMS: [f64; 3] = [0.7, 0.8, 1.0];
const PORT: u16 = 7007;
/// Addresses from which the clients come, and how many clients there are at a time.
const SOURCES: u8 = 32;
const FIRST_SOURCE: u8 = 100;
const CLIENTS: usize = 8;
/// Threads that serve.
const SERVERS: usize = 4;
const REQUEST: usize = 64;

pub fn run(arguments: &Comparison) -> Result<()> {
    let stolen = Stolen::begin(None);
    let settings = chosen(&arguments.setting);
    let mut sides = Vec::new();
    for (number, _) in &settings {
        sides.push(Side::of_stack(*number, Setting::ALL[*number].topology, &[])?);
    }
    sides.push(Side::of_kernels()?);
    let mut serving = Vec::new();
    for side in &sides {
        side.add_near_addresses(FIRST_SOURCE, SOURCES)?;
        let address = format!("{}:{PORT}", side.far);
        serving.push(Serving::start(at_far_end(side, &["serve-visits", &address])?)?);
    }
    let mut rates = vec![Vec::new(); sides.len()];
    for _ in 0..arguments.rounds {
        for (side, rates) in sides.iter().zip(&mut rates) {
            let address = format!("{}:{PORT}", side.far);
            let said =
                host_peer(&["visit", &address, &side.near, &arguments.seconds.to_string()])?.output()?;
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
            rates
                .push(text.trim().parse().with_context(|| format!("a client failed: {}", complaint.trim()))?);
        }
    }
    let kernel = rates.pop().unwrap_or_default();
    let figures: Vec<Figure> = settings
        .iter()
        .zip(rates)
        .map(|((number, name), rates)| {
            Figure::new(format!("{name}: connect, request, close"), "1/s", rates)
                .beside("two kernels over veth", kernel.clone())
                .aim(Aim::AtLeast(AIMS[*number]))
        })
        .collect();
    print("visits", &figures, &[stolen.describe()], arguments.json)
}

/// Serves one request of each connection.
pub fn serve(address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address)?;
    println!("listening");
    std::io::stdout().flush()?;
    std::thread::scope(|scope| {
        for _ in 0..SERVERS {
            scope.spawn(|| {
                let mut buffer = [0; REQUEST];
                for mut stream in listener.incoming().flatten() {
                    let served = stream.read_exact(&mut buffer).and_then(|()| stream.write_all(&buffer));
                    // The client closes first, so that this side has no TIME-WAIT.
                    let _ = served.and_then(|()| stream.read(&mut buffer));
                }
            });
        }
    });
    Ok(())
}

/// Visits as often as possible, from the addresses of `near`'s network, and prints visits a second.
pub fn visit(address: &str, near: Ipv4Addr, seconds: f64) -> std::io::Result<()> {
    let to: std::net::SocketAddrV4 = address.parse().map_err(std::io::Error::other)?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let client = |number: usize| -> std::io::Result<u64> {
        let (mut visits, mut buffer) = (0, [1; REQUEST]);
        while Instant::now() < end {
            let [a, b, c, _] = near.octets();
            let source = (number as u64 + visits * CLIENTS as u64) % u64::from(SOURCES);
            let from = Ipv4Addr::new(a, b, c, FIRST_SOURCE + source as u8);
            let mut stream = connect(from, to)?;
            stream.write_all(&buffer)?;
            stream.read_exact(&mut buffer)?;
            visits += 1;
        }
        Ok(visits)
    };
    let visits = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().map_err(|_| std::io::Error::other("a thread died")).and_then(|visits| visits)
        });
        joined.sum::<std::io::Result<u64>>()
    })?;
    println!("{}", visits as f64 / seconds);
    Ok(())
}

fn connect(from: Ipv4Addr, to: SocketAddrV4) -> std::io::Result<TcpStream> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))?;
    rustix::net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}
