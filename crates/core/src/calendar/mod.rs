//! Calendars: named sets of whole days on which jobs fire, or do not.
//!
//! ```text
//! text, .ics ──parse──► Calendar (dates, yearly dates, weekdays; a name, a version, perhaps a zone)
//!                          │ days: is this day in it? until when? — knows no instants
//!                          ▼
//!                       filter: days of several calendars, in their zones, to ranges of instants — knows no schedule
//! ```
//!
//! A version of a job keeps the days of its calendars, as they were when the version was made. An edit of a calendar makes
//! the next version of each job that uses it. So a definition never changes, every instance may cache it, and the past is
//! explained by the days that were in force.
//!
//! A slot of an excluded day may move to another day ([`Roll`]): `spec/rolled.rs` says when it fires.
//!
//! A local day begins at the first instant whose local time is at or after its midnight. So days follow each other without
//! a gap also where clocks change at midnight.

mod days;
mod entry;
mod filter;
mod ics;
mod roll;

use std::fmt;
use std::sync::Arc;

use crate::ids::{Invalid, expect_visible};
use crate::zone::Zone;

use days::Days;
pub use days::Weekdays;
pub use entry::{DayEntry, DaySpan};
pub(crate) use filter::Filter;
pub use ics::read_ics;
pub use roll::Roll;

/// The most bytes of all entries: every version of a job that names the calendar has them.
pub const MAX_BYTES: usize = 64 << 10;
/// The most entries of one calendar.
pub const MAX_ENTRIES: usize = 2_000;
/// The most calendars of a database.
pub const MAX_CALENDARS: usize = 200;
/// The most calendars that one job names.
pub const MAX_CALENDARS_PER_JOB: usize = 16;
const MAX_NAME_BYTES: usize = 100;

/// The name of a calendar, such as `de-holidays`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarName(String);

impl CalendarName {
    /// Checks the name: letters, digits, `-`, `_` and `.`, so that it needs no quotes in addresses and commands.
    pub fn new(name: &str) -> Result<CalendarName, Invalid> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) || name.starts_with('.') {
            let reason = format!(
                "must be 1 to {MAX_NAME_BYTES} bytes of letters, digits, `-`, `_` and `.`, and not begin with a dot"
            );
            return Err(Invalid::new("name", reason));
        }
        expect_visible("name", name)?;
        Ok(CalendarName(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CalendarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The days of a calendar as they are written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalendarContent {
    /// The zone whose days they are; the zone of the job, or of the org, if absent.
    pub timezone: Option<Zone>,
    /// Dates, ranges of dates and dates of every year.
    pub entries: Vec<DayEntry>,
    /// Days of every week.
    pub weekly: Weekdays,
}

impl CalendarContent {
    /// Reads days such as `2027-01-01`, `2027-04-02..2027-04-05` or `*-12-25 Christmas`, and days of every week such as
    /// `sat`.
    pub fn parse(dates: &[&str], weekly: &[&str]) -> Result<CalendarContent, Invalid> {
        let entries = dates.iter().map(|day| day.parse()).collect::<Result<_, _>>()?;
        Ok(CalendarContent { timezone: None, entries, weekly: Weekdays::parse(weekly)? })
    }

    /// Refuses a calendar that has too many entries, or none.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.entries.len() > MAX_ENTRIES {
            let reason = format!("must be at most {MAX_ENTRIES} entries, not {}", self.entries.len());
            return Err(Invalid::new("dates", reason));
        }
        let bytes: usize = self.entries.iter().map(|entry| entry.to_string().len()).sum();
        if bytes > MAX_BYTES {
            let reason = format!("must be at most {MAX_BYTES} bytes with their names, not {bytes}");
            return Err(Invalid::new("dates", reason));
        }
        if self.entries.is_empty() && self.weekly.is_empty() {
            let reason = "the calendar has no day: give it `dates`, `weekly` or `ics`";
            return Err(Invalid::new("dates", reason));
        }
        Ok(())
    }
}

/// One version of a calendar: immutable.
#[derive(Clone)]
pub struct Calendar {
    name: CalendarName,
    version: u32,
    content: CalendarContent,
    days: Days,
}

impl Calendar {
    /// A calendar with its days.
    pub fn new(name: CalendarName, version: u32, content: CalendarContent) -> Calendar {
        let days = Days::new(&content.entries, content.weekly);
        Calendar { name, version, content, days }
    }

    /// A calendar of which only the name is known, until [`CalendarRules::resolved`] finds it.
    pub fn unresolved(name: CalendarName) -> Calendar {
        Calendar::new(name, 0, CalendarContent::default())
    }

    /// Its name.
    pub fn name(&self) -> &CalendarName {
        &self.name
    }

    /// 1, 2, 3, …; 0 if only the name is known.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Its days as they are written down.
    pub fn content(&self) -> &CalendarContent {
        &self.content
    }

    /// The name that it gives to a day, such as `Christmas`.
    pub fn day_name(&self, day: jiff::civil::Date) -> Option<&str> {
        self.content.entries.iter().filter(|entry| entry.span.contains(day)).find_map(|entry| entry.name.as_deref())
    }

    /// Whether the day is in it.
    pub fn contains(&self, day: jiff::civil::Date) -> bool {
        self.days.contains(days::number(day))
    }
}

/// Two versions with the same name and number have the same days.
impl PartialEq for Calendar {
    fn eq(&self, other: &Calendar) -> bool {
        (&self.name, self.version) == (&other.name, other.version) && self.content == other.content
    }
}

impl Eq for Calendar {}

