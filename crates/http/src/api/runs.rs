//! Runs: list, read, cancel, run again.

use axum::http::StatusCode;
use everbell::{Canceled, JobKey, RunFilter, RunRecord, RunStatus, Target};
use everbell_core::store::{Cursor, Page, PageRequest};
use everbell_core::{InstanceId, Invalid, JobId, OrgId, RunId, TriggerType};
use everbell_wire as wire;
use everbell_wire::run::CancelOutcome;

use super::actions::{REASON, ran};
use super::job_history::moment;
use super::jobs::{RUN_STATUS, label};
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use uuid::Uuid;

use everbell_wire::form::{Field, Form, Kind as Value, TEXT, optional};

/// The query of the list of runs.
pub const LIST: &[Field] = &[
    optional("jobKey", TEXT, "Only runs of the job with this key, in any version."),
    optional("jobId", TEXT, "Only runs of the job version with this id."),
    optional(
        "idPrefix",
        Value::Text { min: 8, max: 36 },
        "Only runs whose ids begin with this: at least 8 hexadecimal digits, with or without dashes.",
    ),
    optional("status", Value::List { of: &RUN_STATUS, max: 6 }, "Only runs with one of these statuses."),
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only runs of one of these targets."),
    optional("triggerType", Value::Word(wire::run::TriggerType::WORDS), "Only runs that were triggered this way."),
    optional("orgId", TEXT, "Only runs for this org."),
    optional("instanceId", TEXT, "Only runs that this instance executed."),
    optional("failureCode", TEXT, "Only runs that failed with this code."),
    optional("label", TEXT, "Only runs of jobs with this label: `name` or `name=value`."),
    optional("from", Value::Time, "Only runs that were scheduled or requested at or after this time."),
    optional("to", Value::Time, "Only runs that were scheduled or requested before this time."),
    LIMIT,
    CURSOR,
];

