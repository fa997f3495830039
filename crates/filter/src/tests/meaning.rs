//! What rules mean: a table of rule files and packets.

use crate::parser::parse;
use crate::rule::Packet;
use eft_base::wire::{TCP_ACK, TCP_SYN};
use eft_messages::filter::Judgement;

/// `in`/`out`, protocol, source, destination, as in a sentence.
pub fn packet(inbound: bool, protocol: u8, from: (&str, u16), to: (&str, u16)) -> Packet {
    Packet {
        source: from.0.parse().unwrap(),
        destination: to.0.parse().unwrap(),
        source_port: from.1,
        destination_port: to.1,
        protocol,
        tcp_flags: if protocol == 6 { TCP_SYN } else { 0 },
        interface: 0,
        inbound,
        quoted: None,
    }
}

const US: &str = "10.77.0.2";
const THEM: &str = "10.77.0.1";

fn passes(rules: &str, p: &Packet) -> bool {
    parse(rules).unwrap_or_else(|e| panic!("{rules}: {e}")).decide(p, Some("eft0")).judgement
        == Judgement::Pass
}

#[test]
fn the_last_match_wins_unless_it_is_quick() {
    let p = packet(true, 6, (THEM, 4000), (US, 80));
    for (rules, expected) in [
        ("", true),
        ("block all", false),
        ("block all\npass all", true),
        ("pass all\nblock all", false),
        ("block quick all\npass all", false),
        ("pass quick all\nblock all", true),
        ("block all\npass out all", false),
        ("block all\npass in proto tcp to port 80\nblock in from 10.77.0.9", true),
    ] {
        assert_eq!(passes(rules, &p), expected, "{rules}");
    }
}

#[test]
fn each_criterion_matches_what_it_says() {
    let tcp_in = packet(true, 6, (THEM, 4000), (US, 80));
    let udp_out = packet(false, 17, (US, 5000), (THEM, 53));
    let ping = packet(true, 1, (THEM, 8), (US, 0));
    let six = packet(true, 6, ("2001:db8::1", 1), ("2001:db8::2", 2));
    // Which of the four packets the rule matches.
    let cases: [(&str, [bool; 4]); 46] = [
        ("all", [true, true, true, true]),
        ("in", [true, false, true, true]),
        ("out", [false, true, false, false]),
        ("on eft0", [true; 4]),
        ("on eft1", [false; 4]),
        ("on ! eft1", [true; 4]),
        ("on { eft1 eft0 }", [true; 4]),
        ("inet", [true, true, true, false]),
        ("inet6", [false, false, false, true]),
        ("proto tcp", [true, false, false, true]),
        ("proto { udp icmp }", [false, true, true, false]),
        ("proto 17", [false, true, false, false]),
        ("from any", [true; 4]),
        ("from 10.77.0.1", [true, false, true, false]),
        ("from !10.77.0.1", [false, true, false, true]),
        ("from 10.77.0.0/24", [true, true, true, false]),
        ("from 10.78.0.0/24", [false; 4]),
        ("to 10.77.0.2", [true, false, true, false]),
        ("from 10.77.0.2 to 10.77.0.1", [false, true, false, false]),
        ("from { 10.77.0.9, 10.77.0.2 }", [false, true, false, false]),
        ("from 2001:db8::/32", [false, false, false, true]),
        ("from 0.0.0.0/0", [true, true, true, false]),
        ("from <t>", [true, false, true, false]),
        ("from ! <t>", [false, true, false, true]),
        ("from { <t>, 10.77.0.2 }", [true, true, true, false]),
        ("proto tcp to port 80", [true, false, false, false]),
        ("proto tcp to port http", [true, false, false, false]),
        ("proto tcp to port != 80", [false, false, false, true]),
        ("proto tcp to port 79:81", [true, false, false, false]),
        ("proto tcp to port 80:80", [true, false, false, false]),
        ("proto tcp to port 80 >< 90", [false; 4]),
        ("proto tcp to port 79 >< 81", [true, false, false, false]),
        ("proto tcp to port 70 <> 79", [true, false, false, true]),
        ("proto tcp from port > 1023", [true, false, false, false]),
        ("proto tcp from port >= 4000", [true, false, false, false]),
        ("proto tcp from port < 4000", [false, false, false, true]),
        ("proto tcp from port <= 4000", [true, false, false, true]),
        ("proto { tcp udp } to port { 53 80 }", [true, true, false, false]),
        ("proto udp from 10.77.0.2 port 5000 to 10.77.0.1 port domain", [false, true, false, false]),
        ("proto tcp flags S/SA", [true, false, false, true]),
        ("proto tcp flags A/SA", [false; 4]),
        ("proto tcp flags /S", [false; 4]),
        ("proto icmp icmp-type echoreq", [false, false, true, false]),
        ("proto icmp icmp-type echoreq code 0", [false, false, true, false]),
        ("proto icmp icmp-type echoreq code 1", [false; 4]),
        ("proto icmp icmp-type 0", [false; 4]),
    ];
    for (rule, expected) in cases {
        let rules = format!("table <t> {{ 10.77.0.0/24, !10.77.0.2 }}\nblock {rule}");
        let matched = [&tcp_in, &udp_out, &ping, &six].map(|p| !passes(&rules, p));
        assert_eq!(matched, expected, "{rule}");
    }
}

