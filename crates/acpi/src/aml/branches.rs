//! Branches on an unknown condition: both ways are taken, and whatever differs afterwards is unknown.
//!
//! Promises: a value that is known after both ways is what the firmware computes, whatever the hardware holds. Objects
//! that only one way makes are kept and listed in `perhaps`. The two ways are joined where they meet, so the work grows
//! with the code and not with the number of ways through it.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::namespace::Object;
use super::path::Path;
use super::reader::Reader;
use super::value::{Target, Value};
use super::{Error, Flow, Interpreter};

/// Whatever can be assigned as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    Local { frame: usize, index: usize },
    Argument { frame: usize, index: usize },
    Named(Path),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Value(Value),
    Object(Option<Object>),
}

/// What a stretch of code changed: the former contents while the stretch runs, or the new contents of one that was
/// undone.
pub(super) type Changes = BTreeMap<Root, Content>;

/// A way on which the method has returned already.
#[derive(Debug)]
pub(super) struct Returned {
    value: Value,
    cause: Rc<str>,
    /// What the way had changed since the method began.
    changes: Changes,
}

/// After this many rounds, a loop has made everything unknown that it can.
const LOOP_ROUNDS_MAX: usize = 16;

impl Interpreter {
    /// Records a place's content for the current stretch. Called before the place changes.
    pub(super) fn remember(&mut self, root: Root) -> Result<(), Error> {
        if self.stretches.last().is_none_or(|stretch| stretch.contains_key(&root)) {
            return Ok(());
        }
        let content = self.content(&root);
        if let Content::Value(value) | Content::Object(Some(Object::Value(value))) = &content {
            let size = value.size();
            self.charge(size)?;
            self.step(size / 64)?;
        }
        if let Some(stretch) = self.stretches.last_mut() {
            stretch.insert(root, content);
        }
        Ok(())
    }

    pub(super) fn remember_target(&mut self, target: &Target) -> Result<(), Error> {
        match target {
            Target::Local { frame, index } => self.remember(Root::Local { frame: *frame, index: *index }),
            Target::Argument { frame, index } => {
                self.remember(Root::Argument { frame: *frame, index: *index })
            }
            Target::Named(path) => self.remember(Root::Named(path.clone())),
            Target::Element { of, .. } => self.remember_target(of),
            Target::Nowhere | Target::Unknown { .. } => Ok(()),
        }
    }

    fn content(&self, root: &Root) -> Content {
        let value = |value: Option<&Value>| Content::Value(value.cloned().unwrap_or_default());
        match root {
            Root::Local { frame, index } => value(self.frames.get(*frame).map(|frame| &frame.locals[*index])),
            Root::Argument { frame, index } => {
                value(self.frames.get(*frame).map(|frame| &frame.arguments[*index]))
            }
            Root::Named(path) => Content::Object(self.namespace.get(path).cloned()),
        }
    }

    fn put(&mut self, root: &Root, content: Content) {
        match (root, content) {
            (Root::Local { frame, index }, Content::Value(value)) => {
                if let Some(frame) = self.frames.get_mut(*frame) {
                    frame.locals[*index] = value;
                }
            }
            (Root::Argument { frame, index }, Content::Value(value)) => {
                if let Some(frame) = self.frames.get_mut(*frame) {
                    frame.arguments[*index] = value;
                }
            }
            (Root::Named(path), Content::Object(object)) => self.namespace.restore(path, object),
            _ => {}
        }
    }

    pub(super) fn begin_stretch(&mut self) {
        self.stretches.push(Changes::new());
    }

    /// Ends the stretch and keeps its changes, which now belong to the surrounding stretch.
    pub(super) fn keep_stretch(&mut self) {
        let ended = self.stretches.pop().unwrap_or_default();
        let frames = self.frames.len();
        let Some(around) = self.stretches.last_mut() else { return };
        for (root, former) in ended {
            let is_gone =
                matches!(root, Root::Local { frame, .. } | Root::Argument { frame, .. } if frame >= frames);
            if !is_gone {
                around.entry(root).or_insert(former);
            }
        }
    }

