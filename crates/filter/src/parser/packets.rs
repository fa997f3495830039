//! The criteria of a rule, and its options.

use super::{Parser, Result};
use crate::lexer::{Kind, Place, SyntaxError};
use crate::names::*;
use crate::rule::*;
use alloc::format;
use alloc::string::String;
use eft_base::wire::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};

impl Parser {
    pub(super) fn interface(&mut self) -> Result<Not<String>> {
        let negated = self.take_sign("!");
        let value = self.name("an interface's name")?;
        Ok(Not { negated, value })
    }

    pub(super) fn protocol(&mut self) -> Result<u8> {
        let Some(protocol) = self.word().and_then(read_protocol) else {
            return self.expected("a protocol: tcp, udp, icmp, … or a number below 256");
        };
        self.advance();
        Ok(protocol)
    }

    pub(super) fn peers(&mut self, rule: &Rule) -> Result<Peers> {
        let mut peers = Peers::default();
        if self.word() != Some("port") {
            let place = self.place();
            peers.hosts = self.list(Parser::host)?;
            for host in &peers.hosts {
                check_family(rule.family, &host.value, place)?;
            }
            // `from any` says as much as nothing, and is shown alike.
            if let [Not { negated: false, value: Host::Any }] = peers.hosts[..] {
                peers.hosts.clear();
            }
        }
        if self.word() == Some("port") {
            let ported = |p: &u8| matches!(*p, PROTOCOL_TCP | PROTOCOL_UDP);
            if rule.protocols.is_empty() || !rule.protocols.iter().all(ported) {
                return self.expected("no `port` without `proto tcp` or `proto udp`");
            }
            self.advance();
            peers.ports = self.list(Parser::port)?;
        }
        Ok(peers)
    }

    fn host(&mut self) -> Result<Not<Host>> {
        let what = "an address, a prefix, `any` or `<table>`";
        let negated = self.take_sign("!");
        let value = if matches!(self.token().kind, Kind::Sign("<")) {
            let place = self.place();
            let name = self.table_name()?;
            if !self.ruleset.tables.contains_key(&name) {
                let e = format!("the table <{name}> is not defined");
                return Err(SyntaxError::new(place, e));
            }
            Host::Table(name)
        } else if !negated && self.take("any") {
            Host::Any
        } else {
            Host::Network(self.network(what)?)
        };
        Ok(Not { negated, value })
    }

    pub(super) fn port(&mut self) -> Result<PortMatch> {
        let sign = match self.token().kind {
            Kind::Sign(s @ ("=" | "!=" | "<" | "<=" | ">" | ">=")) => s,
            _ => return self.port_or_range(),
        };
        self.advance();
        let port = self.port_number()?;
        Ok(match sign {
            "!=" => PortMatch::Unequal(port),
            "<" => PortMatch::Less(port),
            "<=" => PortMatch::LessOrEqual(port),
            ">" => PortMatch::Greater(port),
            ">=" => PortMatch::GreaterOrEqual(port),
            _ => PortMatch::Equal(port),
        })
    }

    fn port_or_range(&mut self) -> Result<PortMatch> {
        let place = self.place();
        if let Some((low, high)) = self.word().and_then(|w| w.split_once(':')) {
            let (Some(low), Some(high)) = (read_port(low), read_port(high)) else {
                return self.expected("a port range such as 1000:2000");
            };
            self.advance();
            return ordered(place, low, high).map(|(a, b)| PortMatch::Range(a, b));
        }
        let low = self.port_number()?;
        for (sign, make) in
            [("><", PortMatch::Between as fn(u16, u16) -> PortMatch), ("<>", PortMatch::Outside)]
        {
            if self.take_sign(sign) {
                let high = self.port_number()?;
                return ordered(place, low, high).map(|(a, b)| make(a, b));
            }
        }
        Ok(PortMatch::Equal(low))
    }

    fn port_number(&mut self) -> Result<u16> {
        let Some(port) = self.word().and_then(read_port) else {
            return self.expected("a port: a number below 65536 or a service's name");
        };
        self.advance();
        Ok(port)
    }

    pub(super) fn options(&mut self, rule: &mut Rule) -> Result<()> {
        let mut flags_written = false;
        loop {
            if self.word() == Some("flags") {
                if !rule.protocols.contains(&PROTOCOL_TCP) && !rule.protocols.is_empty() {
                    return self.expected("no `flags` without `proto tcp`");
                }
                self.advance();
                rule.flags = self.flags()?;
                flags_written = true;
            } else if self.word() == Some("icmp-type") {
                if rule.protocols != [PROTOCOL_ICMP] {
                    return self.expected("no `icmp-type` without `proto icmp`");
                }
                self.advance();
                rule.icmp = self.list(|p| p.icmp(PROTOCOL_ICMP))?;
            } else if self.word() == Some("icmp6-type") {
                if rule.protocols != [PROTOCOL_ICMPV6] {
                    return self.expected("no `icmp6-type` without `proto icmp6`");
                }
                self.advance();
                rule.icmp = self.list(|p| p.icmp(PROTOCOL_ICMPV6))?;
            } else if self.word() == Some("keep") {
                if rule.action != Action::Pass {
                    return self.expected("no state for `block`");
                }
                self.advance();
                self.expect_state()?;
                rule.keep_state = true;
            } else if self.take("no") {
                self.expect_state()?;
                rule.keep_state = false;
            } else if matches!(self.token().kind, Kind::Newline | Kind::End) {
                break;
            } else {
                return self.expected(
                    "`from`, `to`, `port`, `flags`, `icmp-type`, `icmp6-type`, `keep state`, `no state` \
                     or the end of the line",
                );
            }
        }
        if rule.keep_state && !flags_written {
            rule.flags = read_flags("S/SA");
        }
        Ok(())
    }

    fn expect_state(&mut self) -> Result<()> {
        if self.take("state") {
            return Ok(());
        }
        self.expected("`state`")
    }

    pub(super) fn flags(&mut self) -> Result<Option<Flags>> {
        if self.take("any") {
            return Ok(None);
        }
        let Some(flags) = self.word().and_then(read_flags) else {
            return self.expected("flags such as S/SA (of F S R P A U E W), or `any`");
        };
        self.advance();
        Ok(Some(flags))
    }

    pub(super) fn icmp(&mut self, protocol: u8) -> Result<IcmpMatch> {
        let Some(kind) = self.word().and_then(|word| read_icmp(protocol, word)) else {
            return self.expected("an ICMP type: echoreq, unreach, … or a number below 256");
        };
        self.advance();
        let mut code = None;
        if self.take("code") {
            code = self.word().and_then(|w| w.parse().ok());
            if code.is_none() {
                return self.expected("an ICMP code: a number below 256");
            }
            self.advance();
        }
        Ok(IcmpMatch { kind, code })
    }
}

fn ordered(place: Place, low: u16, high: u16) -> Result<(u16, u16)> {
    if low <= high {
        return Ok((low, high));
    }
    let e = format!("the range {low}:{high} runs backwards");
    Err(SyntaxError::new(place, e))
}

fn check_family(family: Option<Family>, host: &Host, place: Place) -> Result<()> {
    let (wanted, address) = match (family, host) {
        (Some(Family::Inet), Host::Network(c)) if c.address.is_ipv6() => ("inet", c.address),
        (Some(Family::Inet6), Host::Network(c)) if c.address.is_ipv4() => ("inet6", c.address),
        _ => return Ok(()),
    };
    Err(SyntaxError::new(place, format!("{address} is no {wanted} address")))
}
