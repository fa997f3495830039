//! `smoltcp-peer DEVICE ADDRESS/PREFIX` serves on smoltcp what `eft bench peer` serves on eft: an echo, a sink and a source. It
//! is what `eft bench others` measures eft beside.
//!
//! It makes the TAP device, prints `listening`, and then a line of bytes and seconds for each connection to the sink.

use anyhow::{Context, Result, anyhow, bail};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};
use std::io::Write;
use std::os::fd::AsRawFd;

const ECHO: u16 = 7;
const SINK: u16 = 5201;
const SOURCE: u16 = 5202;
/// A socket takes one connection, so there are as many as connect at once.
const ECHOES: usize = 64;
const REQUEST: usize = 64;
const ECHO_BUFFER: usize = 64 << 10;
const BULK_BUFFER: usize = 4 << 20;

/// What is done with a socket's connections, one after another.
enum Service {
    Echo,
    /// Bytes so far, and when the first came.
    Sink(Option<(usize, Instant)>),
    Source,
}

struct Served {
    socket: SocketHandle,
    port: u16,
    service: Service,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, address] = &arguments[..] else { bail!("usage: smoltcp-peer DEVICE ADDRESS/PREFIX") };
    let address: IpCidr = address.parse().map_err(|()| anyhow!("{address} is no address with a prefix"))?;
    let mut device = TunTapInterface::new(device, Medium::Ethernet).context("cannot make the device")?;
    let fd = device.as_raw_fd();
    let mut config = Config::new(EthernetAddress([2, 0, 0, 0, 0, 7]).into());
    config.random_seed = std::process::id().into();
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|all| all.extend([address]));
    let mut sockets = SocketSet::new(Vec::new());
    let mut add = |port, service, buffer| {
        let room = || SocketBuffer::new(vec![0; buffer]);
        let mut socket = Socket::new(room(), room());
        socket.set_nagle_enabled(false);
        socket.set_congestion_control(CongestionControl::Cubic);
        Served { socket: sockets.add(socket), port, service }
    };
    let mut served: Vec<Served> = (0..ECHOES).map(|_| add(ECHO, Service::Echo, ECHO_BUFFER)).collect();
    served.push(add(SINK, Service::Sink(None), BULK_BUFFER));
    served.push(add(SOURCE, Service::Source, BULK_BUFFER));
    say("listening")?;
    loop {
        let now = Instant::now();
        interface.poll(now, &mut device, &mut sockets);
        let mut progress = false;
        for one in &mut served {
            progress |= one.serve(now, sockets.get_mut(one.socket))?;
        }
        if !progress {
            wait(fd, interface.poll_delay(Instant::now(), &sockets))?;
        }
    }
}

fn say(line: &str) -> Result<()> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

impl Served {
    /// Whether bytes moved, so that there may be something to send.
    fn serve(&mut self, now: Instant, socket: &mut Socket) -> Result<bool> {
        if !socket.is_open() {
            socket.listen(self.port).map_err(|why| anyhow!("cannot listen: {why}"))?;
        }
        let moved = match &mut self.service {
            Service::Echo => {
                let mut any = false;
                while socket.recv_queue() >= REQUEST && socket.send_capacity() - socket.send_queue() >= REQUEST {
                    let mut request = [0; REQUEST];
                    let read = socket.recv_slice(&mut request).map_err(|why| anyhow!("{why}"))?;
                    socket.send_slice(&request[..read]).map_err(|why| anyhow!("{why}"))?;
                    any = true;
                }
                any
            }
            Service::Sink(counted) => {
                let mut any = 0;
                while socket.can_recv() {
                    any += socket.recv(|bytes| (bytes.len(), bytes.len())).map_err(|why| anyhow!("{why}"))?;
                }
                if any > 0 {
                    counted.get_or_insert((0, now)).0 += any;
                }
                if let Some((bytes, since)) = *counted
                    && !socket.may_recv()
                {
                    say(&format!("{bytes} {}", (now - since).total_micros() as f64 / 1e6))?;
                    *counted = None;
                }
                any > 0
            }
            Service::Source => {
                let mut any = false;
                while socket.can_send() {
                    any |= socket.send(|room| (room.len(), room.len())).map_err(|why| anyhow!("{why}"))? > 0;
                }
                any
            }
        };
        // The peer has ended, and so does this side.
        if socket.may_send() && !socket.may_recv() {
            socket.close();
        }
        Ok(moved)
    }
}
