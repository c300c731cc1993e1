//! Jobs, as the API shows them.

use std::collections::BTreeMap;

use everbell::JobRow;
use everbell_core::{Definition, Run, Spec, When};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::run::between_ms;
use super::{FireDocument, WarningDocument, raw, time, times};
use crate::form;

/// A job. The first sixteen members never change their meaning.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub(crate) struct JobDocument {
    /// The id of this version.
    pub(crate) id: String,
    /// The name that all versions share.
    pub(crate) job_key: String,
    pub(crate) version: u32,
    /// The label of what to do.
    pub(crate) target: String,
    #[schema(value_type = Value)]
    pub(crate) payload: Option<Box<RawValue>>,
    /// `recurring` or `one_time`.
    pub(crate) schedule_type: &'static str,
    pub(crate) cron_expression: Option<String>,
    pub(crate) run_at: Option<String>,
    pub(crate) timezone: String,
    /// `active`, `paused` or `retired`.
    pub(crate) status: &'static str,
    pub(crate) pause_reason: Option<String>,
    pub(crate) supersedes_job_id: Option<String>,
    pub(crate) created_by: String,
    pub(crate) updated_by: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    /// For people.
    pub(crate) description: String,
    /// The schedule in words.
    pub(crate) schedule_text: String,
    /// When it fires next; absent if it does not. A job that fires for each org: when it does for the first of them.
    pub(crate) next_run_at: Option<String>,
    /// The org that `nextRunAt` is for, of a job that fires for each.
    pub(crate) next_org_id: Option<String>,
    /// The same in the zone of the job; absent if it fires in the zone of each org.
    pub(crate) next_run_at_local: Option<String>,
    /// The slot whose fire was moved to `nextRunAt`.
    pub(crate) rescheduled_from: Option<String>,
    pub(crate) last_run: Option<LastRun>,
    /// Failed runs since the last success.
    pub(crate) consecutive_failures: u32,
    /// Why an active job cannot fire.
    pub(crate) error: Option<String>,
    pub(crate) paused_by: Option<String>,
    pub(crate) paused_at: Option<String>,
    /// When it resumes by itself.
    pub(crate) paused_until: Option<String>,
    pub(crate) start_at: Option<String>,
    pub(crate) end_at: Option<String>,
    #[schema(value_type = Object)]
    pub(crate) policies: Value,
    pub(crate) labels: BTreeMap<String, String>,
    /// `global` or `per_org`.
    pub(crate) scope: &'static str,
    /// Who owns the definition: `api`, `config` or `code`.
    pub(crate) source: &'static str,
    /// Grows with every change; the `ETag`.
    pub(crate) revision: u64,
    /// What may surprise about the schedule; only for a single job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(crate) warnings: Option<Vec<WarningDocument>>,
}

/// The run that was scheduled last, in short.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastRun {
    pub(crate) id: String,
    pub(crate) status: &'static str,
    pub(crate) scheduled_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) failure_code: Option<String>,
}

/// A job and what its new version replaced.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewVersion)]
pub(crate) struct NewVersionDocument {
    #[serde(flatten)]
    pub(crate) job: JobDocument,
    pub(crate) superseded: Superseded,
    pub(crate) changes: Vec<ChangedField>,
}

/// The version that was replaced.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Superseded {
    pub(crate) id: String,
    pub(crate) version: u32,
    pub(crate) status: &'static str,
    /// When the old version would have fired next.
    pub(crate) next_run_at: Option<String>,
}

/// A member that differs between two versions.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangedField {
    pub(crate) field: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
}

/// A job that fires again.
#[derive(Serialize, ToSchema)]
#[schema(as = Resumed)]
pub(crate) struct ResumedDocument {
    #[serde(flatten)]
    pub(crate) job: JobDocument,
    pub(crate) resumed: Resumption,
}

/// What became of the slots that went by.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resumption {
    pub(crate) missed_slots: u64,
    /// `skip` or `fire_once`.
    pub(crate) action: &'static str,
    pub(crate) run_ids: Vec<String>,
    /// How many runs had not begun when the job was paused, and may start now.
    pub(crate) released_runs: u64,
}

/// The fires to come.
#[derive(Serialize, ToSchema)]
pub(crate) struct Fires {
    pub(crate) items: Vec<FireDocument>,
}

