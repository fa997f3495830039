//! What leaves the filter.

use eft_component::{Answer, Output};
use eft_messages::filter::FilterToIp;
use eft_messages::{ComponentId, Encoded};

/// A message to ip, or an answer to an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum ToIp {
    ToIp(FilterToIp),
    Answer(Answer),
}

impl Output for ToIp {
    type Effect = Answer;

    fn peer(&self) -> Option<ComponentId> {
        matches!(self, ToIp::ToIp(_)).then_some(ComponentId::IP)
    }

    fn encode(&self) -> Encoded {
        match self {
            ToIp::ToIp(m) => m.encode(),
            ToIp::Answer(_) => Encoded::default(),
        }
    }

    fn into_effect(self) -> Option<Answer> {
        match self {
            ToIp::ToIp(_) => None,
            ToIp::Answer(answer) => Some(answer),
        }
    }
}
