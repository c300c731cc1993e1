//! Examples of calendars.

use super::{ACTOR, CREATED_AT, Example, NOW, at};
use crate::job::Source;
use crate::{Calendar, CalendarEffect, CalendarWritten, Freeze};

impl Example for Calendar {
    fn example() -> Calendar {
        Calendar {
            name: "de-holidays".to_owned(),
            version: 2,
            source: Source::Api,
            timezone: Some("Europe/Berlin".to_owned()),
            dates: vec!["2027-03-26..2027-03-29 Easter".to_owned(), "*-12-25 Christmas".to_owned()],
            weekly: Vec::new(),
            jobs: vec!["daily-report".to_owned()],
            applied: true,
            updated_by: ACTOR.to_owned(),
            created_at: at(CREATED_AT),
            updated_at: at(NOW),
        }
    }
}

impl Example for CalendarWritten {
    fn example() -> CalendarWritten {
        CalendarWritten {
            calendar: Some(Calendar::example()),
            dry_run: false,
            effects: vec![CalendarEffect {
                job_key: "daily-report".to_owned(),
                timezone: "Europe/Berlin".to_owned(),
                added: 0,
                removed: 2,
                added_fires: Vec::new(),
                removed_fires: vec![at("2027-03-26T07:00:00Z"), at("2027-03-29T06:00:00Z")],
            }],
            updated_jobs: vec!["daily-report".to_owned()],
            failed_jobs: Vec::new(),
        }
    }
}

impl Example for Freeze {
    fn example() -> Freeze {
        Freeze {
            id: "0195d5c8-1a40-8f01-9c3e-5a2b7d9e4f77".to_owned(),
            from: at("2027-03-19T17:00:00Z"),
            until: at("2027-03-22T07:00:00Z"),
            in_force: false,
            reason: "Release weekend".to_owned(),
            label: Some("team=sales".to_owned()),
            except: vec!["nightly-backup".to_owned()],
            created_by: ACTOR.to_owned(),
            created_at: at(NOW),
            ended_at: None,
            ended_by: None,
        }
    }
}
