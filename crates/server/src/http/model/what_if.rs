//! What a move of an org would do, as the API shows it.

use everbell::Org;
use everbell::client::JobWhatIf;
use everbell::core::org::{Day, Verdict};
use everbell_core::{GapReason, Spec, Zone};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{FireDocument, time, times};
use crate::preview::Fire;

/// What would happen if an org moved to another zone now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WhatIf)]
pub(crate) struct WhatIfDocument {
    pub(crate) org_id: String,
    /// When it would move: now.
    pub(crate) at: String,
    pub(crate) timezone_before: String,
    pub(crate) timezone_after: String,
    /// One for each job that fires for orgs.
    pub(crate) jobs: Vec<JobWhatIfDocument>,
}

/// What a move would do to one job of an org.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobWhatIf)]
pub(crate) struct JobWhatIfDocument {
    pub(crate) job_key: String,
    pub(crate) job_id: String,
    /// The next fires without the move, local in the zone before.
    pub(crate) before: Vec<FireDocument>,
    /// The next fires with the move, local in the zone after.
    pub(crate) after: Vec<FireDocument>,
    /// The local days after the move, from the last that ran, of a schedule that fires at most once a day.
    pub(crate) days: Vec<DayDocument>,
    /// Whether a local day would fire twice.
    pub(crate) would_fire_again: bool,
    /// All of it in a sentence or two.
    pub(crate) sentence: String,
}

/// A local day of an org after a move.
#[derive(Serialize, ToSchema)]
#[schema(as = WhatIfDay)]
pub(crate) struct DayDocument {
    pub(crate) date: String,
    /// `ran_already`, `once`, `at_once`, `twice` or `not_at_all`.
    pub(crate) verdict: &'static str,
    /// When it fires.
    pub(crate) at: Option<String>,
    /// Why a slot of it gets no run.
    pub(crate) gap: Option<&'static str>,
}

impl WhatIfDocument {
    pub(crate) fn of(org: &Org, zone: &Zone, jobs: &[JobWhatIf], now: Timestamp) -> WhatIfDocument {
        WhatIfDocument {
            org_id: org.id.to_string(),
            at: time(now),
            timezone_before: org.place.timezone.clone(),
            timezone_after: zone.name().to_owned(),
            jobs: jobs.iter().map(JobWhatIfDocument::from).collect(),
        }
    }
}

impl From<&JobWhatIf> for JobWhatIfDocument {
    fn from(told: &JobWhatIf) -> JobWhatIfDocument {
        let JobWhatIf { job, here, there, what_if } = told;
        let fires = |spec: &Option<Spec>, times: &[Timestamp]| -> Vec<FireDocument> {
            let spec = spec.as_ref();
            spec.map_or_else(Vec::new, |spec| times.iter().map(|at| Fire::new(spec, *at).document()).collect())
        };
        let again = what_if.days.iter().any(|day| day.verdict == Verdict::Twice);
        JobWhatIfDocument {
            job_key: job.job.definition.key.to_string(),
            job_id: job.job.definition.id.to_string(),
            before: fires(here, &what_if.before),
            after: fires(there, &what_if.after),
            days: what_if.days.iter().map(DayDocument::from).collect(),
            would_fire_again: again,
            sentence: sentence(there.as_ref(), &what_if.after, &what_if.days, again),
        }
    }
}

impl From<&Day> for DayDocument {
    fn from(day: &Day) -> DayDocument {
        DayDocument {
            date: day.date.to_string(),
            verdict: day.verdict.as_str(),
            at: times(day.at),
            gap: day.gap.map(GapReason::as_str),
        }
    }
}

/// For people who are about to do it.
fn sentence(there: Option<&Spec>, fires: &[Timestamp], days: &[Day], again: bool) -> String {
    let Some((spec, next)) = there.zip(fires.first()) else { return "Would not fire.".to_owned() };
    let local = next.to_zoned(spec.zone().as_jiff().clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let next = format!("The next fire would be {local} {}.", spec.zone());
    if !spec.at_most_daily() {
        return format!("Fires more than once a day. {next}");
    }
    let said = format!("Would fire again today: {}.", if again { "yes" } else { "no" });
    if let Some(day) = days.iter().find(|day| day.verdict == Verdict::AtOnce) {
        return format!("{said} {} would fire at once: its time there has gone by.", day.date);
    }
    if let Some(day) = days.iter().find(|day| day.verdict == Verdict::NotAtAll) {
        return format!("{said} {} would not fire at all. {next}", day.date);
    }
    format!("{said} {next}")
}
