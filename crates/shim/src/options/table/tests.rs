use super::*;
use core::fmt::Write;
use std::collections::BTreeSet;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
/// The tables begin here in the document.
const BEGIN: &str = "<!-- the code's table -->\n";
const TITLES: [(c_int, &str); 5] = [
    (SOCKET, "SOL_SOCKET: socket(7)"),
    (TCP, "IPPROTO_TCP: tcp(7)"),
    (UDP, "IPPROTO_UDP: udp(7)"),
    (IP, "IPPROTO_IP: ip(7)"),
    (IPV6, "IPPROTO_IPV6: ipv6(7), of an AF_INET6 socket that is eft's"),
];

fn verdict(kind: Option<Kind>) -> &'static str {
    match kind {
        None => "refused",
        Some(kind) if kind.is_read_only() => "read only",
        Some(kind) if kind.is_set_only() => "set only",
        Some(_) => "done",
    }
}

fn tables() -> String {
    let mut text = String::new();
    for (level, title) in TITLES {
        let head = "| option | number | stream | datagrams | |\n|---|---|---|---|---|";
        writeln!(text, "\n## {title}\n\n{head}").unwrap();
        for row in rows().filter(|row| row.level == level) {
            let (stream, datagram) = (verdict(row.stream), verdict(row.datagram));
            let cells = [row.name, &row.number.to_string(), stream, datagram, row.note];
            writeln!(text, "| {} |", cells.join(" | ").trim_end()).unwrap();
        }
    }
    text
}

/// `EFT_WRITE_DOCUMENT=1` brings the document up to date.
#[test]
fn the_document_shows_the_table() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (head, shown) = document.split_once(BEGIN).unwrap();
    if std::env::var_os("EFT_WRITE_DOCUMENT").is_some() {
        return std::fs::write(DOCUMENT, [head, BEGIN, &tables()].concat()).unwrap();
    }
    assert!(shown == tables(), "docs/options.md differs from the code: EFT_WRITE_DOCUMENT=1 rewrites it");
}

#[test]
fn no_option_has_two_rows() {
    let numbers: BTreeSet<_> = rows().map(|row| (row.level, row.number)).collect();
    let names: BTreeSet<_> = rows().map(|row| row.name).collect();
    assert_eq!((numbers.len(), names.len()), (rows().count(), rows().count()));
}
