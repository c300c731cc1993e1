//! The REST API inside another program.

use std::sync::Arc;

use everbell::Everbell;

use everbell_http::{self as http, App};
use everbell_observe::Metrics;
use everbell_wire::secret::Secret;

/// The REST API of a program's own [`Everbell`], to be nested into its axum application wherever it likes:
/// jobs, runs, targets, instances, tokens, audit, events, as [`/docs/api`] of the server describes them.
///
/// Everything asks for a token: this one, which is the admin's, or one that was made with it. It must be long enough to
/// be no guess: `evb_` and at least 32 characters. Must be called within a tokio runtime.
///
/// ```
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let bell = everbell::Everbell::builder().database("sqlite::memory:").build().await?;
/// let token = std::env::var("ADMIN_TOKEN")?;
/// let app: axum::Router = axum::Router::new().nest("/admin/cron", everbell_server::router(&bell, &token)?);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app).await?;
/// # Ok(())
/// # }
/// ```
///
/// [`/docs/api`]: crate
pub fn router(bell: &Everbell, admin_token: &str) -> Result<axum::Router, WeakToken> {
    if let Some(reason) = crate::config::bad_admin_token(admin_token) {
        return Err(WeakToken(reason));
    }
    let app = Arc::new(App::embedded(bell.clone(), &Secret::new(admin_token), Metrics::new()));
    let watched = Arc::clone(&app);
    tokio::spawn(async move { watched.live.watch(&watched.bell).await });
    Ok(http::router(&app, None))
}

/// A token that is easy to guess.
#[derive(Debug)]
pub struct WeakToken(&'static str);

impl std::fmt::Display for WeakToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the admin token {}", self.0)
    }
}

impl std::error::Error for WeakToken {}
