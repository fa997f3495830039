//! Statements (section 20.2.5.3) and the walk over a list of terms.

use super::path::Path;
use super::reader::Reader;
use super::value::Value;
use super::{Error, Flow, Interpreter};

impl Interpreter {
    pub(super) fn run_terms(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        while !reader.is_empty() {
            self.step(0)?;
            if self.declaration(scope, reader)?.is_some() {
                continue;
            }
            let is_bounded = matches!(reader.peek(), Some(0xa0 | 0xa2));
            match self.statement(scope, reader) {
                Ok(Flow::Next) => {}
                // While a table is loaded, the terms behind a conditional or a loop do not depend on how it ended.
                Err(error) if is_bounded && self.frames.is_empty() && !error.is_limit() => {
                    self.note(scope, &error);
                }
                outcome => return outcome,
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        let opcode = reader.peek().ok_or(Error::Malformed("a term is missing"))?;
        match opcode {
            0x86 => {
                reader.byte()?;
                self.super_name(scope, reader)?;
                self.expression(scope, reader)?;
            }
            0x9f => return reader.byte().map(|_| Flow::Continue),
            0xa0 => return self.run_if(scope, reader),
            0xa1 => return Err(Error::Malformed("an Else without If")),
            0xa2 => return self.run_while(scope, reader),
            0xa3 | 0xcc => {
                reader.byte()?;
            }
            0xa4 => {
                reader.byte()?;
                return self.expression(scope, reader).map(Flow::Return);
            }
            0xa5 => return reader.byte().map(|_| Flow::Break),
            0x5b if self.extended_statement(scope, reader)? => {}
            _ => {
                self.expression(scope, reader)?;
            }
        }
        Ok(Flow::Next)
    }

    /// True if the opcode was one of these. Waiting and signalling have no effect on what a reader computes.
    fn extended_statement(&mut self, scope: &Path, reader: &mut Reader) -> Result<bool, Error> {
        match reader.peek_second() {
            Some(0x21 | 0x22) => {
                reader.take(2)?;
                self.expression(scope, reader)?;
            }
            Some(0x24 | 0x26 | 0x27) => {
                reader.take(2)?;
                self.super_name(scope, reader)?;
            }
            Some(0x32) => {
                reader.take(3)?;
                return Err(Error::Fatal(reader.integer(4)?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn run_if(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        reader.byte()?;
        let mut then = reader.package()?;
        let mut otherwise = Reader::new(&[]);
        if reader.peek() == Some(0xa1) {
            reader.byte()?;
            otherwise = reader.package()?;
        }
        match self.expression(scope, &mut then)? {
            Value::Unknown(unknown) => self.run_both(scope, &unknown.cause, &mut then, &mut otherwise),
            condition => {
                let holds = condition.as_integer()? & self.integer_mask != 0;
                let mut way = if holds { then } else { otherwise };
                self.deeper(|this| this.run_terms(scope, &mut way))
            }
        }
    }

    fn run_while(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        reader.byte()?;
        let body = reader.package()?;
        let loop_around = self.loop_unknown.take();
        let flow = loop {
            // An empty body costs a step, too: otherwise an endless loop would never reach the limit.
            self.step(0)?;
            self.begin_stretch();
            let flow = self.run_round(scope, body.clone())?;
            if let Some(cause) = self.loop_unknown.take() {
                self.take_back_stretch();
                break self.run_while_unknown(scope, &cause, &body)?;
            }
            self.keep_stretch();
            match flow {
                Flow::Break => break Flow::Next,
                Flow::Return(value) => break Flow::Return(value),
                Flow::Next | Flow::Continue => {}
            }
        };
        self.loop_unknown = loop_around;
        Ok(flow)
    }

    /// Evaluates the condition, and runs the body once. Sets `loop_unknown` if it is unknown whether another round
    /// follows.
    fn run_round(&mut self, scope: &Path, mut body: Reader) -> Result<Flow, Error> {
        match self.expression(scope, &mut body)? {
            Value::Unknown(unknown) => {
                self.loop_unknown = Some(unknown.cause);
                Ok(Flow::Next)
            }
            condition if condition.as_integer()? & self.integer_mask == 0 => Ok(Flow::Break),
            _ => self.deeper(|this| this.run_terms(scope, &mut body)),
        }
    }
}