/// How a job fared lately.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Stats)]
pub(crate) struct StatsDocument {
    /// Since when.
    pub(crate) from: String,
    /// How many runs were looked at: the newest thousand at the most.
    pub(crate) runs: u64,
    /// Whether those are all.
    pub(crate) complete: bool,
    pub(crate) by_status: BTreeMap<String, u64>,
    pub(crate) by_failure_code: BTreeMap<String, u64>,
    /// Of those that succeeded or failed, from 0 to 1.
    pub(crate) success_rate: Option<f64>,
    pub(crate) duration_ms_p50: Option<i64>,
    pub(crate) duration_ms_p95: Option<i64>,
    pub(crate) duration_ms_max: Option<i64>,
    pub(crate) lag_ms_p50: Option<i64>,
    pub(crate) lag_ms_p95: Option<i64>,
    pub(crate) lag_ms_max: Option<i64>,
}

/// What was done, or would be done, to many jobs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bulk {
    pub(crate) dry_run: bool,
    pub(crate) action: String,
    /// How many were or would be changed.
    pub(crate) changed: u64,
    pub(crate) items: Vec<BulkItem>,
}

/// What was done to one of many jobs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkItem {
    pub(crate) id: String,
    pub(crate) job_key: String,
    /// `changed`, `would_change`, `unchanged` or `failed`.
    pub(crate) outcome: &'static str,
    /// The first fire after resuming; in a dry run of a pause the fire that it would prevent.
    pub(crate) next_run_at: Option<String>,
    pub(crate) detail: Option<String>,
}

impl From<&JobRow> for JobDocument {
    fn from(row: &JobRow) -> JobDocument {
        let JobRow { job, timer, last_run, next_for_org } = row;
        let (definition, state) = (&*job.definition, &job.state);
        let Schedule { kind, expression, run_at, timezone, text } = Schedule::of(definition);
        let spec = definition.spec.as_ref().ok();
        let next = row.next_run_at();
        let own = spec.filter(|_| next_for_org.is_none());
        let pause = state.pause.as_ref();
        JobDocument {
            id: definition.id.to_string(),
            job_key: definition.key.to_string(),
            version: definition.version,
            target: definition.target.to_string(),
            payload: raw(&definition.payload),
            schedule_type: kind,
            cron_expression: expression,
            run_at: times(run_at),
            timezone,
            status: state.status.as_str(),
            pause_reason: pause.map(|pause| pause.reason.clone()),
            supersedes_job_id: definition.supersedes.map(|id| id.to_string()),
            created_by: definition.created_by.clone(),
            updated_by: state.updated_by.clone(),
            created_at: time(definition.created_at),
            updated_at: time(state.updated_at),
            description: definition.description.clone(),
            schedule_text: text,
            next_run_at: times(next),
            next_org_id: next_for_org.as_ref().map(|(_, org)| org.to_string()),
            next_run_at_local: next.zip(own).map(|(at, spec)| local(at, spec)),
            rescheduled_from: times(timer.as_ref().and_then(|timer| timer.rescheduled_from)),
            last_run: last_run.as_ref().map(LastRun::from),
            consecutive_failures: state.consecutive_failures,
            error: state.error.clone(),
            paused_by: pause.map(|pause| pause.by.clone()),
            paused_at: pause.map(|pause| time(pause.at)),
            paused_until: times(pause.and_then(|pause| pause.until)),
            start_at: times(spec.and_then(Spec::start_at)),
            end_at: times(spec.and_then(Spec::end_at)),
            policies: form::definition::policies(definition),
            labels: definition.labels.clone(),
            scope: definition.scope.as_str(),
            source: definition.source.as_str(),
            revision: state.revision,
            warnings: None,
        }
    }
}

impl JobDocument {
    /// With what may surprise about its schedule from now on.
    pub(crate) fn with_warnings(row: &JobRow, now: Timestamp) -> JobDocument {
        let warnings = row.job.definition.spec.as_ref().map(|spec| spec.warnings(now)).unwrap_or_default();
        JobDocument { warnings: Some(warnings.iter().map(WarningDocument::from).collect()), ..JobDocument::from(row) }
    }
}

