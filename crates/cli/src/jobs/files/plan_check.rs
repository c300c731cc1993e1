//! Finds in a dry run what the server would refuse.

use everbell_core::Definition;
use jiff::Timestamp;

use super::plan::{Action, Step};
use crate::CliError;
use crate::connection::Connection;
use crate::error::RefusalContext;
use everbell_wire::form::format_suggestions;
use everbell_wire::printable;

/// Fails with everything that the server would refuse about a plan. Without known targets, any target is accepted.
pub(super) fn check_plan(
    known: &[String],
    wanted: &[Definition],
    steps: &[Step],
    now: Timestamp,
) -> Result<(), CliError> {
    let mut faults = Vec::new();
    for step in steps.iter().filter(|step| matches!(step.action, Action::Create | Action::NewVersion)) {
        let Some(definition) = wanted.iter().find(|definition| definition.key.as_str() == step.job_key) else {
            continue;
        };
        let mut fault = |what: &str| faults.push(format!("job `{}`: {what}", printable(&step.job_key)));
        let target = definition.target.as_str();
        // Without a live instance, the targets are not known.
        if !known.is_empty() && !known.iter().any(|label| label == target) {
            let known = format_suggestions(target, known.iter().map(String::as_str));
            fault(&format!("target: unknown target `{}`; known: {known}", printable(target)));
        }
        let is_over = definition.spec.as_ref().is_ok_and(|spec| spec.next_after(now).is_none());
        if step.action == Action::Create && definition.is_one_time() && is_over {
            fault("run_at: must be in the future");
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(CliError::invalid(format!("the server would refuse this\n  {}", faults.join("\n  "))))
}

/// The labels that live instances serve or that jobs already have; none without a live instance.
pub(super) fn known_targets(client: &Connection) -> Result<Vec<String>, CliError> {
    let list = client.send(client.targets().list()).with_action(|| "list the targets".to_owned())?;
    let targets = list.document.items;
    if targets.iter().all(|target| target.instances.is_empty()) {
        return Ok(Vec::new());
    }
    Ok(targets.into_iter().map(|target| target.target).collect())
}
