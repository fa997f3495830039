//! Applications: they act only when they are notified, so a missing wake-up shows.

use crate::world::{Notice, Packet, World};
use eft_base::{SocketId, WireAddress};
use eft_channel::socket::{Opt, SignatureKey};
use eft_component::transport::Effect;
use eft_harness::{DOMAIN, Stream, take_accepted};
use eft_messages::sockets::SocketsToTransport;
use std::collections::VecDeque;

pub use eft_harness::Plan;

#[derive(Default)]
pub struct App {
    pub listener: Option<SocketId>,
    pub streams: Vec<Stream>,
    pub accept_plan: Option<Plan>,
    pub accepted: usize,
    intents: VecDeque<Intent>,
    backlog: u32,
    /// Errors of requests.
    pub failures: Vec<i32>,
    /// Does not accept.
    pub idle: bool,
    /// Accepted streams do not check the bytes that they read.
    pub careless: bool,
    pub effects: Vec<Effect>,
    /// Connects from this port and the following ones, with the first bytes in the ring (MSG_FASTOPEN).
    pub early_from: Option<u16>,
    /// Set on a socket before it connects.
    pub options: Vec<(Opt, u32)>,
    /// Set on a socket before it connects or listens.
    pub keys: Vec<SignatureKey>,
}

#[derive(Clone, Copy, Debug)]
enum Intent {
    Listen(u16, u32),
    Connect(WireAddress, u16, Plan),
}

impl App {
    pub fn listen(world: &mut World, side: usize, port: u16, backlog: u32, plan: Plan) {
        world.sides[side].app.accept_plan = Some(plan);
        Self::open(world, side, Intent::Listen(port, backlog));
    }

    pub fn connect(world: &mut World, side: usize, port: u16, plan: Plan) {
        let address = world.sides[1 - side].address;
        Self::open(world, side, Intent::Connect(address, port, plan));
    }

    fn open(world: &mut World, side: usize, intent: Intent) {
        world.sides[side].app.intents.push_back(intent);
        world.request(side, |request| SocketsToTransport::Open {
            request,
            socket: SocketId { domain: DOMAIN, slot: 0 },
        });
    }

    /// Closes a stream's (or the listener's) descriptor.
    pub fn close(world: &mut World, side: usize, socket: SocketId) {
        let app = &mut world.sides[side].app;
        if let Some(s) = app.streams.iter_mut().find(|s| s.socket == socket && !s.closed) {
            s.closed = true;
        }
        if app.listener == Some(socket) {
            app.listener = None;
        }
        let incarnation = world.sides[side].incarnation(socket);
        world.request(side, |request| SocketsToTransport::Close { request, socket, incarnation });
    }

    /// Writes what its plan says, and closes before tcp has looked; in the same turn a packet may come.
    pub fn write_and_close(world: &mut World, side: usize, socket: SocketId, late: Option<&Packet>) {
        let (seed, page) = (world.seed, world.sides[side].page(socket));
        let stream = Self::stream(world, side, socket).expect("a stream");
        stream.progress(&page, seed);
        stream.closed = true;
        let incarnation = world.sides[side].incarnation(socket);
        world.at(side).ask(|request| SocketsToTransport::Close { request, socket, incarnation });
        if let Some(packet) = late {
            world.deliver(side, packet);
        }
        world.turn(side);
    }

    pub fn notice(world: &mut World, side: usize, notice: Notice) {
        match notice {
            Notice::Reply(asked, errno, socket, taken) => {
                Self::answered(world, side, asked, (errno, taken), socket)
            }
            Notice::Effect(effect) => Self::affected(world, side, effect),
        }
    }

    fn answered(
        world: &mut World,
        side: usize,
        asked: SocketsToTransport,
        (errno, taken): (i32, u32),
        socket: SocketId,
    ) {
        let withdrawn = errno == eft_base::errno::EINPROGRESS;
        if errno != 0 && !withdrawn {
            world.sides[side].app.failures.push(errno);
        }
        match asked {
            SocketsToTransport::Open { .. } => {
                let intent = world.sides[side].app.intents.pop_front();
                if errno == 0
                    && let Some(intent) = intent
                {
                    Self::opened(world, side, socket, intent);
                }
            }
            SocketsToTransport::Bind { socket, .. }
                if errno == 0 && Self::stream(world, side, socket).is_none() =>
            {
                let backlog = world.sides[side].app.backlog;
                let incarnation = world.sides[side].incarnation(socket);
                let listen = |request| SocketsToTransport::Listen { request, socket, incarnation, backlog };
                world.request(side, listen);
            }
            SocketsToTransport::Listen { socket, .. } if errno == 0 => {
                world.sides[side].app.listener = Some(socket);
            }
            SocketsToTransport::Attached { socket, .. } if errno == 0 => Self::progress(world, side, socket),
            SocketsToTransport::Connect { socket, .. } if withdrawn => {
                let page = world.sides[side].page(socket);
                Self::stream(world, side, socket).expect("it connects").withdraw(&page);
                world.dirty(side, socket);
                Self::progress(world, side, socket);
            }
            SocketsToTransport::Connect { socket, .. } => {
                let page = world.sides[side].page(socket);
                if let Some(s) = Self::stream(world, side, socket).filter(|_| errno == 0) {
                    s.taken(&page, taken.into());
                    world.dirty(side, socket);
                }
                if let Some(s) = Self::stream(world, side, socket) {
                    s.error = errno;
                }
                Self::progress(world, side, socket);
            }
            _ => {}
        }
    }

