//! Problems of jobs, and the channels that report them.

use axum::http::StatusCode;
use everbell_core::alert::{
    Change, DeliveryStatus, Kind as ProblemKind, Mute, NewDelivery, Note, ProblemChange, test_delivery_id,
};
use everbell_core::store::{DeliveryFilter, PageRequest, ProblemFilter};
use everbell_core::{JobKey, Json, OrgId};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::body::job;
use everbell_wire::form::{Fault, Field, Kind as Value, TEXT, optional};
use everbell_wire::notify::ChannelType;
use uuid::Uuid;

use super::top::labeled;
use crate::defined::Channel;
use crate::excerpt::excerpt;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};

const KINDS: Value = Value::Word(ProblemKind::WORDS);
const REASON: Value = Value::Text { min: 1, max: 500 };

/// The most messages of a channel that are counted.
const MAX_COUNTED: u32 = 1_000;

/// The query of the list of problems.
pub const LIST: &[Field] = &[
    optional("open", Value::Flag, "Only open problems, or with `false` only closed ones. Default: both."),
    optional("kind", KINDS, "Only problems of this kind."),
    optional("jobKey", TEXT, "Only problems of the job with this key."),
    optional("orgId", TEXT, "Only problems with runs for this org, which rules with `orgs` find."),
    optional(
        "label",
        TEXT,
        "Only problems of current jobs with this label: `name` or `name=value`. A page may have fewer items than its limit.",
    ),
    LIMIT,
    CURSOR,
];

/// The body of an acknowledgement.
pub const ACKNOWLEDGE: &[Field] = &[optional("reason", REASON, "The reason, which is shown with the problem.")];

/// The body of a mute.
pub const MUTE: &[Field] = &[
    optional("reason", REASON, "The reason, which is shown with the problem. Required."),
    optional("until", Value::Time, "When the mute ends. Default: when the problem closes."),
];

