//! `eft ss`: the sockets of a stack, read from the transports' arenas without disturbing them.

use eft_linux::{memory, operator};
use eft_transport::{tcp, udp};
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub struct SsArguments {
    #[command(flatten)]
    stack: super::Stack,
    #[arg(long)]
    json: bool,
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
    let columns =
        ["proto", "state", "recv_q", "send_q", "local", "remote", "family", "cwnd", "rtt_us", "retransmits"];
    let cell = |v: &Value| match v {
        Value::Null => "-".to_string(),
        Value::String(s) => s.clone(),
        v => v.to_string(),
    };
    let rows: Vec<Vec<String>> =
        sockets.iter().map(|s| columns.iter().map(|c| cell(&s[*c])).collect()).collect();
    let header =
        ["PROTO", "STATE", "RECV-Q", "SEND-Q", "LOCAL", "REMOTE", "FAMILY", "CWND", "RTT-US", "RETRANS"];
    super::print_table(&header, &rows);
    Ok(())
}

fn tcp_row(r: &tcp::inspect::Row) -> Value {
    json!({
        "proto": "tcp",
        "state": tcp::inspect::state_name(r.state),
        "recv_q": r.receive_queue,
        "send_q": r.send_queue,
        "local": r.local.to_string(),
        "remote": r.remote.to_string(),
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
        "local": r.local.to_string(),
        "remote": r.remote.map_or("*".into(), |e| e.to_string()),
        "family": r.family.0,
        "slot": r.slot,
    })
}
