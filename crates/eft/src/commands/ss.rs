//! `eft ss`: the sockets of a stack, read from the transports' arenas without disturbing them.

use anyhow::Result;
use eft_base::{Endpoint, Instances};
use eft_channel::socket::{AcceptRecord, Arena};
use eft_linux::{memory, operator};
use eft_messages::Role;
use eft_transport::{tcp, udp};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(clap::Args, Debug)]
pub struct SsArguments {
    #[command(flatten)]
    stack: super::Stack,
    /// Print JSON: see below
    #[arg(long)]
    json: bool,
    /// Show each connection's window, round-trip time and retransmissions, too, in more than 80 columns
    #[arg(short, long, conflicts_with = "json")]
    info: bool,
}

/// Titles of the columns, and the keys of their values.
const COLUMNS: [(&str, &str); 10] = [
    ("NET", "proto"),
    ("STATE", "state"),
    ("RECV-Q", "recv_q"),
    ("SEND-Q", "send_q"),
    ("LOCAL", "local"),
    ("REMOTE", "remote"),
    ("DOMAIN", "domain"),
    ("CWND", "cwnd"),
    ("RTT-US", "rtt_us"),
    ("RETRANS", "retransmits"),
];
/// Those that fit into 80 columns.
const BRIEF: usize = 6;

/// A socket's own end and its peer's, as `ss` shows them: `*` is no port, and as an address every one of both versions.
fn shown(local: Endpoint, remote: Option<Endpoint>, v6only: bool) -> [String; 2] {
    let remote = remote.unwrap_or(Endpoint::new(
        match local.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        },
        0,
    ));
    [local, remote].map(|end| {
        let address = match end.address {
            IpAddr::V6(any) if any.is_unspecified() && local.address == any && !v6only => "*".to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
            IpAddr::V4(address) => address.to_string(),
        };
        match end.port {
            0 => format!("{address}:*"),
            port => format!("{address}:{port}"),
        }
    })
}

pub fn run(arguments: &SsArguments) -> Result<()> {
    let request = json!({ "op": "arenas" });
    let (answer, fds) = operator::ask(&arguments.stack.name, &request)?;
    let names: Vec<&str> =
        answer["arenas"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let instances = Instances::among(names.join("\n").as_bytes());
    let (mut sockets, mut further) = (Vec::new(), Vec::new());
    let mut pages = Pages::new(&arguments.stack.name);
    for (name, fd) in names.iter().zip(&fds) {
        let arena = memory::map(fd, false)?;
        match super::role_of(name) {
            Some(Role::Tcp) => {
                for row in tcp::inspect::list(&arena).unwrap_or_default() {
                    let is_further = tcp::inspect::state_name(row.state) == "LISTEN"
                        && name.parse() != Ok(instances.owner(Role::Tcp, row.local.port));
                    let list = if is_further { &mut further } else { &mut sockets };
                    list.push(tcp_row(&row, &mut pages));
                }
            }
            Some(Role::Udp) => {
                let rows = udp::inspect::list(&arena).unwrap_or_default();
                sockets.extend(rows.iter().map(|r| udp_row(r, &mut pages)));
            }
            _ => {}
        }
    }
    further.into_iter().for_each(|row| add_further(&mut sockets, row));
    if arguments.json {
        println!("{}", json!({ "stack": arguments.stack.name, "sockets": sockets }));
        return Ok(());
    }
    let columns = match arguments.info {
        true => &COLUMNS[..],
        false => &COLUMNS[..BRIEF],
    };
    let cell = |v: &Value| match v {
        Value::Null => "-".to_string(),
        Value::String(s) => s.clone(),
        v => v.to_string(),
    };
    let rows: Vec<Vec<String>> =
        sockets.iter().map(|s| columns.iter().map(|(_, key)| cell(&s[*key])).collect()).collect();
    let header: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    super::print_table(&header, &rows);
    Ok(())
}

/// A program's listener has others beside it, at the other instances of tcp: it is shown once, with all that wait to be accepted.
fn add_further(sockets: &mut Vec<Value>, row: Value) {
    let same =
        |socket: &&mut Value| ["proto", "state", "local", "domain"].iter().all(|key| socket[key] == row[key]);
    match sockets.iter_mut().find(same) {
        Some(first) => {
            let waiting = |row: &Value| row["recv_q"].as_u64().unwrap_or_default();
            first["recv_q"] = (waiting(first) + waiting(&row)).into();
        }
        None => sockets.push(row),
    }
}

/// What programs have read. The transports learn it when they need it; the sockets' pages have it now.
struct Pages<'a> {
    stack: &'a str,
    arenas: HashMap<u16, Option<Arena>>,
}

impl Pages<'_> {
    fn new(stack: &str) -> Pages<'_> {
        Pages { stack, arenas: HashMap::new() }
    }

    /// Bytes in a socket's receive ring: of the `known` ones those that its program has not taken.
    fn unread(&mut self, domain: u16, slot: Option<u32>, known: u64) -> u64 {
        if known == 0 {
            return 0;
        }
        let stack = self.stack;
        let arena = self.arenas.entry(domain).or_insert_with(|| operator::arena(stack, domain.into()).ok());
        let page = slot.and_then(|slot| arena.as_ref()?.socket(slot));
        page.map_or(known, |page| known.min(page.receivable() as u64))
    }
}

fn tcp_row(r: &tcp::inspect::Row, pages: &mut Pages) -> Value {
    // A listener's ring holds records, one for each connection that waits.
    let listens = tcp::inspect::state_name(r.state) == "LISTEN";
    let unit = if listens { size_of::<AcceptRecord>() as u64 } else { 1 };
    let remote = Some(r.remote).filter(|remote| remote.port != 0);
    let [local, remote] = shown(r.local, remote, r.v6only);
    json!({
        "proto": "tcp",
        "state": tcp::inspect::state_name(r.state),
        "recv_q": pages.unread(r.domain.0, r.slot, r.receive_queue * unit) / unit,
        "send_q": r.send_queue,
        "local": local,
        "remote": remote,
        "domain": r.domain.0,
        "slot": r.slot,
        "cwnd": r.cwnd,
        "ssthresh": r.ssthresh,
        "mss": r.mss,
        "rtt_us": r.rtt_us,
        "rttvar_us": r.rttvar_us,
        "rto_us": r.rto_us,
        "retransmits": r.retransmits,
        "peer_window": r.peer_window,
        "timestamps": r.timestamps,
        "sack": r.sack,
        "ecn": r.ecn,
        "orphan": r.orphan,
    })
}

fn udp_row(r: &udp::inspect::Row, pages: &mut Pages) -> Value {
    let [local, remote] = shown(r.local, r.remote, r.v6only);
    json!({
        "proto": "udp",
        "state": if r.remote.is_some() { "ESTAB" } else { "UNCONN" },
        "recv_q": pages.unread(r.domain.0, Some(r.slot), r.receive_queue),
        "send_q": r.send_queue,
        "local": local,
        "remote": remote,
        "domain": r.domain.0,
        "slot": r.slot,
    })
}

#[cfg(test)]
mod tests;
