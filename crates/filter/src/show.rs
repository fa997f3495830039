//! Rules and states as text in pfctl's style. A shown rule can be read again.

use crate::names::{FLAG_LETTERS, PROTOCOLS, icmp_types};
use crate::rule::*;
use core::fmt::{self, Display, Formatter};
use eft_base::Cidr;
use eft_base::wire::PROTOCOL_ICMP;

/// `a`, or `{ a, b }`.
fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    match items {
        [one] => write!(f, "{one}"),
        _ => {
            f.write_str("{ ")?;
            for (i, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
            }
            f.write_str(" }")
        }
    }
}

impl<T: Display> Display for Not<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.negated { "! " } else { "" }, self.value)
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Host::Any => f.write_str("any"),
            Host::Table(name) => write!(f, "<{name}>"),
            Host::Network(c) => Network(c).fmt(f),
        }
    }
}

/// A prefix; if it covers one address, just the address.
struct Network<'a>(&'a Cidr);

impl Display for Network<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let whole = if self.0.address.is_ipv4() { 32 } else { 128 };
        if self.0.prefix_len == whole { write!(f, "{}", self.0.address) } else { write!(f, "{}", self.0) }
    }
}

impl Display for PortMatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PortMatch::Equal(a) => write!(f, "= {a}"),
            PortMatch::Unequal(a) => write!(f, "!= {a}"),
            PortMatch::Less(a) => write!(f, "< {a}"),
            PortMatch::LessOrEqual(a) => write!(f, "<= {a}"),
            PortMatch::Greater(a) => write!(f, "> {a}"),
            PortMatch::GreaterOrEqual(a) => write!(f, ">= {a}"),
            PortMatch::Range(a, b) => write!(f, "{a}:{b}"),
            PortMatch::Between(a, b) => write!(f, "{a} >< {b}"),
            PortMatch::Outside(a, b) => write!(f, "{a} <> {b}"),
        }
    }
}

impl Display for Peers {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.hosts.is_empty() {
            f.write_str("any")?;
        } else {
            list(f, &self.hosts)?;
        }
        if !self.ports.is_empty() {
            f.write_str(" port ")?;
            list(f, &self.ports)?;
        }
        Ok(())
    }
}

fn letters(f: &mut Formatter<'_>, bits: u8) -> fmt::Result {
    for (i, letter) in FLAG_LETTERS.iter().enumerate() {
        if bits & 1 << i != 0 {
            write!(f, "{letter}")?;
        }
    }
    Ok(())
}

impl Display for Flags {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        letters(f, self.set)?;
        f.write_str("/")?;
        letters(f, self.mask)
    }
}

/// A number by its name in a table, if it has one there.
struct Named<'a>(&'a [(&'a str, u8)], u8);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.iter().find(|(_, n)| *n == self.1) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.1),
        }
    }
}

/// A protocol by name.
pub(crate) fn protocol(number: u8) -> impl Display {
    Named(&PROTOCOLS, number)
}

/// A type by the name that it has among these.
struct Icmp<'a>(&'a IcmpMatch, &'static [(&'static str, u8)]);

impl Display for Icmp<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Named(self.1, self.0.kind))?;
        match self.0.code {
            Some(code) => write!(f, " code {code}"),
            None => Ok(()),
        }
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.action {
            Action::Pass => "pass",
            Action::Block(Return::Nothing) => "block drop",
            Action::Block(Return::Fitting) => "block return",
            Action::Block(Return::Reset) => "block return-rst",
            Action::Block(Return::Icmp) => "block return-icmp",
        })?;
        f.write_str(match self.direction {
            None => "",
            Some(Direction::In) => " in",
            Some(Direction::Out) => " out",
        })?;
        f.write_str(if self.quick { " quick" } else { "" })?;
        if !self.interfaces.is_empty() {
            f.write_str(" on ")?;
            list(f, &self.interfaces)?;
        }
        f.write_str(match self.family {
            None => "",
            Some(Family::Inet) => " inet",
            Some(Family::Inet6) => " inet6",
        })?;
        if !self.protocols.is_empty() {
            f.write_str(" proto ")?;
            let names: alloc::vec::Vec<_> = self.protocols.iter().map(|p| protocol(*p)).collect();
            list(f, &names)?;
        }
        let nothing = Peers::default();
        if self.from == nothing && self.to == nothing {
            f.write_str(" all")?;
        } else {
            write!(f, " from {} to {}", self.from, self.to)?;
        }
        match self.flags {
            Some(flags) => write!(f, " flags {flags}")?,
            None if self.keep_state => f.write_str(" flags any")?,
            None => {}
        }
        if !self.icmp.is_empty() {
            let (keyword, names) = icmp_types(self.protocols.first().copied().unwrap_or(PROTOCOL_ICMP));
            write!(f, " {keyword} ")?;
            let all: alloc::vec::Vec<_> = self.icmp.iter().map(|m| Icmp(m, names)).collect();
            list(f, &all)?;
        }
        f.write_str(if self.keep_state { " keep state" } else { "" })
    }
}

impl Display for Ruleset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, table) in &self.tables {
            write!(f, "table <{name}> {{")?;
            for (i, entry) in table.entries().iter().enumerate() {
                let value = Network(&entry.value);
                let entry = Not { negated: entry.negated, value };
                write!(f, "{} {entry}", if i > 0 { "," } else { "" })?;
            }
            f.write_str(" }\n")?;
        }
        for rule in &self.rules {
            writeln!(f, "{rule}")?;
        }
        Ok(())
    }
}
