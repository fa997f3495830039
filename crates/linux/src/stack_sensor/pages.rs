//! The status pages of a running stack, as its supervisor gives them to operators.

use serde_json::json;

use super::StackSensor;
use crate::{Doing, Error, Result, memory, operator};
use eft_channel::status::Status;
use eft_cores::member::MemberView;
use eft_messages::ComponentId;

/// Asks a stack for the state of its components, and for the pages that the sensor does not know yet. Returns the state
/// of all components; that of the scheduler is among them, but not part of a sample.
pub fn refresh(stack: &str, sensor: &mut StackSensor) -> Result<Vec<MemberView>> {
    let (answer, _) = operator::ask(stack, &json!({ "op": "members" }))?;
    let views: Vec<MemberView> =
        serde_json::from_value(answer["members"].clone()).doing("answer of the stack")?;
    for view in views.iter().filter(|view| view.peer != ComponentId::CORES) {
        if sensor.update_view(view) {
            continue;
        }
        let (_, mut pages) = operator::ask(stack, &json!({ "op": "page", "component": view.name }))?;
        let page = pages
            .pop()
            .ok_or_else(|| Error::Protocol(format!("the stack gave no status page of {}", view.name)))?;
        let status =
            Status::new(memory::map(&page, false)?).map_err(|_| Error::Protocol("bad status page".into()))?;
        sensor.update(view.clone(), status);
    }
    Ok(views)
}
