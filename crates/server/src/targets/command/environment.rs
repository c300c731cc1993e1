//! The environment variables of a program.

use std::collections::BTreeMap;
use std::ffi::OsString;

use everbell::core::{JobKey, Json, OrgId};
use everbell::{Run, RunRecord};
use serde_json::{Value, json};

use crate::targets::CommandSettings;
use crate::targets::trace::trace_of;

/// Variables of the server that every program gets. Nothing else is passed on unasked: the server knows secrets.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// Variables that describe the run.
const ABOUT: [&str; 17] = [
    "EVERBELL_RUN_ID",
    "EVERBELL_TARGET",
    "EVERBELL_TRIGGER",
    "EVERBELL_ATTEMPT",
    "EVERBELL_IDEMPOTENCY_KEY",
    "EVERBELL_SCHEDULED_AT",
    "EVERBELL_JOB_KEY",
    "EVERBELL_JOB_VERSION",
    "EVERBELL_SLOT_AT",
    "EVERBELL_SLOT_AT_LOCAL",
    "EVERBELL_ORG_ID",
    "EVERBELL_LOCAL_DATE",
    "EVERBELL_UPSTREAM_RUN_ID",
    "EVERBELL_UPSTREAM_JOB_KEY",
    "EVERBELL_UPSTREAM_STATUS",
    "EVERBELL_UPSTREAM_RESULT",
    "EVERBELL_UPSTREAMS",
];

/// The longest result of the run before that is passed on; Linux takes variables of 128 KiB.
const MAX_RESULT_BYTES: usize = 64 * 1024;

/// All variables: of the server, of the settings, of the run. A later one counts.
pub(super) fn environment(settings: &CommandSettings, run: &Run) -> BTreeMap<String, OsString> {
    let passed = passed_environment(settings);
    let about = ABOUT.into_iter().zip(values(run));
    let about = about.filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    // As OpenTelemetry says for processes. A setting of these names is allowed: the trace of the run counts.
    let (parent, state) = trace_of(run);
    let trace = [("TRACEPARENT", Some(parent)), ("TRACESTATE", state)];
    let trace = trace.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    passed.into_iter().chain(about).chain(trace).collect()
}

/// The variables of the server and of the settings.
pub(crate) fn passed_environment(settings: &CommandSettings) -> BTreeMap<String, OsString> {
    let passed = PASSED.into_iter().chain(settings.pass_env.iter().map(String::as_str));
    let passed = passed.filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)));
    let given = settings.env.iter().map(|(name, value)| (name.clone(), value.reveal().into()));
    passed.chain(given).collect()
}

/// In the order of [`ABOUT`]. What a run does not have is not set.
fn values(run: &Run) -> [Option<String>; ABOUT.len()] {
    [
        Some(run.id().to_string()),
        Some(run.target().to_string()),
        Some(run.trigger().to_string()),
        Some(run.attempt().to_string()),
        Some(run.idempotency_key()),
        Some(run.scheduled_at().to_string()),
        run.job_key().map(JobKey::to_string),
        run.job_version().map(|version| version.to_string()),
        run.slot_utc().map(|slot| slot.to_string()),
        run.slot().map(|slot| slot.to_string()),
        run.org().map(OrgId::to_string),
        run.local_date().map(|date| date.to_string()),
        run.upstream().map(|before| before.id.to_string()),
        run.upstream().and_then(|before| before.job_key.as_ref()).map(JobKey::to_string),
        run.upstream().map(|before| before.status.to_string()),
        run.upstream().and_then(|before| before.result.as_ref()).map(Json::to_string).filter(|text| is_short(text)),
        upstreams(run).filter(|text| is_short(text)),
    ]
}

/// The runs that the job waited for, as JSON; only if there are several.
fn upstreams(run: &Run) -> Option<String> {
    let one = |before: &RunRecord| {
        let result = before.result.as_ref().and_then(|result| serde_json::from_str(result.as_str()).ok());
        let key = before.job_key.as_ref().map(JobKey::as_str);
        json!({ "runId": before.id.to_string(), "jobKey": key, "status": before.status.as_str(),
                "result": result.unwrap_or(Value::Null) })
    };
    let several = Some(run.upstreams()).filter(|runs| runs.len() > 1)?;
    Some(Value::Array(several.iter().map(one).collect()).to_string())
}

/// Whether a system takes this as a variable: longer ones keep a program from starting.
fn is_short(text: &str) -> bool {
    text.len() <= MAX_RESULT_BYTES
}

/// Returns the problem of a variable's name, if there is one.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let shown = name.escape_debug();
    if name.is_empty() || name.contains(['=', '\0']) {
        Some(format!("`{shown}` is not a valid variable name: it must not be empty or contain `=` or NUL"))
    } else if ABOUT.contains(&name) {
        Some(format!("`{shown}` is reserved: it describes the run"))
    } else {
        None
    }
}