pub(crate) const CANCEL: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut filter = filter(&request)?;
    let mut asked = page::from_query(&request)?;
    let ids = request.query(LIST).text("idPrefix").map(IdRange::parse).transpose()?;
    if let Some(ids) = &ids {
        ids.narrow(&mut filter, &mut asked);
    }
    let mut page = request.runs().list(&filter, &asked).await?;
    if let Some(ids) = &ids {
        ids.cut(&mut page);
    }
    let mut items = Vec::with_capacity(page.items.len());
    for run in &page.items {
        items.push(wire::Run::new(run, request.app.zone_of(run).await?.as_ref()));
    }
    let document = page::document(&request, &page, items);
    Ok(page::linked(&request, "/runs", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

/// The runs that a query asks for.
pub fn filter(request: &ApiRequest) -> Result<RunFilter, Problem> {
    filter_of(&mut request.query(LIST))
}

/// The runs that the fields of a form ask for.
pub(super) fn filter_of(form: &mut Form<'_>) -> Result<RunFilter, Problem> {
    fn read<T>(
        name: &'static str,
        text: Option<&str>,
        read: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Problem> {
        text.map(read).transpose().map_err(|error| Problem::at("parameter", name, error.reason))
    }
    let targets: Result<_, _> = form.list("target").into_iter().map(Target::new).collect();
    Ok(RunFilter {
        job_id: read("jobId", form.text("jobId"), str::parse::<JobId>)?,
        job_key: read("jobKey", form.text("jobKey"), JobKey::new)?,
        status: form.list("status").into_iter().filter_map(RunStatus::from_word).collect(),
        target: targets.map_err(|error: Invalid| Problem::at("parameter", "target", error.reason))?,
        trigger: form.word("triggerType", TriggerType::from_word),
        org: read("orgId", form.text("orgId"), OrgId::new)?,
        instance: read("instanceId", form.text("instanceId"), str::parse::<InstanceId>)?,
        failure_code: form.text("failureCode").map(str::to_owned),
        label: form.text("label").map(label),
        from: moment(form, "from", None)?,
        to: moment(form, "to", None)?,
    })
}

/// Returns the newest runs whose ids begin with these digits; none if the text is not the beginning of an id.
pub async fn find_by_prefix(request: &ApiRequest, prefix: &str, limit: u32) -> Result<Vec<RunRecord>, Problem> {
    let Ok(ids) = IdRange::parse(prefix) else { return Ok(Vec::new()) };
    let (mut filter, mut page) = (RunFilter::default(), PageRequest { limit, after: None });
    ids.narrow(&mut filter, &mut page);
    let mut found = request.runs().list(&filter, &page).await?;
    ids.cut(&mut found);
    Ok(found.items)
}

/// The ids that begin with the same digits. Ids are ordered by time and lists are ordered by id, so they are neighbors.
struct IdRange {
    first: RunId,
    last: RunId,
}

impl IdRange {
    fn parse(prefix: &str) -> Result<IdRange, Problem> {
        let digits: String = prefix.chars().filter(|c| *c != '-').collect();
        let value = u128::from_str_radix(&digits, 16).ok().filter(|_| (8..=32).contains(&digits.len()));
        let value = value.filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit())).ok_or_else(|| {
            Problem::at("parameter", "idPrefix", "must be 8 to 32 hexadecimal digits, with or without dashes")
        })?;
        let open = 128 - 4 * digits.len() as u32;
        let first = value.checked_shl(open).unwrap_or(value);
        let last = first | 1_u128.checked_shl(open).map_or(0, |bit| bit - 1);
        let id = |value: u128| RunId::from_uuid(Uuid::from_u128(value));
        Ok(IdRange { first: id(first), last: id(last) })
    }

    /// Lets the list begin behind the last id, and end near the first.
    fn narrow(&self, filter: &mut RunFilter, page: &mut PageRequest) {
        let from = self.first.time();
        filter.from = Some(filter.from.map_or(from, |own| own.max(from)));
        if page.after.is_none()
            && let Some(behind) = self.last.as_uuid().as_u128().checked_add(1).map(Uuid::from_u128)
        {
            let value = RunId::from_uuid(behind).time().as_microsecond().to_string();
            page.after = Some(Cursor { value, id: behind });
        }
    }

    /// Removes the runs before the first id, which share its millisecond.
    fn cut(&self, page: &mut Page<RunRecord>) {
        let all = page.items.len();
        page.items.retain(|run| run.id >= self.first);
        if page.items.len() < all {
            page.next = None;
        }
    }
}

#[test]
fn prefix_of_an_id_is_a_range() {
    let range = |prefix: &str| IdRange::parse(prefix).map(|ids| format!("{} {}", ids.first, ids.last)).ok();
    let found = range("019A8d10-7c").unwrap();
    assert_eq!(found, "019a8d10-7c00-0000-0000-000000000000 019a8d10-7cff-ffff-ffff-ffffffffffff");
    let whole = "019a8d10-7c00-7000-8000-000000000001";
    assert_eq!(range(whole), Some(format!("{whole} {whole}")));
    for prefix in ["019a8d1", "daily-briefing", "+19a8d107c", "019a8d107c0070008000000000000001f", "ffff ffff"] {
        assert_eq!(range(prefix), None, "{prefix}");
    }
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let run = request.runs().get(request.run()?).await?;
    let started = request.runs().started_by(&run).await?;
    let started_runs = Some(started.iter().map(wire::StartedRun::from).collect());
    ApiResponse::ok(&wire::Run { started_runs, ..whole(&request, &run).await? })
}

async fn whole(request: &ApiRequest, run: &RunRecord) -> Result<wire::Run, Problem> {
    Ok(request.visible_run(wire::Run::with_output(run, request.app.zone_of(run).await?.as_ref())))
}

pub(crate) async fn cancel(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(CANCEL);
    let id = request.run()?;
    let runs = request.runs_because(form.text("reason"));
    let outcome = match runs.cancel(id).await? {
        Canceled::AtOnce => CancelOutcome::Canceled,
        Canceled::Requested => CancelOutcome::Requested,
        Canceled::TooLate(status) => {
            let detail = format!("Run {id} has already ended: it is {status}.");
            return Err(Problem::new(Kind::Conflict, detail).with("runStatus", status.as_str()));
        }
    };
    let run = request.runs().get(id).await?;
    ApiResponse::json(StatusCode::ACCEPTED, &wire::Canceled { outcome, run: whole(&request, &run).await? })
}

pub(crate) async fn rerun(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(CANCEL);
    let runs = request.runs_because(form.text("reason"));
    let outcome = runs.rerun(request.run()?).await?;
    match outcome.run().job_id {
        Some(job) => {
            let row = request.jobs().get(job).await?;
            ran(&request, &row, outcome).await
        }
        None => tried(&request, outcome.run()),
    }
}

/// A run without a job.
pub(super) fn tried(request: &ApiRequest, run: &RunRecord) -> Result<ApiResponse, Problem> {
    let location = format!("{}/runs/{}", request.mount, run.id);
    let run = request.visible_run(wire::Run::new(run, None));
    let document = wire::RunNow { outcome: wire::run::RunNowOutcome::Started, run, next_run_at: None };
    Ok(ApiResponse::json(StatusCode::ACCEPTED, &document)?.header("location", location))
}
