//! `eft ss`: the sockets of a stack, read from the transports' arenas without disturbing them.

use eft_base::Endpoint;
use eft_linux::{memory, operator};
use eft_transport::{tcp, udp};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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

/// Titles, and the keys of what stands below them.
const COLUMNS: [(&str, &str); 10] = [
    ("NET", "proto"),
    ("STATE", "state"),
    ("RECV-Q", "recv_q"),
    ("SEND-Q", "send_q"),
    ("LOCAL", "local"),
    ("REMOTE", "remote"),
    ("FAMILY", "family"),
    ("CWND", "cwnd"),
    ("RTT-US", "rtt_us"),
    ("RETRANS", "retransmits"),
];
/// Those that fit into 80 columns.
const BRIEF: usize = 6;

/// As `ss` shows it: with `*` for no port, and the stack's wildcard address for none.
fn shown(endpoint: Endpoint) -> String {
    let address = match endpoint.address {
        any if any.is_unspecified() => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        address => address,
    };
    match (address, endpoint.port) {
        (address, 0) => format!("{address}:*"),
        (address, port) => SocketAddr::new(address, port).to_string(),
    }
}

pub fn run(arguments: &SsArguments) -> Result<(), String> {
    let request = json!({ "op": "arenas" });
    let (answer, fds) = operator::ask(&arguments.stack.name, &request).map_err(|e| e.to_string())?;
    let mut sockets = Vec::new();
    for (name, fd) in answer["arenas"].as_array().into_iter().flatten().zip(&fds) {
        let arena = memory::map(fd, false).map_err(|e| e.to_string())?;
        match name.as_str() {
            Some("tcp") => sockets.extend(tcp::inspect::list(&arena).unwrap_or_default().iter().map(tcp_row)),
            Some("udp") => sockets.extend(udp::inspect::list(&arena).unwrap_or_default().iter().map(udp_row)),
            _ => {}
        }
    }
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

fn tcp_row(r: &tcp::inspect::Row) -> Value {
    json!({
        "proto": "tcp",
        "state": tcp::inspect::state_name(r.state),
        "recv_q": r.receive_queue,
        "send_q": r.send_queue,
        "local": shown(r.local),
        "remote": shown(r.remote),
        "family": r.family.0,
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
        "orphan": r.orphan,
    })
}

fn udp_row(r: &udp::inspect::Row) -> Value {
    json!({
        "proto": "udp",
        "state": if r.remote.is_some() { "ESTAB" } else { "UNCONN" },
        "recv_q": r.receive_queue,
        "send_q": r.send_queue,
        "local": shown(r.local),
        "remote": shown(r.remote.unwrap_or(Endpoint::UNSPECIFIED)),
        "family": r.family.0,
        "slot": r.slot,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cpu::columns;

    #[test]
    fn the_widest_line_fits_into_80_columns() {
        let widest =
            ["tcp", "CLOSE-WAIT", "4194304", "4194304", "100.100.100.100:65535", "100.100.100.100:65535"];
        let header = COLUMNS[..BRIEF].iter().map(|(title, _)| title.to_string()).collect();
        let table = columns(&[header, widest.map(String::from).to_vec()]);
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    }

    #[test]
    fn nobody_is_shown_as_ss_does() {
        assert_eq!(shown(Endpoint::UNSPECIFIED), "0.0.0.0:*");
        assert_eq!(shown(Endpoint { port: 80, ..Endpoint::UNSPECIFIED }), "0.0.0.0:80");
        assert_eq!(shown(Endpoint::new(IpAddr::from([10, 0, 0, 1]), 5)), "10.0.0.1:5");
    }
}
