//! What a server would refuse about a plan, so that a dry run says the same as the run itself.

use everbell_core::Definition;
use everbell_wire as wire;
use jiff::Timestamp;

use super::plan::{Action, Step};
use crate::CliError;
use crate::client::{Asked, Client};
use everbell_wire::form::format_suggestions;
use everbell_wire::printable;

/// Refuses a plan as the server would, with everything that is wrong with it.
pub(super) fn foreseen(client: &Client, wanted: &[Definition], steps: &[Step], now: Timestamp) -> Result<(), CliError> {
    let served = served(client)?;
    let mut faults = Vec::new();
    for step in steps.iter().filter(|step| matches!(step.action, Action::Create | Action::NewVersion)) {
        let Some(own) = wanted.iter().find(|own| own.key.as_str() == step.job_key) else { continue };
        let mut fault = |what: &str| faults.push(format!("job `{}`: {what}", printable(&step.job_key)));
        let target = own.target.as_str();
        // Nobody who serves anything has been heard of: which targets there are is not known then.
        if !served.is_empty() && !served.iter().any(|label| label == target) {
            let known = format_suggestions(target, served.iter().map(String::as_str));
            fault(&format!("target: unknown target `{}`; known: {known}", printable(target)));
        }
        let is_over = own.spec.as_ref().is_ok_and(|spec| spec.next_after(now).is_none());
        if step.action == Action::Create && own.is_one_time() && is_over {
            fault("run_at: must be in the future");
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(CliError::invalid(format!("the server would refuse this\n  {}", faults.join("\n  "))))
}

/// The labels that live instances serve.
fn served(client: &Client) -> Result<Vec<String>, CliError> {
    let list = client.items::<wire::Target>("/targets").asked(|| "list the targets".to_owned())?;
    let live = list.items.into_iter().filter(|target| !target.instances.is_empty());
    Ok(live.map(|target| target.target).collect())
}
