//! [`Client`]: a server and the token that it is called with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::TraceContext;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Request, Url};
use rustls::crypto::{CryptoProvider, ring};

use crate::Error;
use everbell_wire::secret::Secret;

/// How long a call waits for its response unless [`ClientBuilder::timeout`] says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a server mounts its API by default.
const DEFAULT_MOUNT: &str = "/api/v1";
/// Paths that a server has once, outside of every mount, begin with one of these.
const ROOTS: [&str; 7] = ["/api/", "/livez", "/readyz", "/healthz", "/metrics", "/openapi.json", "/docs/"];

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    target: Arc<Target>,
    token: Option<HeaderValue>,
    trace_context: Option<Arc<TraceContext>>,
    pub(crate) timeout: Duration,
}

struct Target {
    server: Url,
    mount: String,
}

/// Configures a [`Client`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientBuilder {
    server: String,
    token: Option<Secret>,
    timeout: Duration,
}

impl Client {
    /// Starts to configure a client of the server at this address, such as `http://127.0.0.1:7070`.
    ///
    /// A path in the address is the mount of the API, as in `https://example.com/api/v2/admin/cron`; the default is
    /// `/api/v1`.
    pub fn builder(server: impl Into<String>) -> ClientBuilder {
        ClientBuilder { server: server.into(), token: None, timeout: DEFAULT_TIMEOUT }
    }

    /// Returns the same client with another token.
    pub fn with_token(mut self, token: &str) -> Result<Client, Error> {
        let invalid = |_| Error::Invalid("the token contains characters that no token has".to_owned());
        let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(invalid)?;
        header.set_sensitive(true);
        self.token = Some(header);
        Ok(self)
    }

    /// Returns the same client, whose requests belong to this trace: runs and one-time jobs that they create continue it.
    #[must_use]
    pub fn with_trace_context(mut self, context: TraceContext) -> Client {
        self.trace_context = Some(Arc::new(context));
        self
    }

    /// The address of the server, without the mount and without a slash at the end.
    pub fn server(&self) -> &str {
        self.target.server.as_str().trim_end_matches('/')
    }

    /// The address of the server as a URL, without the mount.
    pub fn server_url(&self) -> &Url {
        &self.target.server
    }

    /// The URL of a path: below the mount, unless the path is one that a server has only once, such as `/readyz`.
    pub fn url(&self, path: &str) -> Result<Url, Error> {
        let is_root = ROOTS.iter().any(|root| path.starts_with(root));
        let mount = if is_root { "" } else { &self.target.mount };
        let url = Url::parse(&format!("{}{mount}{path}", self.server())).ok();
        url.filter(|url| url.origin() == self.target.server.origin())
            .ok_or_else(|| Error::Invalid(format!("`{}` is not a path", path.escape_debug())))
    }

    pub(crate) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        self.token.clone().map(|token| (AUTHORIZATION, token))
    }

    /// The headers of the trace that requests belong to.
    pub(crate) fn trace(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let context = self.trace_context.as_deref();
        let parent = context.map(|context| ("traceparent", context.traceparent()));
        let state = context.and_then(TraceContext::tracestate).map(|state| ("tracestate", state));
        let header = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?));
        parent.into_iter().chain(state).filter_map(header)
    }

    /// Sends a request, and returns its response without the body.
    pub(crate) async fn execute(&self, request: Request) -> Result<reqwest::Response, Error> {
        self.within_timeout(self.http.execute(request)).await
    }

    /// Waits for a part of an exchange for as long as a call may take.
    pub(crate) async fn within_timeout<T>(
        &self,
        exchange: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, Error> {
        let server = || self.server().to_owned();
        match tokio::time::timeout(self.timeout, exchange).await {
            Err(_) => Err(Error::Timeout { server: server(), timeout: self.timeout }),
            Ok(Err(error)) => Err(Error::Unreachable { server: server(), source: Box::new(error) }),
            Ok(Ok(done)) => Ok(done),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.server())
            .field("mount", &self.target.mount)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Authenticates with this token.
    pub fn token(mut self, token: impl Into<String>) -> ClientBuilder {
        self.token = Some(Secret::new(token));
        self
    }

    /// Sets how long a call waits for its response.
    pub fn timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.timeout = timeout;
        self
    }

    /// Builds the client. Fails if the address or the token cannot be valid; sends nothing.
    pub fn build(self) -> Result<Client, Error> {
        let mut server = parse_address(&self.server)?;
        let path = server.path().trim_end_matches('/').to_owned();
        let mount = if path.is_empty() { DEFAULT_MOUNT.to_owned() } else { path };
        server.set_path("");
        let http = http_client(&server)?;
        let target = Arc::new(Target { server, mount });
        let client = Client { http, target, token: None, trace_context: None, timeout: self.timeout };
        match &self.token {
            Some(token) => client.with_token(token.reveal()),
            None => Ok(client),
        }
    }
}

fn parse_address(text: &str) -> Result<Url, Error> {
    let invalid = |reason: &str| Error::Invalid(reason.to_owned());
    let url = Url::parse(text.trim()).map_err(|_| invalid("this is not the address of a server"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(invalid("this is not the address of a server"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("the address of a server must not contain a password; use a token instead"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("the address of a server must not contain `?` or `#`"));
    }
    Ok(url)
}

/// Follows no redirect, which would send the token elsewhere, and uses no proxy, which would see it.
fn http_client(server: &Url) -> Result<reqwest::Client, Error> {
    // Fails if the process has a provider already, which is as good.
    drop(CryptoProvider::install_default(ring::default_provider()));
    let builder = reqwest::ClientBuilder::new()
        .user_agent(concat!("everbell/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .referer(false);
    // Without TLS, the certificates of the machine are not needed, and it may have none.
    let builder = if server.scheme() == "https" { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(|error| Error::Tls(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(server: &str) -> Result<Client, Error> {
        Client::builder(server).build()
    }

    #[test]
    fn paths_are_below_the_mount_unless_the_server_has_them_once() {
        let urls = |server: &str| {
            let client = client(server).unwrap();
            ["/jobs", "/api/v2/x", "/readyz"].map(|path| client.url(path).unwrap().to_string())
        };
        let expected = ["/api/v1/jobs", "/api/v2/x", "/readyz"].map(|path| format!("http://127.0.0.1:7070{path}"));
        assert_eq!(urls("http://127.0.0.1:7070"), expected);
        assert_eq!(urls("https://bells.example/cron/")[0], "https://bells.example/cron/jobs");
        let mounted = client("https://bells.example/cron/").unwrap();
        assert!(mounted.url("@evil.example/").is_ok_and(|url| url.host_str() == Some("bells.example")));
    }

    #[test]
    fn builder_refuses_what_is_not_the_address_of_a_server() {
        for text in ["", "localhost:7070", "ftp://a", "http://", "http://a?b", "http://a#b", "http://me:pw@a"] {
            let message = client(text).err().unwrap().to_string();
            assert!(!message.contains("pw"), "{text}: {message}");
        }
    }

    #[test]
    fn debug_form_hides_the_token() {
        let builder = Client::builder("http://a").token("evb_secret");
        assert!(!format!("{builder:?}").contains("evb_secret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("evb_secret"));
        assert!(Client::builder("http://a").token("a\nb").build().is_err());
    }
}
