//! pf.conf text to tokens, macros replaced.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Longer text is refused.
const TEXT_MAX: usize = 1 << 20;
/// Macros may contain macros; this bounds their expansion.
const TOKENS_MAX: usize = 1 << 18;

/// Where something is, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// What is wrong with a rule file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub place: Place,
    pub message: String,
}

impl SyntaxError {
    pub fn new(place: Place, message: impl Into<String>) -> SyntaxError {
        SyntaxError { place, message: message.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

impl core::error::Error for SyntaxError {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword, name, number, address or port range.
    Word(String),
    /// Text in quotes.
    Text(String),
    /// `$name`
    Macro(String),
    /// One of `{ } , ! = < > != <= >= <> >< ( )`.
    Sign(&'static str),
    Newline,
    End,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Word(w) => write!(f, "`{w}`"),
            Kind::Text(t) => write!(f, "\"{t}\""),
            Kind::Macro(m) => write!(f, "`${m}`"),
            Kind::Sign(s) => write!(f, "`{s}`"),
            Kind::Newline => f.write_str("end of line"),
            Kind::End => f.write_str("end of file"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub place: Place,
}

/// Longer signs first.
const SIGNS: [&str; 14] = ["!=", "<=", ">=", "<>", "><", "{", "}", ",", "!", "=", "<", ">", "(", ")"];

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.:/*".contains(c)
}

/// Reads `text`; the tokens end with [`Kind::End`] and hold no macros.
pub fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let start = Place { line: 1, column: 1 };
    if text.len() > TEXT_MAX {
        return Err(SyntaxError::new(start, "the rules are longer than 1 MiB"));
    }
    expand(scan(text, start)?)
}

/// Cuts text into tokens.
fn scan(text: &str, start: Place) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut place = start;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (kind, len) = match c {
            '\n' => (Some(Kind::Newline), 1),
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '\\' => match continuation(rest) {
                Some(len) => (None, len),
                None => {
                    let e = "expected the end of the line after `\\`";
                    return Err(SyntaxError::new(place, e));
                }
            },
            '"' => {
                let Some(len) = rest[1..].find(['"', '\n']).filter(|n| rest[1 + n..].starts_with('"')) else {
                    return Err(SyntaxError::new(place, "expected a closing `\"` on this line"));
                };
                (Some(Kind::Text(rest[1..1 + len].to_string())), len + 2)
            }
            '$' => {
                let len = word_len(&rest[1..]);
                if len == 0 {
                    return Err(SyntaxError::new(place, "expected a macro's name after `$`"));
                }
                (Some(Kind::Macro(rest[1..1 + len].to_string())), len + 1)
            }
            c if c.is_whitespace() => (None, c.len_utf8()),
            c if is_word(c) => {
                let len = word_len(rest);
                (Some(Kind::Word(rest[..len].to_string())), len)
            }
            c => match SIGNS.iter().find(|s| rest.starts_with(**s)) {
                Some(s) => (Some(Kind::Sign(s)), s.len()),
                None => {
                    return Err(SyntaxError::new(place, format!("unexpected character `{c}`")));
                }
            },
        };
        if let Some(kind) = kind {
            tokens.push(Token { kind, place });
        }
        let (done, after) = rest.split_at(len);
        place = advance(place, done);
        rest = after;
    }
    let kind = Kind::End;
    tokens.push(Token { kind, place });
    Ok(tokens)
}

fn word_len(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// Bytes of a backslash, blanks and a line end.
fn continuation(rest: &str) -> Option<usize> {
    let after = rest[1..].trim_start_matches([' ', '\t', '\r']);
    let blanks = rest.len() - 1 - after.len();
    match after.chars().next() {
        Some('\n') => Some(blanks + 2),
        None => Some(blanks + 1),
        _ => None,
    }
}

fn advance(place: Place, over: &str) -> Place {
    over.chars().fold(place, |p, c| match c {
        '\n' => Place { line: p.line + 1, column: 1 },
        _ => Place { column: p.column + 1, ..p },
    })
}

/// Takes macro definitions (`name = value` at the start of a line) out and puts their values where
/// `$name` stands. An error in a value is reported where it is used.
fn expand(tokens: Vec<Token>) -> Result<Vec<Token>, SyntaxError> {
    let mut macros: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    let mut out: Vec<Token> = Vec::new();
    let mut at_line_start = true;
    let mut depth = 0usize;
    let mut i = 0;
    while let Some(token) = tokens.get(i) {
        i += 1;
        if let (true, Kind::Word(name), Some(Kind::Sign("="))) =
            (at_line_start, &token.kind, tokens.get(i).map(|t| &t.kind))
        {
            let value = define(&tokens, &mut i, &macros, token.place)?;
            macros.insert(name.clone(), value);
            continue;
        }
        match &token.kind {
            Kind::Sign("{") => depth += 1,
            Kind::Sign("}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        at_line_start = token.kind == Kind::Newline && depth == 0;
        match &token.kind {
            Kind::Macro(name) => {
                let place = token.place;
                let value = lookup(&macros, name, place)?;
                out.extend(value.iter().cloned().map(|kind| Token { kind, place }));
            }
            _ => out.push(token.clone()),
        }
        if out.len() > TOKENS_MAX {
            return Err(SyntaxError::new(token.place, "the macros grow too large"));
        }
    }
    Ok(out)
}

fn lookup<'a>(
    macros: &'a BTreeMap<String, Vec<Kind>>,
    name: &str,
    place: Place,
) -> Result<&'a Vec<Kind>, SyntaxError> {
    let unknown = || SyntaxError::new(place, format!("the macro `{name}` is not defined"));
    macros.get(name).ok_or_else(unknown)
}

/// The value of a macro: everything after `=` to the end of the line, quotes removed.
fn define(
    tokens: &[Token],
    i: &mut usize,
    macros: &BTreeMap<String, Vec<Kind>>,
    place: Place,
) -> Result<Vec<Kind>, SyntaxError> {
    *i += 1;
    let mut value = Vec::new();
    let mut depth = 0usize;
    while let Some(token) = tokens.get(*i) {
        match &token.kind {
            Kind::End => break,
            Kind::Newline if depth == 0 => break,
            Kind::Newline => {}
            Kind::Text(text) => {
                let inner = scan(text, token.place)?;
                for t in inner.into_iter().filter(|t| t.kind != Kind::End) {
                    put(&mut value, macros, t)?;
                }
            }
            kind => {
                match kind {
                    Kind::Sign("{") => depth += 1,
                    Kind::Sign("}") => depth = depth.saturating_sub(1),
                    _ => {}
                }
                put(&mut value, macros, token.clone())?;
            }
        }
        if value.len() > TOKENS_MAX / 16 {
            return Err(SyntaxError::new(place, "the macro grows too large"));
        }
        *i += 1;
    }
    if value.is_empty() {
        return Err(SyntaxError::new(place, "the macro has no value"));
    }
    Ok(value)
}

fn put(value: &mut Vec<Kind>, macros: &BTreeMap<String, Vec<Kind>>, token: Token) -> Result<(), SyntaxError> {
    match token.kind {
        Kind::Macro(name) => value.extend(lookup(macros, &name, token.place)?.iter().cloned()),
        kind => value.push(kind),
    }
    Ok(())
}
