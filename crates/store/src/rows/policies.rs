//! Policies as JSON text. Only what differs from the defaults is written, so a release that adds a policy reads old rows.

use std::time::Duration;

use everbell_core::{
    Backoff, CatchUp, Dependency, Invalid, JobKey, OnLeaseLoss, OnLost, Overlap, Policies, PolicyValues,
};
use serde::{Deserialize, Serialize};

use super::calendars::CalendarsText;

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_runs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catch_up: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catch_up_limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catch_up_window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_initial_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_max_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_after_failures: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_within_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_lease_loss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_lost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calendars: Option<CalendarsText>,
}

pub(super) fn write(policies: &Policies) -> String {
    fn changed<T: PartialEq>(value: T, default: &T) -> Option<T> {
        (value != *default).then_some(value)
    }
    let default = PolicyValues::default();
    let millis = |time: Duration, default: Duration| changed(time, &default).map(|time| time.as_millis() as u64);
    let written = Written {
        overlap: changed(policies.overlap, &default.overlap).map(|overlap| overlap.to_string()),
        max_concurrent_runs: changed(policies.max_concurrent_runs, &default.max_concurrent_runs),
        catch_up: changed(policies.catch_up, &default.catch_up).map(|catch_up| catch_up.to_string()),
        catch_up_limit: changed(policies.catch_up_limit, &default.catch_up_limit),
        catch_up_window_ms: policies.catch_up_window.map(|time| time.as_millis() as u64),
        grace_ms: millis(policies.grace, default.grace),
        timeout_ms: millis(policies.timeout, default.timeout),
        jitter_ms: millis(policies.jitter, default.jitter),
        max_attempts: changed(policies.max_attempts, &default.max_attempts),
        backoff_initial_ms: millis(policies.backoff.initial, default.backoff.initial),
        backoff_max_ms: millis(policies.backoff.max, default.backoff.max),
        pause_after_failures: policies.pause_after_failures,
        depends_on: policies.depends_on.as_ref().map(|on| on.job_key.to_string()),
        depends_within_ms: policies.depends_on.as_ref().map(|on| on.within.as_millis() as u64),
        on_lease_loss: policies.on_lease_loss.map(|choice| choice.to_string()),
        on_lost: changed(policies.on_lost, &default.on_lost).map(|choice| choice.to_string()),
        priority: changed(policies.priority, &default.priority),
        calendars: CalendarsText::new(&policies.calendars),
    };
    serde_json::to_string(&written).unwrap_or_else(|_| "{}".to_owned())
}

pub(super) fn read(text: &str) -> Result<Policies, Invalid> {
    let bad = |why: String| Invalid::new("policies", why);
    let written: Written = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    let default = PolicyValues::default();
    let time = |millis: Option<u64>, default| millis.map_or(default, Duration::from_millis);
    let choice = |word: &Option<String>| word.clone().ok_or(());
    let overlap = choice(&written.overlap).map_or(Some(default.overlap), |word| Overlap::from_word(&word));
    let catch_up = choice(&written.catch_up).map_or(Some(default.catch_up), |word| CatchUp::from_word(&word));
    let on_lost = choice(&written.on_lost).map_or(Some(default.on_lost), |word| OnLost::from_word(&word));
    let depends_on = match (written.depends_on, written.depends_within_ms) {
        (Some(key), Some(within)) => {
            Some(Dependency { job_key: JobKey::new(&key)?, within: Duration::from_millis(within) })
        }
        _ => None,
    };
    let on_lease_loss = match &written.on_lease_loss {
        Some(word) => Some(OnLeaseLoss::from_word(word).ok_or_else(|| bad("unknown onLeaseLoss".to_owned()))?),
        None => None,
    };
    let values = PolicyValues {
        overlap: overlap.ok_or_else(|| bad("unknown overlap".to_owned()))?,
        max_concurrent_runs: written.max_concurrent_runs.unwrap_or(default.max_concurrent_runs),
        catch_up: catch_up.ok_or_else(|| bad("unknown catchUp".to_owned()))?,
        catch_up_limit: written.catch_up_limit.unwrap_or(default.catch_up_limit),
        catch_up_window: written.catch_up_window_ms.map(Duration::from_millis),
        grace: time(written.grace_ms, default.grace),
        timeout: time(written.timeout_ms, default.timeout),
        jitter: time(written.jitter_ms, default.jitter),
        max_attempts: written.max_attempts.unwrap_or(default.max_attempts),
        backoff: Backoff {
            initial: time(written.backoff_initial_ms, default.backoff.initial),
            max: time(written.backoff_max_ms, default.backoff.max),
        },
        pause_after_failures: written.pause_after_failures,
        depends_on,
        on_lease_loss,
        on_lost: on_lost.ok_or_else(|| bad("unknown onLost".to_owned()))?,
        priority: written.priority.unwrap_or(default.priority),
        calendars: written.calendars.map(CalendarsText::read).transpose()?.unwrap_or_default(),
    };
    Policies::new(values)
        .map_err(|problems| bad(problems.iter().map(Invalid::to_string).collect::<Vec<_>>().join("; ")))
}
