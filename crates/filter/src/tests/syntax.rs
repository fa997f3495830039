//! The parser: what it reads, how it complains, and that nothing makes it panic.

use crate::parser::parse;
use proptest::prelude::*;
use std::string::{String, ToString};

fn shown(text: &str) -> String {
    parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
}

fn error(text: &str) -> String {
    match parse(text) {
        Ok(r) => panic!("{text} was read as {r}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn rules_are_shown_as_pfctl_does_and_can_be_read_again() {
    let cases = [
        ("pass", "pass all\n"),
        ("block all # nothing", "block drop all\n"),
        ("block return in", "block return in all\n"),
        ("block return-icmp out", "block return-icmp out all\n"),
        ("block return-rst in proto tcp", "block return-rst in proto tcp all\n"),
        (
            "pass in quick on eft0 inet proto tcp from any to any port 80 flags S/SA keep state",
            "pass in quick on eft0 inet proto tcp from any to any port = 80 flags S/SA keep state\n",
        ),
        (
            "pass out proto { tcp, udp } to 10.0.0.0/8 port { ssh 8000:8080, > 1023 }",
            "pass out proto { tcp, udp } from any to 10.0.0.0/8 port { = 22, 8000:8080, > 1023 }\n",
        ),
        (
            "pass from !10.0.0.1 to { 10.0.0.2/32 10.0.0.0/24 }",
            "pass from ! 10.0.0.1 to { 10.0.0.2, 10.0.0.0/24 }\n",
        ),
        ("pass on ! eft1 inet6 from 2001:db8::/32", "pass on ! eft1 inet6 from 2001:db8::/32 to any\n"),
        (
            "pass proto icmp icmp-type { echoreq, unreach code 4 }",
            "pass proto icmp all icmp-type { echoreq, unreach code 4 }\n",
        ),
        (
            "pass proto ipv6-icmp icmp6-type { echoreq, 1 code 4, toobig, 200 }",
            "pass proto icmp6 all icmp6-type { echoreq, unreach code 4, toobig, 200 }\n",
        ),
        (
            "pass proto tcp from port 1 >< 9 to port 3 <> 5",
            "pass proto tcp from any port 1 >< 9 to any port 3 <> 5\n",
        ),
        (
            "pass proto tcp from any port != 5 flags any keep state",
            "pass proto tcp from any port != 5 to any flags any keep state\n",
        ),
        ("pass keep state", "pass all flags S/SA keep state\n"),
        ("pass proto udp keep state no state", "pass proto udp all\n"),
        (
            "table <a> persist { 10.0.0.0/8, !10.1.0.0/16\n 10.1.1.1 }\nblock from <a>",
            "table <a> { 10.1.1.1, ! 10.1.0.0/16, 10.0.0.0/8 }\nblock drop from <a> to any\n",
        ),
        ("table <empty> const\ntable <e> { }", "table <e> { }\ntable <empty> { }\n"),
        ("block \\\n  in \\  \n quick", "block drop in quick all\n"),
        (
            "ext = \"eft0\"\nports = \"{ 22, 80 }\"\nboth = $ports\npass on $ext proto tcp to port $both",
            "pass on eft0 proto tcp from any to any port { = 22, = 80 }\n",
        ),
        ("h = { 10.0.0.1,\n 10.0.0.2 }\npass to $h", "pass from any to { 10.0.0.1, 10.0.0.2 }\n"),
        ("", ""),
    ];
    for (text, expected) in cases {
        let once = shown(text);
        // `flags` is shown where pfctl shows it, for all rules that keep state.
        assert_eq!(once, expected, "{text}");
        assert_eq!(shown(&once), once);
    }
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let cases = [
        ("pass\nblock foo", "line 2, column 7: expected `from`, `to`"),
        ("allow all", "line 1, column 1: expected `pass`, `block`, `table` or `NAME =`, found `allow`"),
        ("block in\nblock return-icmp6 in", "line 2, column 7: expected `drop`, `return`, `return-rst`"),
        ("block returns all", "line 1, column 7: expected `drop`, `return`, `return-rst` or `return-icmp`"),
        ("block return-icmp(3) in", "line 1, column 18: expected no code or TTL in brackets"),
        ("block return-rst in all", "line 1, column 21: expected `proto tcp` for `return-rst`"),
        ("pass\nblock return-rst proto { tcp, udp } all", "line 2, column 37: expected `proto tcp`"),
        ("pass return", "line 1, column 6: expected `from`, `to`"),
        ("pass in on", "line 1, column 11: expected an interface's name, found end of file"),
        ("pass from 10.0.0.256", "line 1, column 11: expected an address, a prefix"),
        ("pass from 10.0.0.0/33", "line 1, column 11: expected an address"),
        ("pass to any port 80", "line 1, column 13: expected no `port` without `proto tcp`"),
        ("pass proto tcp to any port 65536", "line 1, column 28: expected a port"),
        ("pass proto tcp to any port 20:10", "line 1, column 28: the range 20:10 runs backwards"),
        ("pass proto tcp to any port { 22, }\npass proto tcp port {}", "line 2, column 16: expected"),
        ("pass proto tcp to port { }", "line 1, column 27: expected something in the braces"),
        ("pass proto foo", "line 1, column 12: expected a protocol"),
        ("pass proto udp flags S/SA", "line 1, column 16: expected no `flags`"),
        ("pass proto tcp flags S/A", "line 1, column 22: expected flags"),
        ("pass proto tcp icmp-type 8", "line 1, column 16: expected no `icmp-type`"),
        ("pass proto icmp icmp6-type 128", "line 1, column 17: expected no `icmp6-type`"),
        ("pass proto icmp6 icmp6-type squench", "line 1, column 29: expected an ICMP type"),
        ("block keep state", "line 1, column 7: expected no state for `block`"),
        ("pass keep", "line 1, column 10: expected `state`, found end of file"),
        ("pass from <nobody>", "line 1, column 11: the table <nobody> is not defined"),
        ("table <a>\ntable <a>", "line 2, column 10: expected no second definition"),
        ("table <a> file \"/etc/a\"", "line 1, column 11: expected `persist`, `const` or `{`"),
        ("pass on $ext", "line 1, column 9: the macro `ext` is not defined"),
        ("ext = \"foo", "line 1, column 7: expected a closing `\"`"),
        ("ext =\npass", "line 1, column 1: the macro has no value"),
        ("p = \"tcp foo\"\npass proto $p", "line 2, column 12: expected"),
        ("pass ~", "line 1, column 6: unexpected character `~`"),
        ("päss", "line 1, column 2: unexpected character `ä`"),
        ("pass \\ in", "line 1, column 6: expected the end of the line after `\\`"),
        ("pass inet from 2001:db8::1", "line 1, column 16: 2001:db8::1 is no inet address"),
        ("set skip on lo", "line 1, column 1: expected `pass`"),
        ("pass log", "line 1, column 6: expected"),
        ("pass from {10.0.0.1", "line 1, column 20: expected an address"),
    ];
    for (text, expected) in cases {
        let e = error(text);
        assert!(e.starts_with(expected), "{text}\n  said: {e}\n  not:  {expected}");
        assert_eq!(e.lines().count(), 1);
    }
}

#[test]
fn macros_cannot_explode() {
    let mut text = String::from("a0 = \"10.0.0.1 10.0.0.1\"\n");
    for i in 0..60 {
        text += &format!("a{} = \"$a{i} $a{i}\"\n", i + 1);
    }
    assert!(error(&text).contains("grows too large"));
}

#[test]
fn any_host_is_the_same_said_and_unsaid() {
    let said = |text: &str| parse(text).unwrap();
    for text in ["pass from any", "pass to any", "pass all", "pass from any to any"] {
        assert_eq!(said(text), said("pass"), "{text}");
        assert_eq!(said(&said(text).to_string()), said(text), "{text}");
    }
    let half = said("pass from any to 10.0.0.1");
    assert_eq!(half, said("pass to 10.0.0.1"));
    assert_eq!(said(&half.to_string()), half);
}

/// Pieces that rules are made of, and some that they are not.
const PIECES: [&str; 48] = [
    "pass",
    "block",
    "drop",
    "return",
    "in",
    "out",
    "quick",
    "on",
    "eft0",
    "inet",
    "inet6",
    "proto",
    "tcp",
    "udp",
    "icmp",
    "from",
    "to",
    "any",
    "all",
    "port",
    "{",
    "}",
    ",",
    "!",
    "<",
    ">",
    "<t>",
    "=",
    "!=",
    "<=",
    "><",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "1:2",
    "80",
    "flags",
    "S/SA",
    "keep",
    "state",
    "no",
    "table",
    "persist",
    "$m",
    "m =",
    "\"",
    "\n",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let _ = parse(&text);
    }

    #[test]
    fn no_mix_of_pieces_makes_it_panic_and_what_is_read_is_read_again(
        pieces in proptest::collection::vec(0..PIECES.len(), 0..40)
    ) {
        let text: String = pieces.iter().map(|i| format!("{} ", PIECES[*i])).collect();
        if let Ok(rules) = parse(&text) {
            let shown = rules.to_string();
            let again = parse(&shown);
            prop_assert!(again.is_ok(), "{text:?} was shown as {shown:?}: {again:?}");
            prop_assert_eq!(again.unwrap(), rules);
        }
    }
}
