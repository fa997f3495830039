//! Lives of servers that are lived again.

use crate::makes::{Engine, Head, arena_len, filter, ip, refused, tcp, udp};
use crate::recorder::Make;
use crate::recording::{Input, LastCall, Recorded, Recording};
use crate::replay::last::repeat_alone;
use crate::replay::{Conductor, Failure, replay};
use eft_arena::docket;
use eft_channel::Segment;
use eft_channel::access::AccessObserver;
use eft_component::Component;
use eft_filter::FilterConfig;
use eft_ip::IpConfig;
use eft_transport::tcp::{self, TcpConfig};
use eft_transport::udp::{self, UdpConfig};
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

/// One life of a server: what it was made of, and all of its inputs.
pub struct Life {
    pub head: Head,
    pub recording: Rc<RefCell<Recording>>,
}

/// What is done with an engine that was made again.
trait Player {
    /// What ran when the arena's owner died is to run once more, so it is not blamed.
    const ACQUITS: bool;

    fn play<C: Component<Event: Recorded>>(self, engine: C, make: &Make<C>) -> Result<(), Failure>
    where
        C::Out: Debug;
}

/// Makes all calls.
struct Whole<'a, S> {
    recording: &'a Recording,
    segments: S,
    conductor: Conductor<'a>,
}

impl<S: Fn(usize) -> Option<Segment>> Player for Whole<'_, S> {
    const ACQUITS: bool = false;

    fn play<C: Component<Event: Recorded>>(self, engine: C, make: &Make<C>) -> Result<(), Failure>
    where
        C::Out: Debug,
    {
        replay(self.recording, engine, make, self.segments, self.conductor)
    }
}

/// Makes the last call alone.
struct Alone<'a, S> {
    last: &'a LastCall,
    segments: S,
    observer: Option<Arc<dyn AccessObserver>>,
    conductor: Conductor<'a>,
}

impl<S: Fn(usize) -> Option<Segment>> Player for Alone<'_, S> {
    const ACQUITS: bool = true;

    fn play<C: Component<Event: Recorded>>(self, engine: C, make: &Make<C>) -> Result<(), Failure>
    where
        C::Out: Debug,
    {
        repeat_alone(self.last, engine, make, self.segments, self.observer, self.conductor)
    }
}

impl Life {
    /// Lives `recording` (this life's, perhaps changed) again.
    pub fn again(&self, recording: &Recording) -> Result<(), Failure> {
        self.again_in(recording, |len| Some(Segment::heap(len)))
    }

    /// As [`Life::again`], in memory of the caller's.
    pub fn again_in(
        &self,
        recording: &Recording,
        segments: impl Fn(usize) -> Option<Segment>,
    ) -> Result<(), Failure> {
        self.conducted(recording, segments, &mut |_, call| call())
    }

    /// As [`Life::again_in`], each call when the conductor makes it.
    pub fn conducted(
        &self,
        recording: &Recording,
        segments: impl Fn(usize) -> Option<Segment>,
        conductor: Conductor,
    ) -> Result<(), Failure> {
        play(&self.head, Whole { recording, segments, conductor })
    }

    /// Makes the call in which the server died after its recording was full, with a successor that begins with the arena in
    /// which it died. It must die, too. An observer may watch the programs' pages.
    pub fn last_call(
        &self,
        last: &LastCall,
        segments: impl Fn(usize) -> Option<Segment>,
        observer: Option<Arc<dyn AccessObserver>>,
        conductor: Conductor,
    ) -> Result<(), Failure> {
        let head = Head { arena: last.arena.clone(), ..self.head.clone() };
        play(&head, Alone { last, segments, observer, conductor })
    }

    /// What ran in that call, for people.
    pub fn last_input(&self, last: &LastCall) -> String {
        let call = match &last.call.input {
            Input::Message(peer, _) => format!("a message of {peer}"),
            Input::Event(_) => "an event".into(),
            Input::Poll(_) => "a poll".into(),
            Input::Expire => "a deadline".into(),
            Input::Reborn(peer) => format!("the rebirth of {peer}"),
            Input::Flush => "the end of a turn".into(),
            Input::Commit => "a commit".into(),
        };
        match self.running(last) {
            Some(running) => format!("{call}: {running}"),
            None => call,
        }
    }

    fn running(&self, last: &LastCall) -> Option<String> {
        let head = Head { arena: last.arena.clone(), ..self.head.clone() };
        let arena = head.arena(0).ok()?;
        match self.head.engine {
            Engine::Tcp { .. } => tcp::running_input(&arena),
            Engine::Udp { .. } => udp::running_input(&arena),
            Engine::Filter { .. } => eft_filter::running_input(&arena),
            Engine::Ip { .. } => eft_ip::running_input(&arena),
        }
    }
}

/// The arena with which a player's engine begins.
fn begin<P: Player>(head: &Head, len: usize) -> Result<Segment, Failure> {
    let arena = head.arena(len)?;
    if P::ACQUITS {
        docket::acquit(&arena);
    }
    Ok(arena)
}

/// Makes the engine of a head again.
fn play<P: Player>(head: &Head, player: P) -> Result<(), Failure> {
    match head.engine {
        Engine::Ip { with_filter, seed } => {
            let [frames, packets] = head.pools()?;
            let docket = begin::<P>(head, eft_ip::DOCKET_LEN)?;
            let (ip, make) = ip(docket, frames, packets, IpConfig { with_filter, seed }, Default::default());
            player.play(ip, &make)
        }
        Engine::Filter { states, seed } => {
            let config = FilterConfig { states, seed };
            let arena = begin::<P>(head, arena_len(states, || eft_filter::arena_len(&config))?)?;
            let (filter, make) = filter(arena, config, Default::default());
            player.play(filter, &make)
        }
        Engine::Tcp { connections, sockets_per_domain, listeners_per_domain, seed, slots } => {
            let config = TcpConfig { connections, sockets_per_domain, listeners_per_domain, seed, slots };
            let arena = begin::<P>(head, arena_len(connections, || tcp::arena_len(&config))?)?;
            let [headers] = head.pools()?;
            let (tcp, make) = tcp(arena, headers, config, Default::default()).map_err(refused)?;
            player.play(tcp, &make)
        }
        Engine::Udp { sockets, sockets_per_domain, seed, slots } => {
            let config = UdpConfig { sockets, sockets_per_domain, seed, slots };
            let arena = begin::<P>(head, arena_len(sockets, || udp::arena_len(&config))?)?;
            let [headers] = head.pools()?;
            let (udp, make) = udp(arena, headers, config, Default::default()).map_err(refused)?;
            player.play(udp, &make)
        }
    }
}
