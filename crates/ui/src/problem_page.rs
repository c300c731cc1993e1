//! The page of a problem: what went wrong, in words for people.

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

/// What went wrong, for people.
pub(super) async fn problem_page(request: &UiRequest, problem: &Problem) -> UiResponse {
    let about = problem.kind.about();
    let title = if problem.kind == Kind::Unauthenticated { "Sign in first" } else { about.title };
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

/// What to do about it. The catalogue speaks of members and headers, which nobody sees on a page.
fn help(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidInput => {
            "Nothing was changed. Go back and mend what is named above, or begin again without filters."
        }
        Kind::Unauthenticated => "Sign in with a token that is valid.",
        Kind::Forbidden => "An admin makes tokens of the role that is needed.",
        Kind::NotFound => "It may have been pruned, or the address is misspelt.",
        Kind::MalformedJson | Kind::UnsupportedMediaType | Kind::MethodNotAllowed => {
            "Nothing was changed. Go back, load the page again and send it again."
        }
        Kind::JobKeyExists => "Make its next version, or retire it first.",
        Kind::OverlapSkipped => "That it was skipped is recorded. Let it wait for the active run, or force it.",
        Kind::RevisionMismatch | Kind::PreconditionRequired | Kind::IdempotencyKeyReused => {
            "Nothing was changed. Load the page again and decide again."
        }
        Kind::TooManyPendingRuns => "Nothing was changed. Wait until some runs have ended, or cancel them.",
        Kind::RateLimited => "Wait a moment, then try again.",
        Kind::Misdirected => "Open the page under the address that the server has on this machine.",
        Kind::NotReady => "The database is away, or the server is starting or stopping. Try again in a moment.",
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
        for about in CATALOG {
            let text = help(about.kind);
            assert!(!text.contains('`') && !text.is_empty(), "{text}");
        }
    }
}