    /// Undoes the stretch and returns the contents that it had made.
    pub(super) fn take_back_stretch(&mut self) -> Changes {
        let ended = self.stretches.pop().unwrap_or_default();
        let mut made = Changes::new();
        for (root, former) in ended {
            made.insert(root.clone(), self.content(&root));
            self.put(&root, former);
        }
        made
    }

    /// Runs terms as a stretch of their own. Only limits are errors here; the caller judges the other errors.
    fn run_stretch(&mut self, scope: &Path, terms: &mut Reader) -> Result<Result<Flow, Error>, Error> {
        self.begin_stretch();
        let depth = self.stretches.len();
        let outcome = self.deeper(|this| this.run_terms(scope, terms));
        while self.stretches.len() > depth {
            self.keep_stretch();
        }
        match outcome {
            Err(error) if error.is_limit() => Err(error),
            outcome => Ok(outcome),
        }
    }

    /// Takes both ways of a conditional. The first way's changes are undone before the second begins.
    pub(super) fn run_both(
        &mut self,
        scope: &Path,
        cause: &Rc<str>,
        then: &mut Reader,
        otherwise: &mut Reader,
    ) -> Result<Flow, Error> {
        let first = self.run_stretch(scope, then)?;
        let first = self.way_ended(scope, cause, first)?;
        let made = self.take_back_stretch();
        let second = self.run_stretch(scope, otherwise)?;
        let Some(first) = first else {
            self.keep_stretch();
            return second;
        };
        let Some(second) = self.way_ended(scope, cause, second)? else {
            self.take_back_stretch();
            self.make(made)?;
            return Ok(first);
        };
        let joined = self.join(made, cause);
        self.keep_stretch();
        joined?;
        if !matches!((&first, &second), (Flow::Next, Flow::Next)) {
            // One way leaves or repeats the loop around, which then goes on an unknown number of times.
            self.loop_unknown = Some(cause.clone());
        }
        Ok(Flow::Next)
    }

    /// How a way continues. A way that returned is put aside until its method ends. So is a way that failed; its result
    /// is unknown. While a table is loaded there is no method: the failure is recorded, and the next term follows.
    fn way_ended(
        &mut self,
        scope: &Path,
        cause: &Rc<str>,
        outcome: Result<Flow, Error>,
    ) -> Result<Option<Flow>, Error> {
        match outcome {
            Ok(Flow::Return(_)) if self.frames.is_empty() => Ok(Some(Flow::Next)),
            Ok(Flow::Return(value)) => self.put_aside(value, cause).map(|()| None),
            Ok(flow) => Ok(Some(flow)),
            Err(error) if self.frames.is_empty() => {
                self.note(scope, &error);
                Ok(Some(Flow::Next))
            }
            Err(_) => self.put_aside(Value::unknown(cause), cause).map(|()| None),
        }
    }

    fn put_aside(&mut self, value: Value, cause: &Rc<str>) -> Result<(), Error> {
        let Some(first) = self.frames.last().map(|frame| frame.stretch) else { return Ok(()) };
        let roots: Vec<Root> = self.stretches[first.min(self.stretches.len())..]
            .iter()
            .flat_map(|stretch| stretch.keys().cloned())
            .collect();
        self.step(roots.len())?;
        let mut changes = Changes::new();
        for root in roots {
            let content = self.content(&root);
            if let Content::Value(value) | Content::Object(Some(Object::Value(value))) = &content {
                self.charge(value.size())?;
            }
            changes.insert(root, content);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.returned.push(Returned { value, cause: cause.clone(), changes });
        }
        Ok(())
    }

    /// At the end of a method: joins the result of the way that reached the end with those of the ways that returned
    /// earlier.
    pub(super) fn join_returned(&mut self, outcome: Result<Flow, Error>) -> Result<Flow, Error> {
        let returned = match self.frames.last_mut() {
            Some(frame) => core::mem::take(&mut frame.returned),
            None => return outcome,
        };
        if returned.is_empty() {
            return outcome;
        }
        let mut result = match outcome {
            Err(error) if error.is_limit() => return Err(error),
            Err(_) => Value::unknown(&returned[0].cause),
            Ok(Flow::Return(value)) => value,
            Ok(_) => Value::Integer(0),
        };
        for way in returned {
            let former = self.stretches.last().cloned().unwrap_or_default();
            let mut at_return = way.changes;
            for (root, content) in former {
                at_return.entry(root).or_insert(content);
            }
            self.join(at_return, &way.cause)?;
            result = result.either(way.value, &way.cause);
        }
        Ok(Flow::Return(result))
    }

