//! pf.conf tokens to rules. Every error says where it is and what was expected.
//!
//! ```text
//! table <bad> { 192.0.2.0/24, !192.0.2.7 }
//! block drop in on $ext from <bad>
//! pass in quick on $ext inet proto tcp from any to 10.77.0.2 port { 22, 80:89 } flags S/SA keep state
//! ```

use crate::lexer::{Kind, Place, SyntaxError, Token, tokens};
use crate::names::*;
use crate::rule::*;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use eft_base::Cidr;
use eft_base::wire::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};

const RULES_MAX: usize = 16384;

type Result<T> = core::result::Result<T, SyntaxError>;

/// Reads a rule file.
pub fn parse(text: &str) -> Result<Ruleset> {
    let mut p = Parser { tokens: tokens(text)?, at: 0, ruleset: Ruleset::default() };
    p.file()?;
    Ok(p.ruleset)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    ruleset: Ruleset,
}

impl Parser {
    fn token(&self) -> &Token {
        // The last token is `End`, and it is never passed.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn place(&self) -> Place {
        self.token().place
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn word(&self) -> Option<&str> {
        match &self.token().kind {
            Kind::Word(w) => Some(w),
            _ => None,
        }
    }

    /// Passes over `word` if it is next.
    fn take(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.advance();
        }
        found
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.token().kind, Kind::Sign(s) if s == sign);
        if found {
            self.advance();
        }
        found
    }

    fn skip_newlines(&mut self) {
        while self.token().kind == Kind::Newline {
            self.advance();
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = &self.token().kind;
        let message = format!("expected {what}, found {found}");
        Err(SyntaxError::new(self.place(), message))
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.take_sign(sign) {
            return Ok(());
        }
        self.expected(&format!("`{sign}`"))
    }

    /// A word or quoted text.
    fn name(&mut self, what: &str) -> Result<String> {
        let name = match &self.token().kind {
            Kind::Word(w) | Kind::Text(w) => w.clone(),
            _ => return self.expected(what),
        };
        self.advance();
        Ok(name)
    }

    /// One item, or several in braces, separated by commas, blanks or line ends.
    fn list<T>(&mut self, item: impl Fn(&mut Parser) -> Result<T>) -> Result<Vec<T>> {
        if !self.take_sign("{") {
            return Ok(alloc::vec![item(self)?]);
        }
        let mut items = Vec::new();
        loop {
            self.skip_newlines();
            if self.take_sign("}") {
                break;
            }
            items.push(item(self)?);
            self.skip_newlines();
            self.take_sign(",");
        }
        if items.is_empty() {
            return self.expected("something in the braces before this");
        }
        Ok(items)
    }

    fn file(&mut self) -> Result<()> {
        loop {
            self.skip_newlines();
            match self.word() {
                Some("pass" | "block") => {
                    let place = self.place();
                    let rule = self.rule()?;
                    if self.ruleset.rules.len() >= RULES_MAX {
                        let e = format!("more than {RULES_MAX} rules");
                        return Err(SyntaxError::new(place, e));
                    }
                    self.ruleset.rules.push(rule);
                }
                Some("table") => self.table()?,
                None if self.token().kind == Kind::End => return Ok(()),
                _ => return self.expected("`pass`, `block`, `table` or `NAME =`"),
            }
            if !matches!(self.token().kind, Kind::Newline | Kind::End) {
                return self.expected("the end of the line");
            }
        }
    }

    fn table(&mut self) -> Result<()> {
        self.advance();
        let name = self.table_name()?;
        if self.ruleset.tables.contains_key(&name) {
            return self.expected(&format!("no second definition of the table <{name}>"));
        }
        while self.take("persist") || self.take("const") {}
        let entries = if matches!(self.token().kind, Kind::Sign("{")) {
            if self.is_empty_list() { Vec::new() } else { self.list(Parser::table_entry)? }
        } else if matches!(self.token().kind, Kind::Newline | Kind::End) {
            Vec::new()
        } else {
            return self.expected("`persist`, `const` or `{`");
        };
        self.ruleset.tables.insert(name, Table::new(entries));
        Ok(())
    }

    /// Passes over `{ }`, which only a table may be.
    fn is_empty_list(&mut self) -> bool {
        let start = self.at;
        self.advance();
        self.skip_newlines();
        let empty = self.take_sign("}");
        if !empty {
            self.at = start;
        }
        empty
    }

    fn table_name(&mut self) -> Result<String> {
        self.expect_sign("<")?;
        let name = match self.word() {
            Some(w) => w.to_string(),
            None => return self.expected("a table's name"),
        };
        self.advance();
        self.expect_sign(">")?;
        Ok(name)
    }

    fn table_entry(&mut self) -> Result<Not<Cidr>> {
        let negated = self.take_sign("!");
        let value = self.network("an address or a prefix")?;
        Ok(Not { negated, value })
    }

    fn network(&mut self, what: &str) -> Result<Cidr> {
        let Some(cidr) = self.word().and_then(read_network) else {
            return self.expected(what);
        };
        self.advance();
        Ok(cidr)
    }

    fn rule(&mut self) -> Result<Rule> {
        let action = if self.take("pass") {
            Action::Pass
        } else {
            self.advance();
            Action::Block(self.returned()?)
        };
        let direction = if self.take("in") {
            Some(Direction::In)
        } else if self.take("out") {
            Some(Direction::Out)
        } else {
            None
        };
        let quick = self.take("quick");
        let interfaces = if self.take("on") { self.list(Parser::interface)? } else { Vec::new() };
        let family = if self.take("inet") {
            Some(Family::Inet)
        } else if self.take("inet6") {
            Some(Family::Inet6)
        } else {
            None
        };
        let protocols = if self.take("proto") { self.list(Parser::protocol)? } else { Vec::new() };
        if action == Action::Block(Return::Reset) && protocols != [PROTOCOL_TCP] {
            return self.expected("`proto tcp` for `return-rst`");
        }
        let mut rule = Rule {
            action,
            direction,
            quick,
            interfaces,
            family,
            protocols,
            from: Peers::default(),
            to: Peers::default(),
            flags: None,
            icmp: Vec::new(),
            keep_state: false,
        };
        if !self.take("all") {
            if self.take("from") {
                rule.from = self.peers(&rule)?;
            }
            if self.take("to") {
                rule.to = self.peers(&rule)?;
            }
        }
        self.options(&mut rule)?;
        Ok(rule)
    }

    /// What follows `block`.
    fn returned(&mut self) -> Result<Return> {
        let returned = match self.word() {
            Some("drop") => Return::Nothing,
            Some("return") => Return::Fitting,
            Some("return-rst") => Return::Reset,
            Some("return-icmp") => Return::Icmp,
            Some(w) if w.starts_with("return") => {
                return self.expected("`drop`, `return`, `return-rst` or `return-icmp`");
            }
            _ => return Ok(Return::Nothing),
        };
        self.advance();
        if matches!(self.token().kind, Kind::Sign("(")) {
            return self.expected("no code or TTL in brackets: the code is that of an unreachable port");
        }
        Ok(returned)
    }

    fn interface(&mut self) -> Result<Not<String>> {
        let negated = self.take_sign("!");
        let value = self.name("an interface's name")?;
        Ok(Not { negated, value })
    }

    fn protocol(&mut self) -> Result<u8> {
        let Some(protocol) = self.word().and_then(read_protocol) else {
            return self.expected("a protocol: tcp, udp, icmp, … or a number below 256");
        };
        self.advance();
        Ok(protocol)
    }

    fn peers(&mut self, rule: &Rule) -> Result<Peers> {
        let mut peers = Peers::default();
        if self.word() != Some("port") {
            let place = self.place();
            peers.hosts = self.list(Parser::host)?;
            for host in &peers.hosts {
                check_family(rule.family, &host.value).map_err(|e| SyntaxError::new(place, e))?;
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

    fn port(&mut self) -> Result<PortMatch> {
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

    fn options(&mut self, rule: &mut Rule) -> Result<()> {
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
                rule.icmp = self.list(Parser::icmp)?;
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
                    "`from`, `to`, `port`, `flags`, `icmp-type`, `keep state`, `no state` \
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

    fn flags(&mut self) -> Result<Option<Flags>> {
        if self.take("any") {
            return Ok(None);
        }
        let Some(flags) = self.word().and_then(read_flags) else {
            return self.expected("flags such as S/SA (of F S R P A U E W), or `any`");
        };
        self.advance();
        Ok(Some(flags))
    }

    fn icmp(&mut self) -> Result<IcmpMatch> {
        let Some(kind) = self.word().and_then(read_icmp) else {
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

fn check_family(family: Option<Family>, host: &Host) -> core::result::Result<(), String> {
    match (family, host) {
        (Some(Family::Inet), Host::Network(c)) if c.address.is_ipv6() => {
            Err(format!("{} is no inet address", c.address))
        }
        (Some(Family::Inet6), Host::Network(c)) if c.address.is_ipv4() => {
            Err(format!("{} is no inet6 address", c.address))
        }
        _ => Ok(()),
    }
}
