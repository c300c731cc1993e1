//! `[[calendar]]` blocks: named days on which jobs fire, or do not.

use std::collections::BTreeMap;

use everbell::CalendarContent;
use everbell_core::calendar::CalendarName;
use serde_json::Value;

use super::fields::PATH;
use super::layers::Layers;
use super::secrets::read_text;
use super::targets::refuse_all;
use everbell_wire::FaultCode;
use everbell_wire::body::calendar::{DATES, TIMEZONE, WEEKLY, read_content};
use everbell_wire::form::{Fault, Field, Form, Kind, Naming, optional, required};

/// The longest iCalendar file or text.
const MAX_ICS_BYTES: u64 = 1_000_000;

/// The keys of a `[[calendar]]` block.
pub(crate) const CALENDAR: &[Field] = &[
    required("name", Kind::Text { min: 1, max: 100 }, "The name that jobs refer to it by."),
    TIMEZONE,
    DATES,
    WEEKLY,
    optional("icsFile", PATH, "An iCalendar file, whose events are added to `dates` as whole days."),
    optional("ics", Kind::Text { min: 1, max: 1_000_000 }, "The text of an iCalendar file, instead of `icsFile`."),
];

/// A calendar of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CalendarSettings {
    pub(crate) name: String,
    pub(crate) content: CalendarContent,
}

pub(super) fn read(layers: &mut Layers) -> Vec<CalendarSettings> {
    let mut calendars = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (n, block) in layers.blocks("calendar").iter().enumerate() {
        let place = format!("/calendar/{n}");
        let (name, content, mut faults) = calendar(block);
        if let Some(first) = seen.get(&name).filter(|_| !name.is_empty()) {
            faults.push(Fault::new(
                "/name",
                FaultCode::Invalid,
                format!("is defined twice; the other one is on line {first}"),
            ));
        }
        let line = layers.document.line(&format!("{place}/name")).unwrap_or_default();
        seen.entry(name.clone()).or_insert(line);
        calendars.extend(content.map(|content| CalendarSettings { name, content }));
        refuse_all(layers, &place, faults);
    }
    calendars
}

/// The name and the days of a block as far as they could be read, and what is wrong with it.
fn calendar(block: &Value) -> (String, Option<CalendarContent>, Vec<Fault>) {
    let mut form = Form::read(block, CALENDAR, Naming::Snake);
    let name = form.text("name").unwrap_or_default().to_owned();
    if let Err(problem) = CalendarName::new(&name)
        && !name.is_empty()
    {
        form.fault("name", FaultCode::Invalid, problem.reason);
    }
    let (text, file) = (form.text("ics").map(str::to_owned), form.text("icsFile").map(str::to_owned));
    if text.is_some() && file.is_some() {
        form.fault("icsFile", FaultCode::Conflict, "cannot be combined with `ics`");
    }
    let ics = match &file {
        Some(file) => match read_text(file, MAX_ICS_BYTES) {
            Ok(text) => Some(text),
            Err(reason) => {
                form.fault("icsFile", FaultCode::Invalid, format!("the file `{file}` {reason}"));
                None
            }
        },
        None => text,
    };
    let content = read_content(&mut form, ics.as_deref());
    let mut faults = form.faults();
    if file.is_some() {
        faults.iter_mut().filter(|fault| fault.pointer == "/ics").for_each(|fault| fault.pointer = "/ics_file".into());
    }
    (name, content, faults)
}