/// The query of the list of messages.
pub const DELIVERIES: &[Field] = &[
    optional("id", Value::Text { min: 1, max: 36 }, "Only the message with this id."),
    optional("channel", TEXT, "Only messages to this channel."),
    optional("problemId", Value::Text { min: 1, max: 36 }, "Only messages about this problem."),
    optional("status", Value::Word(wire::notify::DeliveryStatus::WORDS), "Only messages with this status."),
    LIMIT,
    CURSOR,
];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(LIST);
    let job = form.text("jobKey").map(JobKey::new).transpose();
    let org = form.text("orgId").map(OrgId::new).transpose();
    let filter = ProblemFilter {
        open: form.answer("open"),
        kind: form.word("kind", ProblemKind::from_word),
        job: job.map_err(|invalid| Problem::at("query", "jobKey", &invalid.reason))?,
        org: org.map_err(|invalid| Problem::at("query", "orgId", &invalid.reason))?,
    };
    let now = request.app.bell.now();
    let page = request.app.bell.store().list_problems(&filter, &page::from_query(&request)?).await?;
    let wanted = match form.text("label") {
        Some(label) => Some(labeled(&request.app, label).await?),
        None => None,
    };
    let is_wanted = |problem: &wire::JobProblem| wanted.as_ref().is_none_or(|wanted| wanted.contains(&problem.job_key));
    let items = page.items.iter().map(|problem| wire::JobProblem::new(problem, now)).filter(is_wanted).collect();
    let document = page::document(&request, &page, items);
    Ok(page::linked(&request, "/problems", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

pub(crate) async fn acknowledge(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let reason = request.body(ACKNOWLEDGE).text("reason").map(str::to_owned);
    let note = note(&request, reason);
    change(&request, "problem.acknowledge", &ProblemChange::Acknowledge(note)).await
}

pub(crate) async fn mute(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(MUTE);
    let until = job::time(&mut form, "until", &everbell_core::Zone::utc());
    let reason = form.text("reason").map(str::to_owned);
    if reason.is_none() {
        form.note(Fault::new("/reason", FaultCode::Required, "is required to mute a problem: 1 to 500 characters"));
    }
    crate::request::refuse(form.faults())?;
    let mute = Mute { note: note(&request, reason), until };
    change(&request, "problem.mute", &ProblemChange::Mute(mute)).await
}

pub(crate) async fn unmute(request: ApiRequest) -> Result<ApiResponse, Problem> {
    change(&request, "problem.unmute", &ProblemChange::Unmute).await
}

fn note(request: &ApiRequest, reason: Option<String>) -> Note {
    Note { by: request.actor.name.clone(), at: request.app.bell.now(), reason }
}

async fn change(request: &ApiRequest, action: &str, change: &ProblemChange) -> Result<ApiResponse, Problem> {
    let name = request.part("problemId");
    let missing = || Problem::not_found("problem", &excerpt(name));
    let id = Uuid::parse_str(name).map_err(|_| missing())?;
    let now = request.app.bell.now();
    let reason = match change {
        ProblemChange::Acknowledge(note) | ProblemChange::Mute(Mute { note, .. }) => note.reason.clone(),
        ProblemChange::Unmute => None,
    };
    let mut audit = request.actor.entry(action, format!("problem:{id}"), now);
    audit.reason = reason;
    let problem = request.app.bell.store().change_problem(id, change, &audit).await?;
    ApiResponse::ok(&wire::JobProblem::new(&problem, now))
}

pub(crate) async fn channels(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&wire::Items { items: described(&request).await? })
}

/// The channels of this server, and the state of their messages.
pub async fn described(request: &ApiRequest) -> Result<Vec<wire::NotifyChannel>, Problem> {
    let store = request.app.bell.store();
    let mut described = Vec::new();
    for Channel { name, kind, rules } in &request.app.options().channels {
        let of = |status| DeliveryFilter { channel: Some(name.clone()), status, ..DeliveryFilter::default() };
        let last = store.list_deliveries(&of(None), &PageRequest { limit: 1, after: None }).await?;
        let all = PageRequest { limit: MAX_COUNTED, after: None };
        let pending = store.list_deliveries(&of(Some(DeliveryStatus::Pending)), &all).await?;
        let dead = store.list_deliveries(&of(Some(DeliveryStatus::Dead)), &all).await?;
        described.push(wire::NotifyChannel {
            name: name.clone(),
            kind: ChannelType::from_word(kind),
            rules: rules.clone(),
            last: last.items.first().map(wire::NotifyDelivery::from),
            pending: pending.items.len() as u64,
            dead: dead.items.len() as u64,
        });
    }
    Ok(described)
}

pub(crate) async fn test(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("name");
    let options = request.app.options();
    let Some(channel) = options.channels.iter().find(|channel| channel.name == name) else {
        return Err(Problem::not_found("channel", &excerpt(name)));
    };
    let (bell, now) = (&request.app.bell, request.app.bell.now());
    let mut nonce = [0; 10];
    nonce.copy_from_slice(&Uuid::new_v4().as_bytes()[..10]);
    let delivery = NewDelivery {
        id: test_delivery_id(&channel.name, nonce, now),
        problem: None,
        rule: None,
        channel: channel.name.clone(),
        change: Change::Test,
        message: test_message(&channel.name, &request.actor.name)?,
        created_at: now,
        available_at: now,
    };
    let audit = request.actor.entry("notify.test", format!("channel:{}", channel.name), now);
    bell.store().insert_delivery(&delivery, &audit).await?;
    let filter = DeliveryFilter { id: Some(delivery.id), ..DeliveryFilter::default() };
    let written = bell.store().list_deliveries(&filter, &PageRequest { limit: 1, after: None }).await?;
    let written = written.items.first().ok_or_else(|| Problem::new(Kind::NotFound, "The message is gone."))?;
    ApiResponse::json(StatusCode::ACCEPTED, &wire::NotifyDelivery::from(written))
}

fn test_message(channel: &str, actor: &str) -> Result<Json, Problem> {
    let message = serde_json::json!({
        "change": Change::Test.as_str(),
        "title": "everbell can reach this channel",
        "text": format!("This is a test of the channel {channel}, sent by {actor}. Nothing is wrong."),
    });
    Ok(Json::parse("message", &message.to_string()).map_err(everbell::StoreError::from)?)
}

pub(crate) async fn deliveries(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(DELIVERIES);
    let id = |name: &str| match form.text(name).map(Uuid::parse_str).transpose() {
        Ok(id) => Ok(id),
        Err(_) => Err(Problem::at("query", name, "is not an id")),
    };
    let filter = DeliveryFilter {
        id: id("id")?,
        channel: form.text("channel").map(str::to_owned),
        problem: id("problemId")?,
        status: form.word("status", |word| DeliveryStatus::ALL.iter().copied().find(|status| status.as_str() == word)),
    };
    let page = request.app.bell.store().list_deliveries(&filter, &page::from_query(&request)?).await?;
    let document = page::document(&request, &page, page.items.iter().map(wire::NotifyDelivery::from).collect());
    Ok(page::linked(&request, "/notify/deliveries", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}
