//! Orgs, as the API shows them.

use everbell::{Org, OrgWritten};
use everbell_core::Zone;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{raw, time, times};

/// A tenant with its own time zone.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Org)]
pub(crate) struct OrgDocument {
    pub(crate) id: String,
    /// For people; may be empty.
    pub(crate) name: String,
    /// The IANA time zone in which its jobs fire.
    pub(crate) timezone: String,
    /// Whether jobs fire for it.
    pub(crate) enabled: bool,
    /// Whatever its owner keeps here.
    #[schema(value_type = Object)]
    pub(crate) settings: Option<Box<RawValue>>,
    /// What the clock shows there now; absent if the zone cannot be read.
    pub(crate) local_time: Option<String>,
    pub(crate) local_date: Option<String>,
    /// The zone before the last move.
    pub(crate) moved_from: Option<String>,
    pub(crate) moved_at: Option<String>,
    /// Grows with every change; the `ETag`.
    pub(crate) revision: u64,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) updated_by: String,
    /// Why its zone cannot be read any more.
    pub(crate) error: Option<String>,
    /// In the answer to a change: the jobs that fire for it at once, because today's time has gone by and today has no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fires_now: Option<Vec<String>>,
}

/// What became of orgs that were written together.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Imported)]
pub(crate) struct ImportedDocument {
    /// Nothing was written: this is what would be.
    pub(crate) dry_run: bool,
    pub(crate) created: u64,
    pub(crate) changed: u64,
    /// Those that are like that already.
    pub(crate) same: u64,
}

impl OrgDocument {
    /// The org, as it is at this time.
    pub(crate) fn of(org: &Org, now: Timestamp) -> OrgDocument {
        let zone = Zone::get(&org.place.timezone);
        let local = zone.as_ref().ok().map(|zone| zone.as_jiff().to_datetime(now));
        let moved = org.place.moved.as_ref();
        OrgDocument {
            fires_now: None,
            id: org.id.to_string(),
            name: org.name.clone(),
            timezone: org.place.timezone.clone(),
            enabled: org.place.enabled,
            settings: raw(&org.settings),
            local_time: local.map(|local| local.strftime("%H:%M:%S").to_string()),
            local_date: local.map(|local| local.date().to_string()),
            moved_from: moved.map(|moved| moved.from.clone()),
            moved_at: times(moved.map(|moved| moved.at)),
            revision: org.revision,
            created_at: time(org.created_at),
            updated_at: time(org.updated_at),
            updated_by: org.updated_by.clone(),
            error: zone.err().map(|error| error.to_string()),
        }
    }
}

impl ImportedDocument {
    pub(crate) fn of(written: &[OrgWritten], dry_run: bool) -> ImportedDocument {
        let count = |wanted: fn(&OrgWritten) -> bool| written.iter().filter(|own| wanted(own)).count() as u64;
        ImportedDocument {
            dry_run,
            created: count(|own| own.created),
            changed: count(|own| own.changed && !own.created),
            same: count(|own| !own.changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use everbell::OrgId;
    use everbell_core::Json;
    use everbell_core::org::Place;

    use super::*;

    #[test]
    fn a_zone_that_is_no_more_is_told_and_nothing_is_made_up() {
        let at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let place =
            Place { timezone: "Mars/Olympus".to_owned(), enabled: true, deleted: false, changed_at: at, moved: None };
        let mut org = Org {
            id: OrgId::new("acme").unwrap(),
            name: String::new(),
            settings: Json::empty(),
            place,
            revision: 1,
            created_at: at,
            updated_by: "ana".to_owned(),
            updated_at: at,
        };
        let broken = OrgDocument::of(&org, at);
        assert!(broken.error.as_ref().is_some_and(|error| error.contains("Mars/Olympus")), "{:?}", broken.error);
        assert_eq!((broken.local_time, broken.local_date, broken.timezone.as_str()), (None, None, "Mars/Olympus"));
        org.place.timezone = "Asia/Tokyo".to_owned();
        let there = OrgDocument::of(&org, at);
        assert_eq!((there.local_time.as_deref(), there.error), (Some("21:00:00"), None));
    }
}
