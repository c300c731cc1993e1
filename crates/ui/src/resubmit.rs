//! Handles a form whose session has ended: nothing is done, and the input is kept for submitting it again.

use askama::Template;
use axum::body::Body;
use axum::http::StatusCode;

use super::frame::{Frame, Section};
use super::markup::url_part;
use super::request::{UiRequest, UiResponse, safe_return_path};
use everbell_http::body::read_text;
use everbell_http::problem::Problem;
use everbell_wire::form::pairs;

/// The longest return path that the sign-in page accepts.
const MAX_RETURN_PATH_BYTES: usize = 2_000;

/// The most bytes of a form that are kept.
const MAX_RESUBMIT_BYTES: usize = 64 << 10;

#[derive(Template)]
#[template(path = "resubmit.html")]
struct ResubmitPage {
    frame: Frame,
    status: StatusCode,
    title: &'static str,
    /// Whether the session has ended.
    ended: bool,
    sign_in: String,
    /// Where the form goes.
    action: String,
    /// The submitted fields, if the form certainly came from this site.
    fields: Option<Vec<(String, String)>>,
}

/// Responds to a form whose session has ended.
pub(super) async fn session_ended(mut request: UiRequest, body: Body) -> Result<UiResponse, Problem> {
    let text = read_text(body).await?;
    request.sent = pairs(&text).unwrap_or_default();
    page(&request, StatusCode::UNAUTHORIZED, "Your session has ended").await
}

/// Responds to a form that was rendered in another session.
pub(super) async fn other_session(request: &UiRequest) -> Result<UiResponse, Problem> {
    page(request, StatusCode::FORBIDDEN, "This form belongs to another session").await
}

async fn page(request: &UiRequest, status: StatusCode, title: &'static str) -> Result<UiResponse, Problem> {
    // Another site must not put words into a form that is sent with one click.
    let is_ours = request.headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    let own = |(name, value): &(String, String)| {
        (!["csrf", "once"].contains(&name.as_str())).then(|| (name.clone(), value.clone()))
    };
    let page = ResubmitPage {
        frame: Frame::load(request, Section::Outside, title.to_owned()).await,
        status,
        title,
        ended: status == StatusCode::UNAUTHORIZED,
        sign_in: sign_in_url(&came_from(request)),
        action: request.here.clone(),
        fields: (is_ours && is_short(request)).then(|| request.sent.iter().filter_map(own).collect()),
    };
    UiResponse::with_status(&page, status)
}

/// Whether a form is short enough to be sent back. The limit keeps anonymous clients from requesting large responses.
fn is_short(request: &UiRequest) -> bool {
    request.sent.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= MAX_RESUBMIT_BYTES
}

/// Returns the address of the sign-in page, which leads back to `to`.
pub(super) fn sign_in_url(to: &str) -> String {
    if to == "/" || to.len() > MAX_RETURN_PATH_BYTES {
        "/sign-in".to_owned()
    } else {
        format!("/sign-in?to={}", url_part(to))
    }
}

/// The page that the form was on.
fn came_from(request: &UiRequest) -> String {
    let text = |name| request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let (_, address) = text("referer").split_once("://").unwrap_or_default();
    let path = address.strip_prefix(text("host")).unwrap_or("/");
    safe_return_path(request.prefix.page_of(path)).to_owned()
}