impl std::hash::Hash for Calendar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.name, self.version).hash(state);
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calendar({}@{})", self.name, self.version)
    }
}

/// The calendars of a job by their names, as they were written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalendarNames {
    /// See [`CalendarRules::exclude`].
    pub exclude: Vec<String>,
    /// See [`CalendarRules::only`].
    pub only: Vec<String>,
    /// See [`CalendarRules::roll`].
    pub roll: Roll,
}

impl From<&CalendarRules> for CalendarNames {
    fn from(rules: &CalendarRules) -> CalendarNames {
        let names = |all: &[Arc<Calendar>]| all.iter().map(|calendar| calendar.name().to_string()).collect();
        CalendarNames { exclude: names(&rules.exclude), only: names(&rules.only), roll: rules.roll }
    }
}

/// The calendars of a job: it fires on no day of `exclude`, and, if `only` is not empty, only on days of one of those. Slots of
/// other days do not fire, or move: see [`Roll`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CalendarRules {
    /// No slot on a day of any of these. They win over `only`.
    pub exclude: Vec<Arc<Calendar>>,
    /// Slots only on days of at least one of these; any day, if there is none.
    pub only: Vec<Arc<Calendar>>,
    /// The fate of slots on other days.
    pub roll: Roll,
}

impl CalendarRules {
    /// Rules of which only the names are known. Names the fields as the API does.
    pub fn from_names(names: &CalendarNames) -> Result<CalendarRules, Vec<Invalid>> {
        let CalendarNames { exclude, only, roll } = names;
        let mut problems = Vec::new();
        let mut read = |field: &'static str, names: &[String]| {
            let mut read: Vec<Arc<Calendar>> = Vec::new();
            for name in names {
                match CalendarName::new(name) {
                    Ok(name) if read.iter().any(|known| *known.name() == name) => {
                        problems.push(Invalid::new(field, format!("names `{name}` twice")));
                    }
                    Ok(name) => read.push(Arc::new(Calendar::unresolved(name))),
                    Err(problem) => {
                        let reason = format!("the name `{name}` of a calendar {}", problem.reason);
                        problems.push(Invalid::new(field, reason));
                    }
                }
            }
            read
        };
        let rules = CalendarRules { exclude: read(EXCLUDE, exclude), only: read(ONLY, only), roll: *roll };
        if rules.all().count() > MAX_CALENDARS_PER_JOB {
            problems.push(Invalid::new(EXCLUDE, format!("a job has at most {MAX_CALENDARS_PER_JOB} calendars")));
        }
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    /// Whether the job uses no calendar.
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty() && self.only.is_empty()
    }

    /// Every calendar, the excluded ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Calendar>> {
        self.exclude.iter().chain(&self.only)
    }

    /// Whether one of them has this name.
    pub fn names(&self, name: &CalendarName) -> bool {
        self.all().any(|calendar| calendar.name() == name)
    }

    /// The same names with the days of `current`. A name that is not there keeps the days that it has, or is refused if it
    /// has none: the store compares versions when it writes.
    pub fn resolved(&self, current: &[Arc<Calendar>]) -> Result<CalendarRules, Invalid> {
        let find = |field: &'static str, calendars: &[Arc<Calendar>]| {
            let found = calendars.iter().map(|named| {
                let found = current.iter().find(|calendar| calendar.name() == named.name());
                let found = found.or(Some(named).filter(|named| named.version() > 0));
                found.cloned().ok_or_else(|| missing(field, named.name(), current))
            });
            found.collect::<Result<Vec<_>, Invalid>>()
        };
        let (exclude, only) = (find(EXCLUDE, &self.exclude)?, find(ONLY, &self.only)?);
        Ok(CalendarRules { exclude, only, roll: self.roll })
    }

    /// The names, separated by commas, with what they are for: `exclude a,b only c roll next`. Empty without calendars.
    pub fn describe(&self) -> String {
        let names = |calendars: &[Arc<Calendar>]| {
            calendars.iter().map(|calendar| calendar.name().as_str()).collect::<Vec<_>>().join(",")
        };
        let part = |word: &str, calendars: &[Arc<Calendar>]| {
            if calendars.is_empty() { String::new() } else { format!("{word} {}", names(calendars)) }
        };
        let roll = if self.roll == Roll::Skip { String::new() } else { format!("roll {}", self.roll) };
        let parts = [part("exclude", &self.exclude), part("only", &self.only), roll];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

const EXCLUDE: &str = "policies.calendar.exclude";
const ONLY: &str = "policies.calendar.only";

fn missing(field: &'static str, name: &CalendarName, current: &[Arc<Calendar>]) -> Invalid {
    let known: Vec<&str> = current.iter().take(20).map(|calendar| calendar.name().as_str()).collect();
    let known = match known.as_slice() {
        [] => "there is none yet".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    Invalid::new(field, format!("there is no calendar named `{name}`; {known}"))
}

/// Why a time is no slot: the calendar, and what it calls the day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The calendar that excludes the day, or the first of those that would have to allow it.
    pub calendar: CalendarName,
    /// Its version.
    pub version: u32,
    /// The local day.
    pub day: jiff::civil::Date,
    /// The name of the day in the calendar.
    pub day_name: Option<String>,
    /// Whether the day is excluded, or missing in the calendars that the job is limited to.
    pub is_excluded: bool,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exclusion { calendar, day, day_name, is_excluded, .. } = self;
        let name = day_name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        if *is_excluded {
            write!(f, "the calendar {calendar} excludes {day}{name}")
        } else {
            write!(f, "the job fires only on days of the calendar {calendar}, and {day} is not one of them")
        }
    }
}
