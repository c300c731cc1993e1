//! A job and an org together, as the API shows them.

use everbell::Org;
use everbell::client::SweepBegun;
use everbell::core::cron::Expression;
use everbell::core::org::{self, OrgFacts, Override, Standing, Sweep};
use everbell::core::store::{JobOrg, OrgJob};
use everbell_core::{Job, Timer, Zone};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Schedule, time, times};

/// How a job stands with an org.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrgJob)]
pub(crate) struct OrgJobDocument {
    pub(crate) org_id: String,
    pub(crate) org_name: String,
    pub(crate) job_id: String,
    pub(crate) job_key: String,
    pub(crate) job_version: u32,
    pub(crate) target: String,
    /// `eligible`, `off`, `errored` or `over`.
    pub(crate) standing: &'static str,
    /// Why it is off (`job_paused`, `job_errored`, `org_disabled`, `override_off`), or what cannot be read.
    pub(crate) why: Option<String>,
    /// The expression that holds for the org.
    pub(crate) cron_expression: Option<String>,
    /// The same in words.
    pub(crate) schedule_text: String,
    /// The zone of the org.
    pub(crate) timezone: String,
    /// When the job fires next for the org; absent if it does not.
    pub(crate) next_run_at: Option<String>,
    /// The same in the zone of the org.
    pub(crate) next_run_at_local: Option<String>,
    /// The slot whose fire was moved to `nextRunAt`.
    pub(crate) rescheduled_from: Option<String>,
    /// The last local date of the org that got a run.
    pub(crate) last_local_date: Option<String>,
    pub(crate) r#override: Option<OverrideDocument>,
}

/// What an org wants of a job.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Override)]
pub(crate) struct OverrideDocument {
    /// Off is `false`.
    pub(crate) enabled: bool,
    /// Another local time; absent for that of the job.
    pub(crate) cron_expression: Option<String>,
    pub(crate) updated_by: String,
    pub(crate) updated_at: String,
}

/// What an org wants of a job, and how the job stands with it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrgOverride)]
pub(crate) struct OrgOverrideDocument {
    pub(crate) org_id: String,
    pub(crate) job_key: String,
    pub(crate) r#override: Option<OverrideDocument>,
    /// Absent while there is no job of this key that fires for orgs.
    pub(crate) job: Option<OrgJobDocument>,
    /// In the answer to a change: whether it fires at once, because today's time has gone by and today has no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fires_now: Option<bool>,
}

/// The orgs of a job.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobOrgs)]
pub(crate) struct JobOrgsDocument {
    pub(crate) items: Vec<OrgJobDocument>,
    /// Where the next page begins; null at the end.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
    /// Ids of orgs that could not be read and were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) unreadable: Vec<String>,
    /// What is being done for all orgs of this job.
    pub(crate) sweeps: Vec<SweepDocument>,
}

/// Something that is being done for every org of a job, a few at a time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Sweep)]
pub(crate) struct SweepDocument {
    pub(crate) id: String,
    /// `arm`, `resume`, `run_now` or `backfill`.
    pub(crate) work: &'static str,
    pub(crate) asked_by: String,
    pub(crate) asked_at: String,
    /// How many orgs had their turn.
    pub(crate) seen: u64,
    /// The last of them.
    pub(crate) reached: Option<String>,
}

/// Something that is done for every org of a job from now on.
#[derive(Serialize, ToSchema)]
#[schema(as = SweepBegun)]
pub(crate) struct SweepBegunDocument {
    pub(crate) id: String,
    /// Whether every org had its turn already.
    pub(crate) done: bool,
}

impl OrgJobDocument {
    /// A job as an org sees it.
    pub(crate) fn of_org(org: &Org, row: &OrgJob) -> OrgJobDocument {
        OrgJobDocument::of(&row.job, org, row.wish.as_ref(), row.timer.as_ref(), row.error.as_deref())
    }

    /// An org as a job sees it.
    pub(crate) fn of_job(job: &Job, row: &JobOrg) -> OrgJobDocument {
        OrgJobDocument::of(job, &row.org, row.wish.as_ref(), row.timer.as_ref(), row.error.as_deref())
    }

    fn of(job: &Job, org: &Org, wish: Option<&Override>, timer: Option<&Timer>, error: Option<&str>) -> OrgJobDocument {
        let definition = &job.definition;
        let facts = OrgFacts { life: (&job.state).into(), place: org.place.clone(), wish: wish.cloned() };
        let (standing, why) = match org::standing(definition, &facts) {
            Standing::Eligible(_) => ("eligible", error.map(str::to_owned)),
            Standing::Off(off) => ("off", Some(off.as_str().to_owned())),
            Standing::Over(_) => ("over", None),
            Standing::Broken(reason) => ("errored", Some(reason)),
        };
        // What rests may have a time until somebody looks at it, but does not fire.
        let timer = timer.filter(|_| standing == "eligible");
        let next = timer.and_then(|timer| timer.next_run_at);
        let zone = Zone::get(&org.place.timezone).ok();
        let own = Schedule::of(definition);
        let (expression, words) = match org::spec_for(definition, &facts) {
            Ok(spec) => {
                let expression = spec.expression();
                (expression.map(|own| own.as_str().to_owned()), expression.map_or(own.text, Expression::describe))
            }
            Err(_) => (wish.and_then(|wish| wish.expression.clone()).or(own.expression), own.text),
        };
        OrgJobDocument {
            org_id: org.id.to_string(),
            org_name: org.name.clone(),
            job_id: definition.id.to_string(),
            job_key: definition.key.to_string(),
            job_version: definition.version,
            target: definition.target.to_string(),
            standing,
            why,
            cron_expression: expression,
            schedule_text: words,
            timezone: org.place.timezone.clone(),
            next_run_at: times(next),
            next_run_at_local: next.zip(zone).map(|(at, zone)| at.to_zoned(zone.as_jiff().clone()).to_string()),
            rescheduled_from: times(timer.and_then(|timer| timer.rescheduled_from)),
            last_local_date: timer.and_then(|timer| timer.last_local_date).map(|date| date.to_string()),
            r#override: wish.map(OverrideDocument::from),
        }
    }
}

impl From<&Override> for OverrideDocument {
    fn from(wish: &Override) -> OverrideDocument {
        OverrideDocument {
            enabled: wish.enabled,
            cron_expression: wish.expression.clone(),
            updated_by: wish.updated_by.clone(),
            updated_at: time(wish.updated_at),
        }
    }
}

impl From<&Sweep> for SweepDocument {
    fn from(sweep: &Sweep) -> SweepDocument {
        SweepDocument {
            id: sweep.id.to_string(),
            work: sweep.work.as_str(),
            asked_by: sweep.actor.clone(),
            asked_at: time(sweep.at),
            seen: sweep.seen,
            reached: sweep.reached.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&SweepBegun> for SweepBegunDocument {
    fn from(begun: &SweepBegun) -> SweepBegunDocument {
        SweepBegunDocument { id: begun.id.to_string(), done: begun.done }
    }
}
