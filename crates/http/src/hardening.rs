//! Headers of every answer that keep other sites and other windows of a browser away from it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Response};
use axum::middleware::Next;

use super::{App, proxy};

const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// A year. Subdomains are not ours to speak for.
const STRICT_TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds the headers to whatever is answered.
pub(crate) async fn harden(State(app): State<Arc<App>>, request: Request, next: Next) -> Response<Body> {
    let is_secure = proxy::is_secure(&app.options, request.headers());
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    if is_secure {
        response.headers_mut().insert(axum::http::header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
    }
    response
}
