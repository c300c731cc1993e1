//! Orgs.

use everbell_core::store::OrgWritten;
use everbell_core::{self as core, Zone};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Raw;

/// A tenant with its own time zone.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Org {
    /// Its id.
    pub id: String,
    /// A name for people; may be empty.
    pub name: String,
    /// The IANA time zone in which jobs fire for it.
    pub timezone: String,
    /// Whether jobs fire for it.
    pub enabled: bool,
    /// Any JSON object.
    #[schema(value_type = Object)]
    pub settings: Option<Raw>,
    /// The local time now; null if the zone cannot be read.
    pub local_time: Option<String>,
    /// The local date now; null if the zone cannot be read.
    #[schema(format = Date)]
    pub local_date: Option<String>,
    /// The zone before the last move.
    pub moved_from: Option<String>,
    /// When it last moved to another zone.
    pub moved_at: Option<Timestamp>,
    /// Grows with every change; also the `ETag`.
    pub revision: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// The actor that changed it last.
    pub updated_by: String,
    /// Why its zone cannot be read.
    pub error: Option<String>,
    /// In the response to a change: the jobs that fire for it now, because today's time has passed and today has no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fires_now: Option<Vec<String>>,
}

/// Orgs that were written together.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many were or would be created.
    pub created: u64,
    /// How many were or would be changed.
    pub changed: u64,
    /// How many already had these values.
    pub same: u64,
}

impl Org {
    /// An org, with its local time at this moment.
    pub fn new(org: &core::org::Org, now: Timestamp) -> Org {
        let zone = Zone::get(&org.place.timezone);
        let local = zone.as_ref().ok().map(|zone| zone.as_jiff().to_datetime(now));
        let moved = org.place.moved.as_ref();
        Org {
            fires_now: None,
            id: org.id.to_string(),
            name: org.name.clone(),
            timezone: org.place.timezone.clone(),
            enabled: org.place.enabled,
            settings: Raw::from_stored(&org.settings),
            local_time: local.map(|local| local.strftime("%H:%M:%S").to_string()),
            local_date: local.map(|local| local.date().to_string()),
            moved_from: moved.map(|moved| moved.from.clone()),
            moved_at: moved.map(|moved| moved.at),
            revision: org.revision,
            created_at: org.created_at,
            updated_at: org.updated_at,
            updated_by: org.updated_by.clone(),
            error: zone.err().map(|error| error.to_string()),
        }
    }
}

impl Imported {
    /// The counts of orgs that were written, or would be.
    pub fn new(written: &[OrgWritten], dry_run: bool) -> Imported {
        let count = |wanted: fn(&OrgWritten) -> bool| written.iter().filter(|own| wanted(own)).count() as u64;
        Imported {
            dry_run,
            created: count(|own| own.created),
            changed: count(|own| own.changed && !own.created),
            same: count(|own| !own.changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use everbell_core::OrgId;
    use everbell_core::org::OrgSettings;

    use super::*;

    #[test]
    fn unknown_zone_is_reported_without_a_local_time() {
        let at: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let place = OrgSettings {
            timezone: "Mars/Olympus".to_owned(),
            enabled: true,
            deleted: false,
            changed_at: at,
            moved: None,
        };
        let mut org = core::org::Org::new(OrgId::new("acme").unwrap(), place, "ana".to_owned(), at);
        let broken = Org::new(&org, at);
        assert!(broken.error.as_ref().is_some_and(|error| error.contains("Mars/Olympus")), "{:?}", broken.error);
        assert_eq!((broken.local_time, broken.local_date, broken.timezone.as_str()), (None, None, "Mars/Olympus"));
        org.place.timezone = "Asia/Tokyo".to_owned();
        let there = Org::new(&org, at);
        assert_eq!((there.local_time.as_deref(), there.error), (Some("21:00:00"), None));
    }
}
