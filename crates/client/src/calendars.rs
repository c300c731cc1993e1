//! Calendars of days on which jobs fire, or do not.

use everbell_wire as wire;

use crate::call::Call;
use crate::client::Client;
use crate::path::segment;
use crate::request::{CalendarInput, FreezeInput};

/// Operations on calendars.
#[derive(Clone, Copy, Debug)]
pub struct Calendars<'a>(&'a Client);

/// Operations on freezes.
#[derive(Clone, Copy, Debug)]
pub struct Freezes<'a>(&'a Client);

impl Client {
    /// Operations on freezes: times in which schedules do not fire.
    pub fn freezes(&self) -> Freezes<'_> {
        Freezes(self)
    }

    /// Operations on calendars.
    pub fn calendars(&self) -> Calendars<'_> {
        Calendars(self)
    }
}

impl Calendars<'_> {
    /// Lists calendars, by name.
    pub fn list(self) -> Call<wire::Items<wire::Calendar>> {
        self.0.get("/calendars")
    }

    /// Gets a calendar.
    pub fn get(self, name: &str) -> Call<wire::Calendar> {
        self.0.get(&path(name))
    }

    /// Creates a calendar or replaces its days, or, with `dry_run`, returns what that would change.
    pub fn put(self, name: &str, calendar: &CalendarInput, dry_run: bool) -> Call<wire::CalendarWritten> {
        self.0.put(&path(name)).parameter("dryRun", &dry_run.to_string()).json(calendar)
    }

    /// Deletes a calendar that no current job names.
    pub fn delete(self, name: &str) -> Call<()> {
        self.0.delete(&path(name))
    }
}

impl Freezes<'_> {
    /// Lists freezes that are in force or still to come.
    pub fn list(self) -> Call<wire::Items<wire::Freeze>> {
        self.0.get("/freezes")
    }

    /// Announces a freeze.
    pub fn announce(self, freeze: &FreezeInput) -> Call<wire::Freeze> {
        self.0.post("/freezes").json(freeze)
    }

    /// Ends a freeze before its time.
    pub fn end(self, id: &str) -> Call<wire::Freeze> {
        self.0.delete(&format!("/freezes/{}", segment(id)))
    }
}

fn path(name: &str) -> String {
    format!("/calendars/{}", segment(name))
}
