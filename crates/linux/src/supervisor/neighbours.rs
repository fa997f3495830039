//! The neighbours that ip has found, for operators: ip is asked, and its answer passed on. A successor is asked again.

use super::Supervisor;
use crate::protocol::ToServer;
use eft_messages::ComponentId;
use serde_json::{Value, json};

/// The key of question and answer begins so, and ends with the client's number.
pub(super) const NEIGHBOURS: &str = "neighbours:";

impl Supervisor {
    pub(super) fn ask_for_neighbours(&mut self, client: u64) {
        let key = format!("{NEIGHBOURS}{client}");
        self.waiting.push((key.clone(), client));
        self.tell(ComponentId::IP, &ToServer::Configure { key, value: Vec::new() }, &[]);
    }

    /// A successor of ip does not know the questions that its predecessor had not answered.
    pub(super) fn ask_again_for_neighbours(&mut self, newborn: usize) {
        if self.members[newborn].peer != ComponentId::IP {
            return;
        }
        let keys = self.waiting.iter().map(|(key, _)| key.clone());
        for key in keys.filter(|key| key.starts_with(NEIGHBOURS)).collect::<Vec<_>>() {
            self.tell_index(newborn, &ToServer::Configure { key, value: Vec::new() }, &[]);
        }
    }

    pub(super) fn show_neighbours(&mut self, key: &str, lines: &[u8]) {
        let Some((_, client)) = self.waiting.iter().find(|(k, _)| k == key) else { return };
        let client = *client;
        let lines = String::from_utf8_lossy(lines);
        let found: Vec<Value> = lines.lines().filter_map(|line| self.neighbour(line)).collect();
        self.answer_client(client, &json!({ "found": found }), &[]);
    }

    /// Reads a line of ip, as its module `neighbours_shown` writes it. A server that went mad may write anything.
    fn neighbour(&self, line: &str) -> Option<Value> {
        let words: Vec<&str> = line.split(' ').collect();
        let [nic, address, mac, state, confirmed, used] = words[..] else { return None };
        let device = self.config.devices.get(nic.parse::<usize>().ok()?)?;
        let address: std::net::IpAddr = address.parse().ok()?;
        let known = |word: &str| (word != "-").then(|| word.to_string());
        let milliseconds = |word: &str| word.parse::<u64>().ok();
        Some(json!({ "address": address, "mac": known(mac), "interface": device.interface, "state": state,
                     "confirmed_ms": milliseconds(confirmed), "used_ms": milliseconds(used) }))
    }
}