/// What a definition says about when, also one that cannot be read any more.
pub(crate) struct Schedule {
    /// `recurring` or `one_time`.
    pub(crate) kind: &'static str,
    pub(crate) expression: Option<String>,
    pub(crate) run_at: Option<Timestamp>,
    pub(crate) timezone: String,
    /// In words.
    pub(crate) text: String,
}

impl Schedule {
    pub(crate) fn of(definition: &Definition) -> Schedule {
        match &definition.spec {
            Ok(spec) => {
                let timezone = spec.zone().name().to_owned();
                match spec.when() {
                    When::Cron(expression) | When::Every { expression, .. } => Schedule {
                        kind: "recurring",
                        expression: Some(expression.as_str().to_owned()),
                        run_at: None,
                        timezone,
                        text: expression.describe(),
                    },
                    When::Once(at) => Schedule {
                        kind: "one_time",
                        expression: None,
                        run_at: Some(*at),
                        text: format!("Once, at {}", local(*at, spec)),
                        timezone,
                    },
                }
            }
            Err(broken) => Schedule {
                kind: if broken.expression.is_some() { "recurring" } else { "one_time" },
                expression: broken.expression.clone(),
                run_at: None,
                timezone: broken.timezone.clone(),
                text: format!("Cannot be read: {}", broken.reason),
            },
        }
    }
}

/// RFC 9557: `2026-11-16T08:00:00+01:00[Europe/Paris]`.
fn local(at: Timestamp, spec: &Spec) -> String {
    at.to_zoned(spec.zone().as_jiff().clone()).to_string()
}

impl From<&Run> for LastRun {
    fn from(run: &Run) -> LastRun {
        LastRun {
            id: run.id.to_string(),
            status: run.status.as_str(),
            scheduled_at: time(run.scheduled_at),
            finished_at: times(run.finished_at),
            duration_ms: between_ms(run.started_at, run.finished_at),
            failure_code: run.failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
        }
    }
}

impl From<&JobRow> for Superseded {
    fn from(row: &JobRow) -> Superseded {
        Superseded {
            id: row.job.definition.id.to_string(),
            version: row.job.definition.version,
            status: row.job.state.status.as_str(),
            next_run_at: None,
        }
    }
}

impl StatsDocument {
    /// Of these runs, the newest first.
    pub(crate) fn of(from: Timestamp, runs: &[Run], complete: bool) -> StatsDocument {
        let mut by_status: BTreeMap<String, u64> = BTreeMap::new();
        let mut by_failure_code: BTreeMap<String, u64> = BTreeMap::new();
        for run in runs {
            *by_status.entry(run.status.to_string()).or_default() += 1;
            if let Some(failure) = &run.failure {
                *by_failure_code.entry(failure.code.as_str().to_owned()).or_default() += 1;
            }
        }
        let durations = sorted(runs.iter().filter_map(|run| between_ms(run.started_at, run.finished_at)));
        let first = |run: &&Run| run.attempt <= 1;
        let lags =
            sorted(runs.iter().filter(first).filter_map(|run| between_ms(Some(run.scheduled_at), run.started_at)));
        let count = |word: &str| by_status.get(word).copied().unwrap_or(0);
        let (good, bad) = (count("succeeded"), count("failed"));
        StatsDocument {
            from: time(from),
            runs: runs.len() as u64,
            complete,
            success_rate: (good + bad > 0).then(|| share(good, good + bad)),
            by_status,
            by_failure_code,
            duration_ms_p50: quantile(&durations, 50),
            duration_ms_p95: quantile(&durations, 95),
            duration_ms_max: durations.last().copied(),
            lag_ms_p50: quantile(&lags, 50),
            lag_ms_p95: quantile(&lags, 95),
            lag_ms_max: lags.last().copied(),
        }
    }
}

/// Of a thousand at the most, so nothing is lost.
fn share(part: u64, all: u64) -> f64 {
    let small = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    small(part) / small(all)
}

fn sorted(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values
}

/// The nearest-rank quantile of ascending values.
fn quantile(values: &[i64], percent: usize) -> Option<i64> {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantile(&[], 50), None);
        assert_eq!((quantile(&[7], 50), quantile(&[7], 95)), (Some(7), Some(7)));
        let values: Vec<i64> = (1..=100).collect();
        assert_eq!((quantile(&values, 50), quantile(&values, 95)), (Some(50), Some(95)));
    }
}
