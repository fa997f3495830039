//! pf.conf tokens to rules. Every error says where it is and what was expected.
//!
//! ```text
//! table <bad> { 192.0.2.0/24, !192.0.2.7 }
//! block drop in on $ext from <bad>
//! pass in quick on $ext inet proto tcp from any to 10.77.0.2 port { 22, 80:89 } flags S/SA keep state
//! ```

mod packets;

use crate::lexer::{Kind, Place, SyntaxError, Token, tokens};
use crate::names::*;
use crate::rule::*;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use eft_base::Cidr;
use eft_base::wire::PROTOCOL_TCP;

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

    /// The word after `block`.
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
}
