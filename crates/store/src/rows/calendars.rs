//! Rows of `calendars`, and the calendars of a job in its policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use everbell_core::calendar::{
    Calendar, CalendarContent, CalendarName, CalendarRules, DayEntry, MAX_CALENDARS, Roll, Weekdays,
};
use everbell_core::store::{StoreError, StoreResult, StoredCalendar};
use everbell_core::{Definition, Invalid, Source, Zone};
use serde::{Deserialize, Serialize};

use super::from_row::by_name;
use super::{corrupt, word};
use crate::micros::Micros;

/// A calendar as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct CalendarColumns {
    pub(crate) name: String,
    pub(crate) version: i64,
    pub(crate) applied_version: i64,
    pub(crate) content: String,
    pub(crate) source: String,
    pub(crate) updated_by: String,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

by_name!(CalendarColumns { name, version, applied_version, content, source, updated_by, created_at, updated_at });

/// The days of a calendar, in JSON.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct ContentText {
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dates: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    weekly: Vec<String>,
}

/// One calendar of a job, with its days.
#[derive(Deserialize, Serialize)]
struct NamedText {
    name: String,
    version: u32,
    #[serde(flatten)]
    content: ContentText,
}

/// The calendars of a job, in the JSON of its policies.
#[derive(Deserialize, Serialize)]
pub(super) struct CalendarsText {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<NamedText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    only: Vec<NamedText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roll: Option<String>,
}

/// The part of the JSON of policies by which statements find jobs that use calendars.
pub(crate) const CALENDARS_PATTERN: &str = "%\"calendars\":{%";

impl CalendarsText {
    pub(super) fn new(rules: &CalendarRules) -> Option<CalendarsText> {
        let texts = |calendars: &[Arc<Calendar>]| {
            let text = |calendar: &Arc<Calendar>| NamedText {
                name: calendar.name().to_string(),
                version: calendar.version(),
                content: ContentText::new(calendar.content()),
            };
            calendars.iter().map(text).collect()
        };
        let roll = (rules.roll != Roll::default()).then(|| rules.roll.to_string());
        let text = || CalendarsText { exclude: texts(&rules.exclude), only: texts(&rules.only), roll };
        (!rules.is_empty()).then(text)
    }

    pub(super) fn read(self) -> Result<CalendarRules, Invalid> {
        let read = |texts: Vec<NamedText>| {
            let one = |text: NamedText| {
                let name = CalendarName::new(&text.name)?;
                Ok(Arc::new(Calendar::new(name, text.version, text.content.read()?)))
            };
            texts.into_iter().map(one).collect::<Result<Vec<_>, Invalid>>()
        };
        let word = self.roll.as_deref().map_or(Some(Roll::default()), Roll::from_word);
        let roll = word.ok_or_else(|| Invalid::new("policies", "unknown calendar.roll"))?;
        Ok(CalendarRules { exclude: read(self.exclude)?, only: read(self.only)?, roll })
    }
}

impl ContentText {
    fn new(content: &CalendarContent) -> ContentText {
        ContentText {
            timezone: content.timezone.as_ref().map(|zone| zone.name().to_owned()),
            dates: content.entries.iter().map(ToString::to_string).collect(),
            weekly: content.weekly.words().into_iter().map(str::to_owned).collect(),
        }
    }

    fn read(&self) -> Result<CalendarContent, Invalid> {
        let zone = self.timezone.as_deref().map(Zone::get).transpose();
        Ok(CalendarContent {
            timezone: zone.map_err(|error| Invalid::new("timezone", error.to_string()))?,
            entries: self.dates.iter().map(|text| text.parse()).collect::<Result<Vec<DayEntry>, Invalid>>()?,
            weekly: Weekdays::parse(&self.weekly)?,
        })
    }
}

impl CalendarColumns {
    pub(crate) fn new(stored: &StoredCalendar) -> CalendarColumns {
        let calendar = &stored.calendar;
        let content = serde_json::to_string(&ContentText::new(calendar.content()));
        CalendarColumns {
            name: calendar.name().to_string(),
            version: i64::from(calendar.version()),
            applied_version: i64::from(stored.applied_version),
            content: content.unwrap_or_else(|_| "{}".to_owned()),
            source: stored.source.to_string(),
            updated_by: stored.updated_by.clone(),
            created_at: stored.created_at.into(),
            updated_at: stored.updated_at.into(),
        }
    }

    pub(crate) fn read(self) -> StoreResult<StoredCalendar> {
        let name = self.name.clone();
        let read = || -> Result<StoredCalendar, Invalid> {
            let content: ContentText =
                serde_json::from_str(&self.content).map_err(|error| Invalid::new("content", error.to_string()))?;
            let number = |value: i64| u32::try_from(value).unwrap_or(0);
            let name = CalendarName::new(&self.name)?;
            Ok(StoredCalendar {
                calendar: Arc::new(Calendar::new(name, number(self.version), content.read()?)),
                source: word(Source::ALL, Source::as_str, &self.source)?,
                applied_version: number(self.applied_version),
                updated_by: self.updated_by.clone(),
                created_at: self.created_at.into(),
                updated_at: self.updated_at.into(),
            })
        };
        read().map_err(|why| corrupt("calendars", name, why))
    }
}

/// The refusal of one calendar more.
pub(crate) fn too_many() -> Invalid {
    Invalid::new("name", format!("there are {MAX_CALENDARS} calendars already, which is the most"))
}

/// The names of the calendars of a job, sorted; those that a store has to compare with what it has.
pub(crate) fn names_of(definition: &Definition) -> Vec<String> {
    let mut names: Vec<String> =
        definition.policies.calendars.all().map(|calendar| calendar.name().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Refuses a job whose calendars are not the current ones: `current` has names and versions.
pub(crate) fn expect_current(definition: &Definition, current: &BTreeMap<String, i64>) -> StoreResult<()> {
    for calendar in definition.policies.calendars.all() {
        let name = calendar.name().as_str();
        let what = match current.get(name) {
            Some(version) if *version == i64::from(calendar.version()) => continue,
            Some(version) => {
                format!("calendar `{name}` has version {version}, and the job was made with {}", calendar.version())
            }
            None => format!("calendar `{name}` no longer exists"),
        };
        return Err(StoreError::Conflict { what });
    }
    Ok(())
}
