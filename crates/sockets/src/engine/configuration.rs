//! Configuration from the store and the world.

use super::Sockets;
use alloc::vec::Vec;
use eft_base::{ComponentId, Instances, PortShare, WireAddress};
use eft_messages::control::{InfoHeader, InterfaceInfo, RouteInfo, restriction};
use zerocopy::{FromBytes, IntoBytes};

impl Sockets {
    pub(super) fn set_info(&mut self, interfaces: &[InterfaceInfo], nameserver: WireAddress) {
        let header = InfoHeader {
            sockets_generation: self.config.generation,
            interfaces: interfaces.len() as u32,
            nameserver,
        };
        self.info.clear();
        self.info.extend_from_slice(header.as_bytes());
        self.info.extend_from_slice(interfaces.as_bytes());
        self.info_routes = self.info.len();
    }

    /// What `eft up --fastopen` or `eft set` says; an empty value is the default.
    fn set_fast_open(&mut self, value: &[u8]) {
        let words = core::str::from_utf8(value).unwrap_or_default();
        let connects = words.is_empty() || words.split(',').any(|word| matches!(word, "client" | "both"));
        self.restrictions &= !restriction::NO_EARLY_CONNECT;
        self.restrictions |= if connects { 0 } else { restriction::NO_EARLY_CONNECT };
    }

    /// What `eft up --congestion` or `eft set` says, as a number of the option word.
    fn set_congestion(&mut self, value: &[u8]) {
        let number = match value {
            b"reno" => 2,
            b"bbr" => 3,
            _ => 1,
        };
        let place = restriction::CONGESTION_MASK << restriction::CONGESTION_SHIFT;
        self.restrictions = self.restrictions & !place | number << restriction::CONGESTION_SHIFT;
    }

    pub(super) fn configure(&mut self, key: &str, value: &[u8]) {
        if key == "fastopen" {
            self.set_fast_open(value);
            return self.show_info();
        }
        if key == PortShare::KEY {
            self.spread.instances = Instances::among(value);
            // One that is dead when this server is born has the requests that wait for it as soon as it is back.
            let names = core::str::from_utf8(value).unwrap_or_default();
            let all = names.lines().filter_map(|name| name.parse::<ComponentId>().ok());
            self.transports.extend(all.filter(|id: &ComponentId| id.role.is_transport()));
            return;
        }
        if key == "congestion" {
            self.set_congestion(value);
            return self.show_info();
        }
        // "routes": RouteInfo records, which stand behind those of the interfaces.
        if key == "routes" {
            self.routes = value.chunks_exact(size_of::<RouteInfo>()).flatten().copied().collect();
            return self.show_info();
        }
        // "info": an address of the name server, then InterfaceInfo records, written by the live
        // world from its own configuration.
        if key != "info" || value.len() < 16 {
            return;
        }
        let nameserver = WireAddress(value[..16].try_into().unwrap_or_default());
        let interfaces: Vec<InterfaceInfo> = value[16..]
            .chunks_exact(size_of::<InterfaceInfo>())
            .filter_map(|c| InterfaceInfo::read_from_bytes(c).ok())
            .collect();
        self.set_info(&interfaces, nameserver);
        self.show_info();
    }

    fn show_info(&mut self) {
        self.info.truncate(self.info_routes);
        self.info.extend_from_slice(&self.routes);
        self.info.extend_from_slice(&self.restrictions.to_le_bytes());
        for domain in self.domains.values() {
            let _ = domain.arena.write_info(&self.info);
        }
    }
}
