//! Requested changes of orgs and overrides: checked, and compared with the current state.

use jiff::Timestamp;

use super::{Org, OrgSettings, Override, TimezoneChange};
use crate::cron::Expression;
use crate::ids::{Invalid, JobKey, OrgId};
use crate::json::Json;
use crate::zone::Zone;

/// The most orgs that one request writes.
pub const MAX_ORGS_AT_ONCE: usize = 10_000;

const MAX_NAME_CHARS: usize = 200;
const MAX_SETTINGS_BYTES: usize = 64 * 1024;

/// An org to be made or changed. What is `None` keeps its value, or has its default in a new org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgWrite {
    /// The id of the org.
    pub id: OrgId,
    /// A display name.
    pub name: Option<String>,
    /// Its zone; a new org needs one.
    pub timezone: Option<String>,
    /// Whether jobs fire for it; a new org is enabled.
    pub enabled: Option<bool>,
    /// An object for the caller's own use.
    pub settings: Option<Json>,
    /// The revision that it must be at.
    pub expected_revision: Option<u64>,
    /// Whether it must already exist.
    pub only_existing: bool,
}

impl OrgWrite {
    /// A write that changes nothing yet.
    pub fn new(id: OrgId) -> OrgWrite {
        OrgWrite {
            id,
            name: None,
            timezone: None,
            enabled: None,
            settings: None,
            expected_revision: None,
            only_existing: false,
        }
    }
}

/// The effect of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing changes.
    Same,
    /// The org as it will be, and whether its timers are affected.
    New(Box<Org>, bool),
}

/// The org as it shall be.
pub fn written(there: Option<&Org>, write: &OrgWrite, by: &str, now: Timestamp) -> Result<Written, Invalid> {
    check(write)?;
    let timezone = match &write.timezone {
        Some(name) => Some(Zone::get(name).map_err(|error| Invalid::new("timezone", error.to_string()))?.name()),
        None => None,
    };
    let Some(old) = there.filter(|org| !org.place.deleted) else {
        write.id.expect_visible()?;
        let timezone = timezone.ok_or_else(|| {
            Invalid::new("timezone", "a new org needs one: an IANA name such as `Europe/Paris` or `UTC`")
        })?;
        let place = OrgSettings {
            timezone: timezone.to_owned(),
            enabled: write.enabled.unwrap_or(true),
            deleted: false,
            changed_at: now,
            moved: None,
        };
        let org = Org {
            id: write.id.clone(),
            name: write.name.clone().unwrap_or_default(),
            settings: write.settings.clone().unwrap_or_else(Json::empty),
            place,
            revision: there.map_or(1, |gone| gone.revision + 1),
            created_at: now,
            updated_by: by.to_owned(),
            updated_at: now,
        };
        return Ok(Written::New(Box::new(org), true));
    };
    let mut org = old.clone();
    if let Some(name) = &write.name {
        org.name.clone_from(name);
    }
    if let Some(settings) = &write.settings {
        org.settings = settings.clone();
    }
    org.place.enabled = write.enabled.unwrap_or(org.place.enabled);
    if let Some(timezone) = timezone.filter(|name| *name != org.place.timezone) {
        org.place.moved =
            Some(TimezoneChange { from: std::mem::replace(&mut org.place.timezone, timezone.to_owned()), at: now });
    }
    if org == *old {
        return Ok(Written::Same);
    }
    let timers_care = org.place != old.place;
    if timers_care {
        org.place.changed_at = now;
    }
    Ok(Written::New(
        Box::new(Org { revision: old.revision + 1, updated_by: by.to_owned(), updated_at: now, ..org }),
        timers_care,
    ))
}

/// The org as it is until its timers are gone.
pub fn deleted(org: &Org, by: &str, now: Timestamp) -> Org {
    let place = OrgSettings { deleted: true, enabled: false, changed_at: now, ..org.place.clone() };
    Org { place, revision: org.revision + 1, updated_by: by.to_owned(), updated_at: now, ..org.clone() }
}

fn check(write: &OrgWrite) -> Result<(), Invalid> {
    if let Some(name) = &write.name {
        let length = name.chars().count();
        if length > MAX_NAME_CHARS {
            return Err(Invalid::new("name", format!("must be at most {MAX_NAME_CHARS} characters, not {length}")));
        }
        if name.chars().any(char::is_control) {
            return Err(Invalid::new("name", "must not contain control characters"));
        }
    }
    if let Some(settings) = &write.settings {
        if !settings.as_str().starts_with('{') {
            return Err(Invalid::new("settings", "must be a JSON object"));
        }
        if settings.as_str().len() > MAX_SETTINGS_BYTES {
            let length = settings.as_str().len();
            let reason = format!("must be at most {MAX_SETTINGS_BYTES} bytes of JSON, not {length}");
            return Err(Invalid::new("settings", reason));
        }
    }
    Ok(())
}

/// An org's override of a job, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideWrite {
    /// The job.
    pub job_key: JobKey,
    /// `false` turns the job off for the org.
    pub enabled: bool,
    /// Another local time, as a cron expression.
    pub expression: Option<String>,
}

/// The override as it shall be.
pub fn override_of(write: &OverrideWrite, by: &str, now: Timestamp) -> Result<Override, Invalid> {
    if let Some(text) = &write.expression {
        text.parse::<Expression>().map_err(|error| Invalid::new("cronExpression", error.to_string()))?;
    }
    Ok(Override {
        job_key: write.job_key.clone(),
        enabled: write.enabled,
        expression: write.expression.as_ref().map(|text| text.trim().to_owned()),
        updated_by: by.to_owned(),
        updated_at: now,
    })
}

impl Invalid {
    /// The refusal of what is for one org or for all, and does not say for whom.
    pub fn for_whom() -> Invalid {
        let reason = "this job fires per org: name one in `orgId`, or all of them with `orgs`: `all`";
        Invalid::new("orgId", reason)
    }

    /// The same refusal, about this one of several orgs.
    #[must_use]
    pub fn for_org(self, org: &OrgId) -> Invalid {
        Invalid { reason: format!("org `{org}`: {}", self.reason), org: Some(org.clone()), ..self }
    }

    /// The refusal of an org that a request names twice.
    pub fn repeated_org(org: &OrgId) -> Invalid {
        Invalid { org: Some(org.clone()), ..Invalid::new("id", format!("org `{org}` is named twice")) }
    }
}