#[test]
fn the_longest_prefix_of_a_table_decides() {
    let rules = "table <t> { 10.0.0.0/8 !10.1.0.0/16 10.1.1.0/24 !10.1.1.1 }\nblock from <t>";
    for (a, blocked) in [
        ("10.9.9.9", true),
        ("10.1.9.9", false),
        ("10.1.1.9", true),
        ("10.1.1.1", false),
        ("11.0.0.1", false),
    ] {
        assert_eq!(!passes(rules, &packet(true, 17, (a, 1), (US, 2))), blocked, "{a}");
    }
}

#[test]
fn keeping_state_means_beginning_a_connection() {
    let mut p = packet(true, 6, (THEM, 4000), (US, 80));
    let rules = "block all\npass proto tcp keep state";
    assert!(passes(rules, &p));
    p.tcp_flags = TCP_ACK;
    assert!(!passes(rules, &p));
    assert!(passes("block all\npass proto tcp flags any keep state", &p));
    assert!(passes("block all\npass proto tcp", &p));
}

#[test]
fn a_block_rule_decides_the_answer_to_the_sender() {
    use Judgement::*;
    let judged = |rules: &str, protocol| {
        let p = packet(true, protocol, (THEM, 8), (US, 0));
        parse(rules).unwrap().decide(&p, Some("eft0")).judgement
    };
    for (rules, tcp, udp, icmp, gre) in [
        ("block", Drop, Drop, Drop, Drop),
        ("block drop", Drop, Drop, Drop, Drop),
        ("block return", Reset, Unreachable, Drop, Unreachable),
        ("block return-icmp", Unreachable, Unreachable, Drop, Unreachable),
        ("block drop\nblock return-rst proto tcp", Reset, Drop, Drop, Drop),
        ("block return\npass in", Pass, Pass, Pass, Pass),
        ("block return\nblock drop proto tcp", Drop, Unreachable, Drop, Unreachable),
    ] {
        let all = [6, 17, 1, 47].map(|protocol| judged(rules, protocol));
        assert_eq!(all, [tcp, udp, icmp, gre], "{rules}");
    }
}

#[test]
fn icmp6_types_have_their_own_names_and_link_local_addresses_no_zone() {
    // As ip tells it: the zone is in the address.
    let ping = packet(true, 58, ("fe80:2::1", 128), ("fe80:2::2", 0));
    let unreachable = packet(true, 58, ("2001:db8::1", 1), ("2001:db8::2", 4));
    for (rule, expected) in [
        ("proto icmp6", [true, true]),
        ("proto icmp", [false, false]),
        ("proto icmp6 icmp6-type echoreq", [true, false]),
        ("proto icmp6 icmp6-type { unreach code 4, 2 }", [false, true]),
        ("inet6 proto icmp6 icmp6-type unreach code 3", [false, false]),
        ("from fe80::1 to fe80::/10", [true, false]),
        ("from fe80:2::1", [false, false]),
        ("from <t>", [true, false]),
    ] {
        let rules = format!("table <t> {{ fe80::/64 }}\nblock {rule}");
        assert_eq!([&ping, &unreachable].map(|p| !passes(&rules, p)), expected, "{rule}");
    }
    // No error is sent about ICMP.
    let rules = parse("block return").unwrap();
    assert_eq!(rules.decide(&ping, None).judgement, Judgement::Drop);
}
