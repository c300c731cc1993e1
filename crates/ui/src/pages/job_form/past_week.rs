//! [`PastWeek`]: what the schedule of a form would have done in the last seven days, and what the current version would have.
//! The decisions are those of production, on a virtual clock; nothing is saved.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::outage::Outage as PastOutage;
use everbell_core::simulate::{JobSimulation, Outage, Scenario, SimulatedJob, SlotRecord, SlotStatus, simulate};
use everbell_core::store::RecentRuns;
use everbell_core::{Definition, RunStatus, Scope, Target, Zone, with};
use everbell_wire::body::definition::changes_timing;
use everbell_wire::elapsed::took;
use everbell_wire::job_body::declared;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::changes::Changes;
use super::preview::{faults, on_allowed_days};
use super::request_body::RequestBody;
use crate::chart::{Bars, Bucket, Counts, bars, bars_table, counted, grouped};
use crate::markup::Markup;
use crate::pages::action::Subject;
use crate::pages::overview::attention::Usual;
use crate::request::UiRequest;
use everbell_http::problem::Problem;

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The pieces of the picture: six hours each.
const PIECES: i64 = 28;
/// More slots of a week are refused: a page is no place for a long computation.
const MAX_SLOTS: u64 = 100_000;
/// The runs whose median duration attempts take.
const SAMPLED_RUNS: u32 = 50;
/// The duration of attempts of a job that never ran.
const DEFAULT_DURATION: Duration = Duration::from_secs(1);

