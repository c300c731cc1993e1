//! `[[job]]` blocks.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::Draft;
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::fields::JOB_STATE;
use super::layers::Layers;
use super::targets::refuse_all;
use everbell_cli::PausedJob;
use everbell_wire::FaultCode;
use everbell_wire::body::job;
use everbell_wire::form::{Fault, Form, Naming, format_suggestions};
use everbell_wire::time_input::excerpt;

/// Reads the jobs of the blocks. `known` are the labels of the targets, if they are known.
pub(super) fn read(layers: &mut Layers, known: Option<&[String]>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (n, block) in layers.blocks("job").iter().enumerate() {
        let place = format!("/job/{n}");
        if !block.is_object() {
            layers.refuse(&Fault::new(place, FaultCode::WrongType, "must be a table"));
            continue;
        }
        // A number that could not be read has its own problem.
        let payload = block.get("payload").filter(|payload| !payload.is_null());
        let payload = payload.and_then(|payload| to_raw_value(payload).ok());
        let read = job::read(block, payload.as_deref(), Naming::Snake);
        let mut faults = read.faults;
        if let (Some(target), Some(known)) = (block.get("target").and_then(Value::as_str), known)
            && !known.iter().any(|label| label == target)
        {
            faults.push(Fault::new("/target", FaultCode::UnknownTarget, unknown_target(target, known)));
        }
        let key = block.get("job_key").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(first) = seen.get(&key).filter(|_| !key.is_empty()) {
            faults.push(Fault::new(
                "/job_key",
                FaultCode::Invalid,
                format!("is defined twice; the other one is on line {first}"),
            ));
        }
        seen.entry(key).or_insert_with(|| layers.document.line(&format!("{place}/job_key")).unwrap_or_default());
        drafts.push(read.draft);
        refuse_all(layers, &place, faults);
    }
    drafts
}

/// Reads `[[job_state]]` blocks: the jobs that are paused.
pub(super) fn read_states(layers: &mut Layers, blocks: Value) -> Vec<PausedJob> {
    let blocks = match blocks {
        Value::Array(blocks) => blocks,
        Value::Null => Vec::new(),
        _ => {
            let detail = "must be written as `[[job_state]]` blocks, with double brackets";
            layers.refuse(&Fault::new("/job_state".to_owned(), FaultCode::WrongType, detail));
            Vec::new()
        }
    };
    let mut states: Vec<PausedJob> = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        let mut form = Form::read(block, JOB_STATE, Naming::Snake);
        let job_key = form.text("jobKey").unwrap_or_default().to_owned();
        if states.iter().any(|state| state.job_key == job_key) {
            form.fault("jobKey", FaultCode::Invalid, "already has a state; each job has at most one block");
        }
        let pause_reason = form.text("pauseReason").unwrap_or_default().to_owned();
        let paused_until = form.text("pausedUntil").map(str::parse::<Timestamp>);
        if let Some(Err(_)) = paused_until {
            form.fault(
                "pausedUntil",
                FaultCode::Invalid,
                "must be a time with its offset, such as 2027-01-31T08:00:00Z",
            );
        }
        states.push(PausedJob { job_key, pause_reason, paused_until: paused_until.and_then(Result::ok) });
        refuse_all(layers, &format!("/job_state/{n}"), form.faults());
    }
    states
}

fn unknown_target(target: &str, known: &[String]) -> String {
    let labels: BTreeSet<&str> = known.iter().map(String::as_str).filter(|label| !label.is_empty()).collect();
    let some = if labels.is_empty() {
        "none; write a `[[target]]` block".to_owned()
    } else {
        format_suggestions(target, labels)
    };
    format!("there is no target `{}`; known: {some}", excerpt(target))
}
