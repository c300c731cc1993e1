//! A job and an org together.

use everbell_core::cron::Expression;
use everbell_core::org::{self, Org, OrgFacts};
use everbell_core::{Job, Timer, Zone, store};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job_schedule::Schedule;
use crate::words::words;

words!(
    /// Whether a job fires for an org.
    OrgJobState {
        /// It fires.
        Eligible = "eligible",
        /// It does not fire for now.
        Off = "off",
        /// It cannot fire, because something cannot be read.
        Errored = "errored",
        /// It never fires again.
        Over = "over",
    }
);

words!(
    /// The work of an org update.
    OrgUpdateWork {
        /// Timers are set.
        Arm = "arm",
        /// Timers are set after a pause.
        Resume = "resume",
        /// Runs are created.
        RunNow = "run_now",
        /// Runs of a backfill are created.
        Backfill = "backfill",
    }
);

/// A job and an org: whether, when and how the job fires for it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgJob {
    /// The org.
    pub org_id: String,
    /// The name of the org.
    pub org_name: String,
    /// The id of the job's version.
    pub job_id: String,
    /// The key of the job.
    pub job_key: String,
    /// The version of the job.
    pub job_version: u32,
    /// The target of its runs.
    pub target: String,
    /// Whether the job fires for the org.
    pub standing: OrgJobState,
    /// Why it is off (`job_paused`, `job_errored`, `org_disabled`, `override_off`), or what cannot be read.
    pub why: Option<String>,
    /// The expression for this org.
    pub cron_expression: Option<String>,
    /// The schedule for this org in words.
    pub schedule_text: String,
    /// The zone of the org.
    pub timezone: String,
    /// When the job fires next for the org; null if it does not.
    pub next_run_at: Option<Timestamp>,
    /// `nextRunAt` in the zone of the org.
    pub next_run_at_local: Option<String>,
    /// The slot that was moved to `nextRunAt`.
    pub rescheduled_from: Option<Timestamp>,
    /// The reason of the freeze that keeps the job from firing at `nextRunAt`.
    pub next_run_frozen: Option<String>,
    /// When that freeze ends.
    pub next_run_frozen_until: Option<Timestamp>,
    /// The last local date of the org that got a run.
    #[schema(format = Date)]
    pub last_local_date: Option<String>,
    /// The org's override of the job.
    pub r#override: Option<Override>,
}

/// An org's override of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Whether the job fires for the org.
    pub enabled: bool,
    /// Another local time; null for that of the job.
    pub cron_expression: Option<String>,
    /// The actor that changed it last.
    pub updated_by: String,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// An org's override of a job, and its effect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgOverride {
    /// The org.
    pub org_id: String,
    /// The key of the job.
    pub job_key: String,
    /// The override; null for none.
    pub r#override: Option<Override>,
    /// The job with this key; null while no job with this key fires for orgs.
    pub job: Option<OrgJob>,
    /// In the response to a change: whether it fires now, because today's time has passed and today has no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fires_now: Option<bool>,
}

/// The orgs of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOrgs {
    /// The orgs of this page.
    pub items: Vec<OrgJob>,
    /// Where the next page begins; null at the end.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    /// Ids of orgs that cannot be read and are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<String>,
    /// The org updates of this job that are in progress.
    #[serde(rename = "sweeps")]
    pub org_updates: Vec<OrgUpdate>,
}

/// An org update: work for every org of a job, a few orgs at a time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgUpdate {
    /// Its id.
    pub id: String,
    /// Its work.
    pub work: OrgUpdateWork,
    /// The actor that requested it.
    pub asked_by: String,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// How many orgs are done.
    pub seen: u64,
    /// The org that was done last.
    pub reached: Option<String>,
}

/// An org update that was started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrgUpdateStarted {
    /// Its id.
    pub id: String,
    /// Whether all orgs are done.
    pub done: bool,
}

impl OrgJob {
    /// A job of an org.
    pub fn from_org(org: &Org, row: &store::OrgJob) -> OrgJob {
        OrgJob::new(&row.job, org, row.override_.as_ref(), row.timer.as_ref(), row.error.as_deref())
    }

    /// An org of a job.
    pub fn from_job(job: &Job, row: &store::JobOrg) -> OrgJob {
        OrgJob::new(job, &row.org, row.override_.as_ref(), row.timer.as_ref(), row.error.as_deref())
    }

    fn new(job: &Job, org: &Org, wish: Option<&org::Override>, timer: Option<&Timer>, error: Option<&str>) -> OrgJob {
        let definition = &job.definition;
        let facts = OrgFacts { lifecycle: (&job.state).into(), place: org.place.clone(), override_: wish.cloned() };
        let (standing, why) = match org::eligibility(definition, &facts) {
            org::Eligibility::Eligible(_) => (OrgJobState::Eligible, error.map(str::to_owned)),
            org::Eligibility::Off(off) => (OrgJobState::Off, Some(off.as_str().to_owned())),
            org::Eligibility::Over(_) => (OrgJobState::Over, None),
            org::Eligibility::Broken(reason) => (OrgJobState::Errored, Some(reason)),
        };
        // A job that does not fire may have a time until its timer is reconciled.
        let timer = timer.filter(|_| standing == OrgJobState::Eligible);
        let next = timer.and_then(|timer| timer.next_run_at);
        let zone = Zone::get(&org.place.timezone).ok();
        let own = Schedule::from(&**definition);
        let (expression, words) = match org::spec_for(definition, &facts) {
            Ok(spec) => {
                let expression = spec.expression();
                (expression.map(|own| own.as_str().to_owned()), expression.map_or(own.text, Expression::describe))
            }
            Err(_) => (wish.and_then(|wish| wish.expression.clone()).or(own.expression), own.text),
        };
        OrgJob {
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
            next_run_at: next,
            next_run_at_local: next.zip(zone).map(|(at, zone)| at.to_zoned(zone.as_jiff().clone()).to_string()),
            rescheduled_from: timer.and_then(|timer| timer.rescheduled_from),
            next_run_frozen: None,
            next_run_frozen_until: None,
            last_local_date: timer.and_then(|timer| timer.last_local_date).map(|date| date.to_string()),
            r#override: wish.map(Override::from),
        }
    }
}

impl From<&org::Override> for Override {
    fn from(stored: &org::Override) -> Override {
        Override {
            enabled: stored.enabled,
            cron_expression: stored.expression.clone(),
            updated_by: stored.updated_by.clone(),
            updated_at: stored.updated_at,
        }
    }
}

impl From<&org::OrgUpdate> for OrgUpdate {
    fn from(org_update: &org::OrgUpdate) -> OrgUpdate {
        OrgUpdate {
            id: org_update.id.to_string(),
            work: OrgUpdateWork::from_word(org_update.task.as_str()),
            asked_by: org_update.actor.clone(),
            asked_at: org_update.at,
            seen: org_update.seen,
            reached: org_update.reached.as_ref().map(ToString::to_string),
        }
    }
}
