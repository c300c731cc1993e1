//! Freezes: times in which schedules do not fire.

use axum::http::StatusCode;
use everbell::Freezes;
use everbell::client::NewFreeze;
use everbell_core::Zone;
use everbell_core::freeze::MAX_EXCEPTIONS;
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::body::job::{ZONE, time};
use everbell_wire::form::{Field, Kind as Value, TEXT, optional, required};
use uuid::Uuid;

use crate::excerpt::excerpt;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse, refuse};

/// The body of a freeze.
pub const FREEZE: &[Field] = &[
    optional("from", Value::Time, "The first instant that may not fire. Default: now."),
    required("until", Value::Time, "The first instant that may fire again."),
    optional("timezone", ZONE, "The IANA time zone of times without an offset. Default: UTC."),
    required("reason", Value::Text { min: 3, max: 500 }, "The reason, which is shown with the freeze."),
    optional(
        "label",
        Value::Text { min: 1, max: 401 },
        "Only jobs with this label: `name=value` or `name`. Default: all jobs.",
    ),
    optional(
        "except",
        Value::List { of: &TEXT, max: MAX_EXCEPTIONS },
        "The keys of jobs that are exempt from the freeze.",
    ),
];

impl ApiRequest {
    /// Returns the freezes client of the caller.
    pub fn freezes(&self) -> Freezes {
        self.app.bell.freezes().by(&self.actor.name).with_origin(self.actor.origin.clone())
    }
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let now = request.app.bell.now();
    let freezes = request.freezes().list().await?;
    ApiResponse::ok(&wire::Items { items: freezes.iter().map(|freeze| wire::Freeze::new(freeze, now)).collect() })
}

/// Announces a freeze.
pub async fn add(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(FREEZE);
    let zone = form.text("timezone").map(Zone::get).transpose();
    let zone = zone.map_err(|error| form.fault("timezone", FaultCode::UnknownZone, error.to_string())).ok().flatten();
    let zone = zone.unwrap_or_else(Zone::utc);
    let (from, until) = (time(&mut form, "from", &zone), time(&mut form, "until", &zone));
    let label = form.text("label").map(|text| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    });
    let new = NewFreeze {
        from,
        until: until.unwrap_or_default(),
        reason: form.text("reason").unwrap_or_default().to_owned(),
        label,
        except: form.list("except").into_iter().map(str::to_owned).collect(),
    };
    refuse(form.faults())?;
    let freeze = request.freezes().add(new).await?;
    ApiResponse::json(StatusCode::CREATED, &wire::Freeze::new(&freeze, request.app.bell.now()))
}

pub(crate) async fn end(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("freezeId");
    let id = Uuid::parse_str(name).map_err(|_| Problem::not_found("freeze", &excerpt(name)))?;
    let freeze = request.freezes().end(id).await?;
    ApiResponse::ok(&wire::Freeze::new(&freeze, request.app.bell.now()))
}