    fn opened(world: &mut World, side: usize, socket: SocketId, intent: Intent) {
        let incarnation = world.sides[side].incarnation(socket);
        let page = world.sides[side].page(socket);
        for (number, key) in world.sides[side].app.keys.iter().enumerate() {
            page.write_signature_key(number, key);
            page.tell_signature_keys(number + 1);
        }
        match intent {
            Intent::Listen(port, backlog) => {
                world.sides[side].app.backlog = backlog;
                world.request(side, |request| SocketsToTransport::Bind {
                    request,
                    socket,
                    incarnation,
                    address: std::net::IpAddr::from([0u8, 0, 0, 0]).into(),
                    port,
                    reuse: 1,
                });
            }
            Intent::Connect(address, port, plan) => {
                page.set_option(Opt::NoDelay, plan.no_delay as u32);
                for (option, value) in &world.sides[side].app.options {
                    page.set_option(*option, *value);
                }
                // A connecting writer waits for the plug to be pulled.
                page.write_plug().set();
                let mut stream = Stream::new(socket, plan);
                if let Some(from) = &mut world.sides[side].app.early_from {
                    let local = *from;
                    *from += 1;
                    stream.write_early(&page, local, port);
                    world.sides[side].app.streams.push(stream);
                    world.request(side, |request| SocketsToTransport::Bind {
                        request,
                        socket,
                        incarnation,
                        address: std::net::IpAddr::from([0u8, 0, 0, 0]).into(),
                        port: local,
                        reuse: 0,
                    });
                } else {
                    world.sides[side].app.streams.push(stream);
                }
                let connect =
                    |request| SocketsToTransport::Connect { request, socket, incarnation, address, port };
                world.request(side, connect);
            }
        }
    }

    fn affected(world: &mut World, side: usize, effect: Effect) {
        world.sides[side].app.effects.push(effect);
        match effect {
            Effect::Readable(socket) => {
                if world.sides[side].app.listener == Some(socket) {
                    Self::accept(world, side);
                } else {
                    Self::progress(world, side, socket);
                }
            }
            Effect::Writable(socket) => {
                world.sides[side].page(socket).write_plug().clear();
                Self::progress(world, side, socket);
            }
            Effect::Urgent(_) => {}
            Effect::EndOfStream(socket) => Self::progress(world, side, socket),
            Effect::HangUp(socket) => {
                if let Some(s) = Self::stream(world, side, socket) {
                    s.hung_up = true;
                }
                Self::progress(world, side, socket);
            }
        }
    }

    pub fn stream(world: &mut World, side: usize, socket: SocketId) -> Option<&mut Stream> {
        let streams = &mut world.sides[side].app.streams;
        streams.iter_mut().find(|s| s.socket == socket && !s.closed)
    }

    /// Takes every connection from the listener's ring.
    pub fn accept(world: &mut World, side: usize) {
        let Some(listener) = world.sides[side].app.listener else {
            return;
        };
        if world.sides[side].app.idle {
            return;
        }
        let page = world.sides[side].page(listener);
        for record in take_accepted(&page, usize::MAX) {
            let socket = SocketId { domain: DOMAIN, slot: record.slot };
            let app = &mut world.sides[side].app;
            let plan = app.accept_plan.unwrap();
            app.accepted += 1;
            let mut stream = Stream::new(socket, plan);
            stream.careless = app.careless;
            app.streams.push(stream);
            let incarnation = record.incarnation;
            assert_eq!(incarnation, world.sides[side].page(socket).incarnation());
            world.request(side, |request| SocketsToTransport::Attached { request, socket, incarnation });
        }
    }

    /// Reads and writes what is possible, as a program woken for this socket does.
    pub fn progress(world: &mut World, side: usize, socket: SocketId) {
        let seed = world.seed;
        let page = world.sides[side].page(socket);
        let changed = Self::stream(world, side, socket).is_some_and(|s| s.progress(&page, seed));
        if changed {
            world.dirty(side, socket);
        }
    }

    pub fn all_done(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(Stream::is_done)
    }
}
