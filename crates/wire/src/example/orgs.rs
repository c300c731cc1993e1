//! Orgs, and jobs that fire for them.

use serde_json::json;

use super::{ACTOR, CREATED_AT, Example, NOW, ORG_JOB_ID, ORG_UPDATE_ID, at, raw};
use crate::org_job::{OrgJobState, OrgUpdateWork};
use crate::what_if::Verdict;
use crate::{
    Fire, Imported, JobOrgs, JobWhatIf, Org, OrgJob, OrgOverride, OrgUpdate, OrgUpdateStarted, Override, WhatIf,
    WhatIfDay,
};

impl Example for Org {
    fn example() -> Org {
        Org {
            id: "acme".to_owned(),
            name: "Acme Corporation".to_owned(),
            timezone: "Asia/Tokyo".to_owned(),
            enabled: true,
            settings: raw(&json!({ "plan": "pro" })),
            local_time: Some("18:30:00".to_owned()),
            local_date: Some("2027-03-15".to_owned()),
            moved_from: None,
            moved_at: None,
            revision: 1,
            created_at: at(CREATED_AT),
            updated_at: at(CREATED_AT),
            updated_by: ACTOR.to_owned(),
            error: None,
            fires_now: None,
        }
    }
}

/// Returns the org in the response to a change.
pub fn written_org() -> Org {
    Org { fires_now: Some(Vec::new()), ..Org::example() }
}

/// Returns the override in the response to a change.
pub fn written_override() -> OrgOverride {
    OrgOverride { fires_now: Some(false), ..OrgOverride::example() }
}

impl Example for Imported {
    fn example() -> Imported {
        Imported { dry_run: false, created: 1, changed: 1, same: 0 }
    }
}

impl Example for Override {
    fn example() -> Override {
        Override {
            enabled: true,
            cron_expression: Some("30 9 * * *".to_owned()),
            updated_by: ACTOR.to_owned(),
            updated_at: at(CREATED_AT),
        }
    }
}

impl Example for OrgJob {
    fn example() -> OrgJob {
        OrgJob {
            org_id: "acme".to_owned(),
            org_name: "Acme Corporation".to_owned(),
            job_id: ORG_JOB_ID.to_owned(),
            job_key: "briefing".to_owned(),
            job_version: 1,
            target: "send-briefing".to_owned(),
            standing: OrgJobState::Eligible,
            why: None,
            cron_expression: Some("30 9 * * *".to_owned()),
            schedule_text: "Every day at 09:30".to_owned(),
            timezone: "Asia/Tokyo".to_owned(),
            next_run_at: Some(at("2027-03-16T00:30:00Z")),
            next_run_at_local: Some("2027-03-16T09:30:00+09:00[Asia/Tokyo]".to_owned()),
            rescheduled_from: None,
            next_run_frozen: None,
            next_run_frozen_until: None,
            last_local_date: Some("2027-03-15".to_owned()),
            r#override: Some(Override::example()),
        }
    }
}

impl Example for OrgOverride {
    fn example() -> OrgOverride {
        OrgOverride {
            org_id: "acme".to_owned(),
            job_key: "briefing".to_owned(),
            r#override: Some(Override::example()),
            job: Some(OrgJob::example()),
            fires_now: None,
        }
    }
}

impl Example for JobOrgs {
    fn example() -> JobOrgs {
        JobOrgs { items: vec![OrgJob::example()], next_cursor: None, unreadable: Vec::new(), org_updates: Vec::new() }
    }
}

impl Example for OrgUpdate {
    fn example() -> OrgUpdate {
        OrgUpdate {
            id: ORG_UPDATE_ID.to_owned(),
            work: OrgUpdateWork::RunNow,
            asked_by: ACTOR.to_owned(),
            asked_at: at(NOW),
            seen: 40,
            reached: Some("initech".to_owned()),
        }
    }
}

impl Example for OrgUpdateStarted {
    fn example() -> OrgUpdateStarted {
        OrgUpdateStarted { id: ORG_UPDATE_ID.to_owned(), done: false }
    }
}

impl Example for WhatIf {
    fn example() -> WhatIf {
        let fire = |time: &str, local: &str| Fire::at(at(time), local.to_owned());
        let job = JobWhatIf {
            job_key: "briefing".to_owned(),
            job_id: ORG_JOB_ID.to_owned(),
            before: vec![fire("2027-03-16T00:30:00Z", "2027-03-16T09:30:00+09:00[Asia/Tokyo]")],
            after: vec![fire("2027-03-16T08:30:00Z", "2027-03-16T09:30:00+01:00[Europe/Berlin]")],
            days: vec![WhatIfDay {
                date: "2027-03-16".to_owned(),
                verdict: Verdict::Once,
                at: Some(at("2027-03-16T08:30:00Z")),
                gap: None,
            }],
            would_fire_again: false,
            sentence: "Would fire again today: no. The next fire would be 2027-03-16 09:30 Europe/Berlin.".to_owned(),
        };
        WhatIf {
            org_id: "acme".to_owned(),
            at: at(NOW),
            timezone_before: "Asia/Tokyo".to_owned(),
            timezone_after: "Europe/Berlin".to_owned(),
            jobs: vec![job],
        }
    }
}
