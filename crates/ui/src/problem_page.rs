//! The page of a problem.

use askama::Template;

use super::frame::{Frame, Section};
use super::markup::escaped;
use super::request::{Content, UiRequest, UiResponse};
use everbell_http::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    status: u16,
    title: &'static str,
    detail: String,
    help: &'static str,
    faults: Vec<(String, String)>,
}

/// Renders the page of a problem.
pub(super) async fn problem_page(request: &UiRequest, problem: &Problem) -> UiResponse {
    let about = problem.kind.about();
    let title = if problem.kind == Kind::Unauthenticated { "Sign in to continue" } else { about.title };
    let frame = Frame::load(request, Section::Outside, title.to_owned()).await;
    let page = ProblemPage {
        frame,
        status: about.status,
        title,
        detail: problem.detail.clone(),
        help: help(problem.kind),
        faults: problem.faults(),
    };
    let html = page.render().unwrap_or_else(|_| escaped(&problem.detail));
    let response = UiResponse { status: problem.status(), ..UiResponse::new(Content::Html(html)) };
    match problem.retry_after {
        Some(seconds) => response.header("retry-after", seconds.to_string()),
        None => response,
    }
}

/// Returns advice for people. The catalog is about members and headers, which pages do not show.
fn help(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidInput => "Nothing was changed. Go back and fix the errors listed above, or clear the filters.",
        Kind::Unauthenticated => "Sign in with a valid token.",
        Kind::Forbidden => "Ask an admin for a token with the required role.",
        Kind::NotFound => "It may have been deleted, or the address is wrong.",
        Kind::MalformedJson | Kind::UnsupportedMediaType | Kind::MethodNotAllowed => {
            "Nothing was changed. Go back, reload the page and try again."
        }
        Kind::JobKeyExists => "Create a new version of it, or retire it first.",
        Kind::OverlapSkipped => "The skipped run was recorded. Queue it after the active run, or run it anyway.",
        Kind::RevisionMismatch | Kind::PreconditionRequired | Kind::IdempotencyKeyReused => {
            "Nothing was changed. Reload the page and try again."
        }
        Kind::TooManyPendingRuns => "Nothing was changed. Wait until some runs have ended, or cancel them.",
        Kind::RateLimited => "Wait a moment, then try again.",
        Kind::Misdirected => "Open the page with the local address of the server.",
        Kind::NotReady => {
            "The database is not available, or the server is starting or stopping. Try again in a moment."
        }
        Kind::RequestTimeout
        | Kind::Conflict
        | Kind::JobRetired
        | Kind::IdempotencyInProgress
        | Kind::PayloadTooLarge
        | Kind::Internal => kind.about().help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbell_http::problem::CATALOG;

    #[test]
    fn people_are_not_told_of_members_and_headers() {
        for about in &CATALOG {
            let text = help(about.kind);
            assert!(!text.contains('`') && !text.is_empty(), "{text}");
        }
    }
}