/// A simulation of the last week.
pub(crate) struct PastWeek {
    /// The name of the current version.
    pub(crate) version: String,
    /// A number of each simulation: what it counts, of the current version, of the form.
    pub(crate) rows: Vec<(&'static str, String, String)>,
    /// The runs of the form.
    pub(crate) picture: Markup,
    pub(crate) table: Markup,
    /// The assumptions.
    pub(crate) notes: Vec<String>,
}

/// A past week, or why it cannot be simulated.
pub(crate) type Simulated = Result<PastWeek, String>;

/// The conditions of both simulations.
struct Conditions {
    scenario: Scenario,
    duration: Duration,
    notes: Vec<String>,
}

pub(super) async fn load(request: &UiRequest, form: &RequestBody, subject: &Subject) -> Result<Simulated, Problem> {
    let own = subject.definition();
    let from = request.now.checked_sub(WEEK).unwrap_or(request.now);
    let wanted = match wanted(request, form, subject, from).await? {
        Ok(wanted) => wanted,
        Err(reason) => return Ok(Err(reason)),
    };
    let conditions = conditions(request, &wanted, from).await?;
    let (zone, version) = (request.clock().zone(Some(&zone_of(&wanted))), format!("Version {}", own.version));
    let own = own.clone();
    let simulated =
        tokio::task::spawn_blocking(move || both(&own, &wanted, &conditions).map(|both| (both, conditions)));
    let simulated = simulated.await.map_err(|error| {
        Problem::new(everbell_http::problem::Kind::Internal, format!("The simulation ended early: {error}."))
    })?;
    Ok(simulated.map(|([current, planned], conditions)| PastWeek::new(version, &current, &planned, conditions, &zone)))
}

fn zone_of(definition: &Definition) -> Zone {
    definition.spec.as_ref().map_or_else(|_| Zone::utc(), |spec| spec.zone().clone())
}

/// Returns the definition that the form would save, or why its schedule cannot be simulated.
async fn wanted(
    request: &UiRequest,
    form: &RequestBody,
    subject: &Subject,
    from: Timestamp,
) -> Result<Result<Definition, String>, Problem> {
    const FAULTY: &str = "The form has errors: fix them first.";
    if !faults(request, form, Some(subject)).await?.is_empty() {
        return Ok(Err(FAULTY.to_owned()));
    }
    let (read, own) = (form.body.read(), subject.definition());
    let Ok(definition) = declared(&read.draft, from) else { return Ok(Err(FAULTY.to_owned())) };
    let patch = Changes::between(own, form, request.now).patch.members;
    let spec = match &own.spec {
        // A timing that does not change keeps the beat of a fixed rate.
        Ok(spec) if !changes_timing(&Value::Object(patch)) => spec.clone(),
        _ => match &definition.spec {
            Ok(spec) => on_allowed_days(request, &read.draft, spec.clone()).await?,
            Err(unreadable) => return Ok(Err(unreadable.reason.clone())),
        },
    };
    if spec.is_following() {
        return Ok(Err("The job starts after other jobs, so its schedule alone has no runs.".to_owned()));
    }
    let slots = spec.count_between(from, request.now);
    if slots > MAX_SLOTS {
        return Ok(Err(format!(
            "This schedule has {} slots in a week, and at most {} are simulated on a page. Use `everbell simulate` for a shorter time.",
            grouped(slots),
            grouped(MAX_SLOTS)
        )));
    }
    // The id decides about jitter.
    Ok(Ok(with!(Definition { id: own.id, spec: Ok(spec), ..definition })))
}

/// Reads how long runs take, which outages there were, and how many runs the target may have.
async fn conditions(request: &UiRequest, wanted: &Definition, from: Timestamp) -> Result<Conditions, Problem> {
    let (mut usual, mut outages) = (None, Vec::new());
    if request.may_read_runs() {
        let last = RecentRuns::new(vec![wanted.key.clone()], SAMPLED_RUNS)?;
        usual = Usual::from_runs(&request.runs().recent_runs(&last).await?);
        outages = request.app.bell.reports().outages(Some(from), Some(request.now)).await?;
    }
    let duration = usual.map_or(DEFAULT_DURATION, |usual| usual.half.max(Duration::from_millis(1)));
    let source = usual.map_or_else(
        || "no run has ended yet".to_owned(),
        |usual| format!("the median of the last {}", counted(usual.runs as u64, "run")),
    );
    let mut notes =
        vec![format!("Each attempt takes {} ({source}) and succeeds, unless its timeout is shorter.", text(duration))];
    if !outages.is_empty() {
        notes.push(format!("{} of that week counted.", counted(outages.len() as u64, "outage")));
    }
    if wanted.scope == Scope::PerOrg {
        notes.push(format!("The simulation has one org, in {}.", zone_of(wanted).name()));
    }
    if wanted.policies.depends_on.is_some() {
        notes.push("The job that it depends on counts as having succeeded.".to_owned());
    }
    let target_places = target_places(request, &wanted.target).await?;
    let scenario = Scenario {
        from,
        to: request.now,
        outages: outages.iter().filter_map(outage).collect(),
        places: u32::MAX,
        target_places,
    };
    Ok(Conditions { scenario, duration, notes })
}

fn outage(outage: &PastOutage) -> Option<Outage> {
    let (from, to) = (outage.absence.from, outage.absence.until);
    (from < to).then_some(Outage { from, to })
}

/// The limit of a target on all live instances, if it has one.
async fn target_places(request: &UiRequest, target: &Target) -> Result<BTreeMap<Target, u32>, Problem> {
    let options = request.app.options();
    let configured = options.targets.iter().find(|one| one.label == target.as_str());
    let Some(limit) = configured.and_then(|one| one.concurrency) else { return Ok(BTreeMap::new()) };
    let served = request.app.bell.targets_naming(0).await?.served;
    let instances = served.iter().find(|served| served.target == *target).map_or(1, |served| served.instances.len());
    let instances = u32::try_from(instances).unwrap_or(u32::MAX).max(1);
    Ok(BTreeMap::from([(target.clone(), limit.saturating_mul(instances))]))
}

/// Simulates the current version and the form, each alone.
fn both(own: &Definition, wanted: &Definition, conditions: &Conditions) -> Result<[JobSimulation; 2], String> {
    let one = |definition: &Definition| {
        let job = SimulatedJob { definition: definition.clone(), duration: conditions.duration };
        let simulation = simulate(&[job], &conditions.scenario).map_err(|refused| refused.reason)?;
        simulation.jobs.into_iter().next().ok_or_else(|| "nothing was simulated".to_owned())
    };
    Ok([one(own)?, one(wanted)?])
}

fn text(duration: Duration) -> String {
    took(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

impl PastWeek {
    fn new(
        version: String,
        current: &JobSimulation,
        planned: &JobSimulation,
        conditions: Conditions,
        zone: &Zone,
    ) -> PastWeek {
        let Conditions { scenario, mut notes, .. } = conditions;
        if planned.paused_at.is_some() {
            notes.push("Failures in a row would have paused the job.".to_owned());
        }
        let buckets = buckets(&planned.records, &scenario);
        let input = Bars { id: "past-week-runs", title: "Simulated runs per six hours", zone, buckets: &buckets };
        PastWeek {
            version,
            rows: rows(current, planned),
            picture: Markup::from_html(bars(&input)),
            table: Markup::from_html(bars_table(&input)),
            notes,
        }
    }
}

/// The numbers that say something, and always those of slots and runs.
fn rows(current: &JobSimulation, planned: &JobSimulation) -> Vec<(&'static str, String, String)> {
    let numbers = |result: &JobSimulation| {
        let counts = result.counts();
        let of = |word: &str| counts.get(word).copied().unwrap_or(0);
        let named = ["ran", "skipped", "coalesced", "missed"].map(of);
        let other = result.slots.saturating_sub(named.iter().sum());
        let [ran, skipped, coalesced, missed] = named;
        let failed = result.failed() as u64;
        [result.slots, ran, failed, skipped, coalesced, missed, other, u64::from(result.peak)]
    };
    let names = ["Slots", "Ran", "Failed", "Skipped", "Coalesced", "Missed", "Other", "Most at once"];
    let rows = names.into_iter().zip(numbers(current).into_iter().zip(numbers(planned)));
    let shown = rows.enumerate().filter(|(index, (_, (before, after)))| *index < 2 || before + after > 0);
    let mut rows: Vec<_> = shown.map(|(_, (name, (before, after)))| (name, grouped(before), grouped(after))).collect();
    if !(current.longest_wait + planned.longest_wait).is_zero() {
        rows.push(("Longest wait", text(current.longest_wait), text(planned.longest_wait)));
    }
    rows
}

/// The runs in pieces of equal length.
fn buckets(records: &[SlotRecord], scenario: &Scenario) -> Vec<Bucket> {
    let (first, whole) = (scenario.from.as_second(), scenario.to.as_second() - scenario.from.as_second());
    let bound = |piece: i64| Timestamp::from_second(first + whole * piece / PIECES).unwrap_or(scenario.to);
    let bounds: Vec<Timestamp> = (0..=PIECES).map(bound).collect();
    let mut statuses: Vec<Vec<RunStatus>> = vec![Vec::new(); bounds.len() - 1];
    for (record, status) in records.iter().filter_map(|record| Some((record, status(&record.status)?))) {
        let at = record.run.as_ref().and_then(|run| run.started_at).unwrap_or(record.first_slot_at);
        let piece = bounds.partition_point(|bound| *bound <= at).saturating_sub(1);
        if let Some(piece) = statuses.get_mut(piece) {
            piece.push(status);
        }
    }
    let pieces = bounds.windows(2).zip(statuses);
    let bucket = |(piece, statuses): (&[Timestamp], Vec<RunStatus>)| Bucket {
        from: piece[0],
        to: piece[1],
        runs: Counts::from_statuses(statuses),
        href: None,
    };
    pieces.map(bucket).collect()
}

/// The status of the run of a slot; `None` if it has none.
fn status(status: &SlotStatus) -> Option<RunStatus> {
    match status {
        SlotStatus::Succeeded => Some(RunStatus::Succeeded),
        SlotStatus::Failed(_) => Some(RunStatus::Failed),
        SlotStatus::Canceled => Some(RunStatus::Canceled),
        SlotStatus::Running => Some(RunStatus::Running),
        SlotStatus::Waiting => Some(RunStatus::Pending),
        SlotStatus::Skipped(_) => Some(RunStatus::Skipped),
        SlotStatus::Gap(_) | SlotStatus::Undecided => None,
    }
}
