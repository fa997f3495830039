//! Statements (section 20.2.5.3) and the walk over a list of terms.

use super::namespace::Path;
use super::reader::Reader;
use super::{Error, Flow, Interpreter};

impl Interpreter {
    pub(super) fn run_terms(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        while !reader.is_empty() {
            self.step(0)?;
            if self.declaration(scope, reader)?.is_some() {
                continue;
            }
            match self.statement(scope, reader)? {
                Flow::Next => {}
                flow => return Ok(flow),
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

    /// True if the opcode was one of these. Waiting and signalling mean nothing to a reader.
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
        let otherwise = if reader.peek() == Some(0xa1) {
            reader.byte()?;
            Some(reader.package()?)
        } else {
            None
        };
        let holds = self.integer(scope, &mut then)? != 0;
        match (holds, otherwise) {
            (true, _) => self.deeper(|this| this.run_terms(scope, &mut then)),
            (false, Some(mut otherwise)) => self.deeper(|this| this.run_terms(scope, &mut otherwise)),
            (false, None) => Ok(Flow::Next),
        }
    }

    fn run_while(&mut self, scope: &Path, reader: &mut Reader) -> Result<Flow, Error> {
        reader.byte()?;
        let body = reader.package()?;
        loop {
            // Even an empty body costs, or an endless loop would not end.
            self.step(0)?;
            let mut body = body.clone();
            if self.integer(scope, &mut body)? == 0 {
                return Ok(Flow::Next);
            }
            match self.deeper(|this| this.run_terms(scope, &mut body))? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
        }
    }
}
