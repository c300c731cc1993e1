//! [`Pages`]: pages for people beside the API, which another crate makes.

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;

/// Pages for people, beside the API.
#[async_trait]
pub trait Pages: Send + Sync {
    /// Adds the pages to the routes of the API.
    fn mount(&self, router: Router) -> Router;

    /// Responds to a browser where no route exists.
    async fn not_found(&self, request: Request) -> Response;
}

/// Whether a browser requests a page.
pub(crate) fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or("");
    request.method() == Method::GET && accept.contains("text/html")
}
