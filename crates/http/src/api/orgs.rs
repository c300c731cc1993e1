//! Orgs: tenants with their own time zone.

use axum::http::StatusCode;
use everbell::{Org, OrgFilter, OrgId, OrgWrite, StoreError};
use everbell_core::{Json, Zone};
use everbell_wire as wire;
use serde_json::Value as JsonValue;
use serde_json::value::RawValue;

use super::actions::REASON;
use crate::body::{off_workers, parse};
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse, member};
use everbell_wire::FaultCode;
use everbell_wire::body::job::ZONE;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, TEXT, optional, required};

const NAME: Field = optional("name", Value::Text { min: 0, max: 200 }, "A display name.");
const TIMEZONE: Field = optional("timezone", ZONE, "The IANA time zone. Required for a new org.");
const ENABLED: Field = optional("enabled", Value::Flag, "Whether jobs fire for the org. Default for a new org: true.");
const SETTINGS: Field =
    optional("settings", Value::Map(&Value::Json), "Any JSON object of at most 64 KiB. Replaced as a whole.");
const WHY: Field = optional("reason", REASON, "The reason, for the audit trail.");

/// The body of an org. Absent members keep their values.
pub const ORG: &[Field] = &[NAME, TIMEZONE, ENABLED, SETTINGS, WHY];

/// A line of an import.
pub const LINE: &[Field] = &[required("id", TEXT, "The id of the org."), NAME, TIMEZONE, ENABLED, SETTINGS];

pub(crate) const IMPORT: &[Field] =
    &[optional("dryRun", Value::Flag, "Return what would change without changing it."), WHY];

pub(crate) const DELETE: &[Field] = &[WHY];

/// The query of the list of orgs.
pub const LIST: &[Field] = &[
    optional("text", TEXT, "Only orgs whose id or name contains this text, ignoring case."),
    optional("timezone", ZONE, "Only orgs in this time zone."),
    optional("enabled", Value::Flag, "Only orgs that jobs fire for, or only the others."),
    optional(
        "errored",
        Value::Flag,
        "Only orgs with a job that cannot fire because the time zone or an override cannot be read, or only the others.",
    ),
    LIMIT,
    CURSOR,
];

/// The most orgs of one import.
const MAX_IMPORTED_ORGS: usize = everbell::core::org::MAX_ORGS_AT_ONCE;
/// The maximum number of faults of an import that are listed.
const MAX_LISTED_FAULTS: usize = 100;

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let page = request.orgs().list(&filter(&request.query(LIST)), &page::from_query(&request)?).await?;
    let now = request.app.bell.now();
    let document = page::document(&request, &page, page.items.iter().map(|org| wire::Org::new(org, now)).collect());
    Ok(page::linked(&request, "/orgs", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

/// Reads the filter of a query.
pub fn filter(form: &Form<'_>) -> OrgFilter {
    // A zone that is no more is looked for as it is written.
    let zone = |name: &str| Zone::get(name).map_or_else(|_| name.to_owned(), |zone| zone.name().to_owned());
    OrgFilter {
        text: form.text("text").map(str::to_owned),
        timezone: form.text("timezone").map(zone),
        enabled: form.answer("enabled"),
        errored: form.answer("errored"),
    }
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let org = request.orgs().get(&request.org()?).await?;
    org_response(&request, StatusCode::OK, &org)
}

fn org_response(request: &ApiRequest, status: StatusCode, org: &Org) -> Result<ApiResponse, Problem> {
    tagged(status, org, &wire::Org::new(org, request.app.bell.now()))
}

fn tagged(status: StatusCode, org: &Org, document: &wire::Org) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::json(status, document)?.header("etag", format!("\"{}\"", org.revision)))
}

/// Makes or changes an org.
pub async fn put(request: ApiRequest) -> Result<ApiResponse, Problem> {
    set(&request, OrgWrite::new(request.org()?)).await
}

/// Changes an org: `null` clears.
pub async fn patch(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut write = OrgWrite { only_existing: true, ..OrgWrite::new(request.org()?) };
    let cleared = |name: &str| request.body.get(name).is_some_and(JsonValue::is_null);
    if cleared("timezone") {
        let fault = Fault::new("/timezone", FaultCode::Required, "cannot be cleared; every org has a time zone");
        return Err(Problem::body(vec![fault]));
    }
    write.name = cleared("name").then(String::new);
    write.enabled = cleared("enabled").then_some(true);
    write.settings = cleared("settings").then(Json::empty);
    set(&request, write).await
}

async fn set(request: &ApiRequest, write: OrgWrite) -> Result<ApiResponse, Problem> {
    let mut form = request.body(ORG);
    let write = OrgWrite { expected_revision: request.if_match, ..read(&mut form, request.raw("settings"), write) };
    let faults = std::mem::take(form.faults_mut());
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let before = request.orgs().jobs_of(&write.id).await.or_else(|error| match error {
        StoreError::NotFound { .. } => Ok(Vec::new()),
        error => Err(error),
    })?;
    let written = request.orgs_because(form.text("reason")).set(write).await?;
    let org = &written.org;
    let fires_now = if written.changed { request.orgs().fires_now(&org.id, &before).await? } else { Vec::new() };
    let document = wire::Org {
        fires_now: Some(fires_now.iter().map(ToString::to_string).collect()),
        ..wire::Org::new(org, request.app.bell.now())
    };
    let status = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    let response = tagged(status, org, &document)?;
    let location = || format!("{}/orgs/{}", request.mount, page::encoded(written.org.id.as_str()));
    Ok(if written.created { response.header("location", location()) } else { response })
}