    fn make(&mut self, made: Changes) -> Result<(), Error> {
        for (root, content) in made {
            self.remember(root.clone())?;
            self.put(&root, content);
        }
        Ok(())
    }

    /// Joins the present contents with those that the other way made: where they differ, the content is unknown.
    fn join(&mut self, other: Changes, cause: &Rc<str>) -> Result<(), Error> {
        // The other way left alone what only this way changed.
        let mut other = other;
        let here: Vec<(Root, Content)> = self
            .stretches
            .last()
            .into_iter()
            .flatten()
            .filter(|(root, _)| !other.contains_key(*root))
            .map(|(root, former)| (root.clone(), former.clone()))
            .collect();
        other.extend(here);
        for (root, there) in other {
            self.step(1)?;
            let here = self.content(&root);
            if here == there {
                continue;
            }
            self.remember(root.clone())?;
            if let Root::Named(path) = &root
                && matches!((&here, &there), (Content::Object(a), Content::Object(b)) if !is_value(a) || !is_value(b))
            {
                self.perhaps.entry(path.clone()).or_insert_with(|| cause.clone());
            }
            let joined = either(here, there, cause);
            if let Content::Value(value) | Content::Object(Some(Object::Value(value))) = &joined {
                self.charge(value.size())?;
            }
            self.put(&root, joined);
        }
        Ok(())
    }

    /// Runs a loop with an unknown number of rounds: whatever its body changes is unknown.
    pub(super) fn run_while_unknown(
        &mut self,
        scope: &Path,
        cause: &Rc<str>,
        body: &Reader,
    ) -> Result<Flow, Error> {
        for _ in 0..LOOP_ROUNDS_MAX {
            let mut body = body.clone();
            self.begin_stretch();
            let depth = self.stretches.len();
            let outcome = self
                .expression(scope, &mut body)
                .and_then(|_| self.deeper(|this| this.run_terms(scope, &mut body)));
            while self.stretches.len() > depth {
                self.keep_stretch();
            }
            match outcome {
                Err(error) if error.is_limit() => return Err(error),
                outcome => self.way_ended(scope, cause, outcome)?,
            };
            let made = self.take_back_stretch();
            let mut is_stable = true;
            for (root, there) in made {
                let here = self.content(&root);
                let is_known = |content: &Content| match content {
                    Content::Value(value) | Content::Object(Some(Object::Value(value))) => {
                        value.cause().is_none()
                    }
                    Content::Object(_) => false,
                };
                match (&here, &there) {
                    _ if here == there => {}
                    (Content::Object(None), Content::Object(Some(object))) => {
                        let object = if matches!(object, Object::Value(_)) {
                            Object::Value(Value::unknown(cause))
                        } else {
                            object.clone()
                        };
                        is_stable = false;
                        self.make([(root, Content::Object(Some(object)))].into())?;
                    }
                    _ if is_known(&here) => {
                        is_stable = false;
                        let unknown = Value::unknown(cause);
                        let content = match here {
                            Content::Value(_) => Content::Value(unknown),
                            Content::Object(_) => Content::Object(Some(Object::Value(unknown))),
                        };
                        self.make([(root, content)].into())?;
                    }
                    _ => {}
                }
            }
            if is_stable {
                break;
            }
        }
        self.loop_unknown = None;
        Ok(Flow::Next)
    }
}

fn is_value(object: &Option<Object>) -> bool {
    matches!(object, Some(Object::Value(_)))
}

fn either(here: Content, there: Content, cause: &Rc<str>) -> Content {
    match (here, there) {
        (Content::Value(here), Content::Value(there)) => Content::Value(here.either(there, cause)),
        (Content::Object(Some(Object::Value(here))), Content::Object(Some(Object::Value(there)))) => {
            Content::Object(Some(Object::Value(here.either(there, cause))))
        }
        (Content::Object(None), there) => there,
        (here, _) => here,
    }
}
