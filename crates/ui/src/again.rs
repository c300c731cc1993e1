//! A form that comes when its session is over: nothing is done, and what was typed is kept for sending it again.

use askama::Template;
use axum::body::Body;
use axum::http::StatusCode;

use super::frame::{Frame, Section};
use super::markup::url_part;
use super::visit::{Reply, Visit, safe_place};
use everbell_http::body::read_text;
use everbell_http::problem::Problem;
use everbell_wire::form::pairs;

/// A longer way back is not told: the page for signing in takes no more.
const LONGEST: usize = 2_000;

/// The most bytes of a form that are kept.
const MAX_KEPT: usize = 64 << 10;

#[derive(Template)]
#[template(path = "again.html")]
struct AgainPage {
    frame: Frame,
    status: StatusCode,
    title: &'static str,
    /// Whether nobody is signed in.
    ended: bool,
    sign_in: String,
    /// Where the form goes.
    action: String,
    /// What was in it, if it was certainly one of ours.
    fields: Option<Vec<(String, String)>>,
}

/// The answer to a form whose session has ended.
pub(super) async fn ended(mut visit: Visit, body: Body) -> Result<Reply, Problem> {
    let text = read_text(body).await?;
    visit.sent = pairs(&text).unwrap_or_default();
    page(&visit, StatusCode::UNAUTHORIZED, "Your session has ended").await
}

/// The answer to a form that was made in another session.
pub(super) async fn foreign(visit: &Visit) -> Result<Reply, Problem> {
    page(visit, StatusCode::FORBIDDEN, "This form was made in another session").await
}

async fn page(visit: &Visit, status: StatusCode, title: &'static str) -> Result<Reply, Problem> {
    // Another site must not put words into a form that is sent with one click.
    let is_ours = visit.headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    let own = |(name, value): &(String, String)| {
        (!["seal", "once"].contains(&name.as_str())).then(|| (name.clone(), value.clone()))
    };
    let page = AgainPage {
        frame: Frame::of(visit, Section::Outside, title.to_owned()).await,
        status,
        title,
        ended: status == StatusCode::UNAUTHORIZED,
        sign_in: sign_in_place(&came_from(visit)),
        action: visit.here.clone(),
        fields: (is_ours && is_short(visit)).then(|| visit.sent.iter().filter_map(own).collect()),
    };
    Reply::refused(&page, status)
}

/// Whether a form is short enough to be sent back. A longer one would let anybody draw large answers.
fn is_short(visit: &Visit) -> bool {
    visit.sent.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= MAX_KEPT
}

/// The page for signing in, which leads back.
pub(super) fn sign_in_place(to: &str) -> String {
    if to == "/" || to.len() > LONGEST { "/sign-in".to_owned() } else { format!("/sign-in?to={}", url_part(to)) }
}

/// The page that the form was on.
fn came_from(visit: &Visit) -> String {
    let text = |name| visit.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let (_, place) = text("referer").split_once("://").unwrap_or_default();
    let path = place.strip_prefix(text("host")).unwrap_or("/");
    safe_place(path).to_owned()
}