/// Reads the changes of an org. Adds faults that only core can detect.
fn read(form: &mut Form<'_>, settings: Option<Box<RawValue>>, write: OrgWrite) -> OrgWrite {
    if let Some(Err(error)) = form.text("timezone").map(Zone::get) {
        form.fault("timezone", FaultCode::UnknownZone, error.to_string());
    }
    let settings = match settings.map(|settings| Json::parse("settings", settings.get())) {
        Some(Err(invalid)) => {
            form.refuse(&invalid);
            None
        }
        Some(Ok(settings)) => Some(settings),
        None => None,
    };
    OrgWrite {
        name: form.text("name").map(str::to_owned).or(write.name),
        timezone: form.text("timezone").map(str::to_owned).or(write.timezone),
        enabled: form.answer("enabled").or(write.enabled),
        settings: settings.or(write.settings),
        ..write
    }
}

pub(crate) async fn delete(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(DELETE);
    request.orgs_because(form.text("reason")).delete(&request.org()?, request.if_match).await?;
    Ok(ApiResponse::nothing())
}

/// Makes and changes many orgs, all of them or none: a JSON object on each line.
pub async fn import(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(IMPORT);
    let text = request.text.clone();
    let lines = off_workers(text.len(), move || read_lines(&text)).await?;
    let (numbers, writes): (Vec<usize>, Vec<OrgWrite>) = lines.into_iter().unzip();
    let (orgs, dry_run) = (request.orgs_because(form.text("reason")), form.flag("dryRun"));
    let written = if dry_run { orgs.plan_import(&writes).await } else { orgs.import(&writes).await };
    let written = written.map_err(|error| match error {
        everbell::StoreError::Invalid(invalid) => Problem::body(vec![located(&invalid, &writes, &numbers)]),
        other => other.into(),
    })?;
    ApiResponse::ok(&wire::Imported::new(&written, dry_run))
}

/// The orgs of all lines, each with the number of its line.
pub(crate) fn read_lines(text: &str) -> Result<Vec<(usize, OrgWrite)>, Problem> {
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    if lines.is_empty() || lines.len() > MAX_IMPORTED_ORGS {
        let detail = format!("must have 1 to {MAX_IMPORTED_ORGS} lines, not {}", lines.len());
        return Err(Problem::body(vec![Fault::new("", FaultCode::OutOfRange, detail)]));
    }
    let (mut writes, mut faults) = (Vec::with_capacity(lines.len()), Vec::new());
    for (number, line) in &lines {
        match read_line(line) {
            Ok(write) => writes.push((*number, write)),
            Err(found) => faults.extend(found.iter().map(|fault| on_line(*number, fault))),
        }
        if faults.len() >= MAX_LISTED_FAULTS {
            break;
        }
    }
    if faults.is_empty() { Ok(writes) } else { Err(Problem::body(faults)) }
}

fn read_line(line: &str) -> Result<OrgWrite, Vec<Fault>> {
    let value = parse(line)
        .map_err(|problem| vec![Fault::new("", FaultCode::Malformed, without_line_number(&problem.detail))])?;
    let mut form = Form::read(&value, LINE, Naming::Camel);
    let id = form.text("id").map(OrgId::new);
    if let Some(Err(invalid)) = &id {
        form.fault("id", FaultCode::Invalid, invalid.reason.clone());
    }
    let id = id.and_then(Result::ok);
    let write = id.map(|id| read(&mut form, member(line, "settings"), OrgWrite::new(id)));
    let faults = form.faults();
    write.filter(|_| faults.is_empty()).ok_or(faults)
}

/// Removes the position from the syntax error of a single line.
fn without_line_number(detail: &str) -> String {
    let detail = detail.strip_prefix("Line 1, ").unwrap_or(detail);
    detail.split(" at line 1 column ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// The place of a fault is its line and its member.
fn on_line(number: usize, fault: &Fault) -> Fault {
    Fault::new(format!("/{number}{}", fault.pointer), fault.code.clone(), format!("line {number}: {}", fault.detail))
}

/// Assigns an error of the store to the last line that names the org.
fn located(invalid: &everbell::Invalid, writes: &[OrgWrite], numbers: &[usize]) -> Fault {
    let named = |write: &OrgWrite| invalid.org.as_ref() == Some(&write.id);
    let fault = Fault::new(format!("/{}", invalid.field), FaultCode::Invalid, invalid.reason.clone());
    match writes.iter().zip(numbers).rev().find(|(write, _)| named(write)) {
        Some((_, number)) => on_line(*number, &fault),
        None => fault,
    }
}
