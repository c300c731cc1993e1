//! [`Embedded`]: the API inside another program.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use everbell::Everbell;
use everbell_observe::Metrics;
use everbell_wire::secret::Secret;
use tokio::sync::watch;

use super::access::bad_admin_token;
use super::app::App;
use super::options::{ApiOptions, Served};

/// The API of a program's own [`Everbell`], to be nested into its axum application.
///
/// The application decides who is who: a layer in front of the router authenticates the request and inserts a
/// [`User`](crate::User) into its extensions. A request without one needs a token of everbell, such as the one of
/// [`Embedded::admin_token`]; without either it gets 401.
///
/// ```
/// use axum::{Router, extract::Request, middleware::{self, Next}, response::Response};
/// use everbell_http::{Embedded, User, access::Role};
///
/// async fn sign_in(mut request: Request, next: Next) -> Response {
///     // Here the application looks at its own session, header or certificate.
///     request.extensions_mut().insert(User::new("anna@example.com", Role::Operator));
///     next.run(request).await
/// }
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let bell = everbell::Everbell::builder().database("sqlite::memory:").build().await?;
/// let embedded = Embedded::new(&bell).with_graceful_shutdown(everbell::shutdown_signal());
/// let api = embedded.router().layer(middleware::from_fn(sign_in));
/// let app: Router = Router::new().nest("/admin/cron", api);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// let running = bell.start();
/// axum::serve(listener, app).with_graceful_shutdown(everbell::shutdown_signal()).await?;
/// running.shutdown().await?;
/// # Ok(())
/// # }
/// ```
///
/// `everbell_ui::router` mounts the pages as well.
///
/// The `type` of a problem is the address of a document that explains it, with the prefix of the nested router in front:
/// `/admin/cron/docs/problems/not-found`. Programs look at its `code`, which is the same below every prefix.
pub struct Embedded {
    bell: Everbell,
    options: ApiOptions,
    admin_token: Option<Secret>,
    shutdown: Option<Shutdown>,
}

/// Resolves when the application stops.
type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Embedded {
    /// The API of this instance.
    pub fn new(bell: &Everbell) -> Embedded {
        Embedded { bell: bell.clone(), options: ApiOptions::embedded(bell), admin_token: None, shutdown: None }
    }

    /// Accepts this token for the role `admin`. It must not be easy to guess: `evb_` and at least 32 characters.
    pub fn admin_token(mut self, token: &str) -> Result<Embedded, WeakToken> {
        if let Some(reason) = bad_admin_token(token) {
            return Err(WeakToken(reason));
        }
        self.admin_token = Some(Secret::new(token));
        Ok(self)
    }

    /// Sets the name of the installation, which pages show: `staging`.
    #[must_use]
    pub fn environment(mut self, name: impl Into<String>) -> Embedded {
        self.options.environment = Some(name.into());
        self
    }

    /// Sets the address at which people reach the application, such as `https://app.example`: with `https`, cookies are sent
    /// through TLS only.
    #[must_use]
    pub fn public_url(mut self, url: impl Into<String>) -> Embedded {
        self.options.public_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Believes the headers `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`. Only for programs that are
    /// always reached through a proxy that sets them.
    #[must_use]
    pub fn trust_proxy(mut self) -> Embedded {
        self.options.trust_proxy = true;
        self
    }

    /// Ends event streams when `shutdown` resolves, such as [`everbell::shutdown_signal()`](everbell::shutdown_signal()). An
    /// open page follows such a stream, and a graceful shutdown of the application's server waits for it: without this call
    /// until the page is closed.
    #[must_use]
    pub fn with_graceful_shutdown(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Embedded {
        self.shutdown = Some(Box::pin(shutdown));
        self
    }

    /// Returns the routes of the API. Must be called within a tokio runtime.
    pub fn router(self) -> Router {
        super::router(&self.into_app(), None)
    }

    /// Returns the application of the API below this mount, beside pages. Must be called within a tokio runtime.
    #[doc(hidden)]
    pub fn with_pages_beside(mut self, mount: &str) -> Arc<App> {
        self.options.settings.mounts = vec![mount.to_owned()];
        self.options.ui = true;
        self.into_app()
    }

    fn into_app(self) -> Arc<App> {
        debug_assert_eq!(self.options.served, Served::Embedded);
        let (end, ended) = watch::channel(false);
        let shutdown = self.shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
        tokio::spawn(async move {
            shutdown.await;
            end.send_replace(true);
        });
        let app = Arc::new(App::embedded(self.options, self.admin_token.as_ref(), self.bell, Metrics::new(), ended));
        let watched = Arc::clone(&app);
        tokio::spawn(async move { watched.live.watch(&watched.bell).await });
        app
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("bell", &self.bell).field("options", &self.options).finish_non_exhaustive()
    }
}

/// A token that is easy to guess.
#[derive(Debug)]
pub struct WeakToken(&'static str);

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the admin token {}", self.0)
    }
}

impl std::error::Error for WeakToken {}
