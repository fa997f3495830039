//! What is fuzzed.

mod aml;
mod arenas;
mod descriptors;
mod filter;
mod frames;
mod ip_bench;
mod learning;
mod lines;
mod nic;
mod operators;
mod packets;
mod pair;
mod queues;
mod recordings;
mod requests;
mod segments;
mod texts;
mod transport_bench;

use crate::source::Source;

/// A set-up that takes inputs. It panics if the code under test does, or breaks a promise.
pub trait Target {
    /// Makes one input and feeds it.
    fn feed(&mut self, source: &mut Source);

    /// Checks what must hold at the end of an episode.
    fn finish(&mut self, _random: &mut Source) {}
}

/// A target by name.
pub struct Kind {
    pub name: &'static str,
    pub make: fn(&mut Source) -> Box<dyn Target>,
}

pub const KINDS: &[Kind] = &[
    Kind { name: "ip-frames", make: |r| Box::new(frames::Frames::new(false, r)) },
    Kind { name: "ip-frames-filter", make: |r| Box::new(frames::Frames::new(true, r)) },
    Kind { name: "ip-sends", make: |r| Box::new(descriptors::Sends::new(r)) },
    Kind { name: "nic-frames", make: |r| Box::new(nic::NicFrames::new(r)) },
    Kind { name: "tcp-segments", make: |r| Box::new(segments::Segments::tcp(false, r)) },
    Kind { name: "udp-datagrams", make: |r| Box::new(segments::Segments::udp(false, r)) },
    Kind { name: "tcp-pages", make: |r| Box::new(segments::Segments::tcp(true, r)) },
    Kind { name: "udp-pages", make: |r| Box::new(segments::Segments::udp(true, r)) },
    Kind { name: "tcp-arena", make: |r| Box::new(arenas::TransportArena::tcp(r)) },
    Kind { name: "udp-arena", make: |r| Box::new(arenas::TransportArena::udp(r)) },
    Kind { name: "filter-arena", make: |r| Box::new(arenas::FilterArena::new(r)) },
    Kind { name: "filter-asks", make: |r| Box::new(filter::Asks::new(r)) },
    Kind { name: "pf-rules", make: |_| Box::new(texts::PfRules::new()) },
    Kind { name: "topology", make: |_| Box::new(texts::TopologyFile::new()) },
    Kind { name: "settings", make: |r| Box::new(texts::Settings::new(r)) },
    Kind { name: "names", make: |_| Box::new(texts::Names::new()) },
    Kind { name: "requests", make: |r| Box::new(requests::Requests::new(r)) },
    Kind { name: "router-advertisements", make: |r| Box::new(learning::Advertisements::new(r)) },
    Kind { name: "dhcp-servers", make: |r| Box::new(learning::Leases::new(r)) },
    Kind { name: "lines-ip", make: lines::ip },
    Kind { name: "lines-tcp", make: lines::tcp },
    Kind { name: "lines-udp", make: lines::udp },
    Kind { name: "lines-filter", make: lines::filter },
    Kind { name: "lines-nic", make: lines::nic },
    Kind { name: "lines-sockets", make: lines::sockets },
    Kind { name: "queue-consumer", make: |_| Box::new(queues::HostileProducer::new()) },
    Kind { name: "queue-producer", make: |_| Box::new(queues::HostileConsumer::new()) },
    Kind { name: "supervisor-packets", make: |_| Box::new(texts::SupervisorPackets::new()) },
    Kind { name: "operator-requests", make: |_| Box::new(operators::OperatorRequests::new()) },
    Kind { name: "journal", make: |_| Box::new(operators::JournalText::new()) },
    Kind { name: "recordings", make: |r| Box::new(recordings::Recordings::new(r)) },
    Kind { name: "pair", make: |_| Box::new(pair::Pair::new()) },
    Kind { name: "aml", make: |_| Box::new(aml::Aml::new()) },
];
