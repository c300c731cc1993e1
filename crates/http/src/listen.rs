//! Connections, with limits on their number and timeouts, and a graceful shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderValue, Request, Version, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::PROBES;
use super::admission::{Admission, Beyond, Limits};
use super::pipeline::{render_problem, request_id};
use super::problem::{Kind, Problem};
use super::stall::StallGuard;
use everbell_observe::Metrics;

/// A connection that does not send the head of a request in this time is closed: also one that is idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for a connection that may only use probes.
const PROBE_HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection whose client does not read, or does not acknowledge, for this time is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that says nothing is asked after this time whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);
/// The most bytes of a head, and of answers that wait to be written.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long connections may take to finish what they do when the server ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// After the system has no more descriptors, before it is asked again.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

type Io = TokioIo<StallGuard<TcpStream>>;

/// Answers connections until `ended` is true.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    metrics: Metrics,
    mut ended: watch::Receiver<bool>,
) {
    let admission = Admission::new(limits);
    let graceful = GracefulShutdown::new();
    let mut is_failing = false;
    loop {
        let accepted = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_peer_error(&error) => continue,
            Err(error) => {
                // Said once, however long it lasts.
                if !is_failing {
                    tracing::warn!(%error, "connections cannot be accepted; retrying");
                }
                is_failing = true;
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        if std::mem::take(&mut is_failing) {
            tracing::info!("connections are accepted again");
        }
        let ticket = match admission.admit(peer.ip()) {
            Ok(ticket) => ticket,
            Err(beyond) => {
                metrics.connection_refused(beyond.as_str());
                continue;
            }
        };
        if let Some(beyond) = ticket.beyond {
            metrics.connection_refused(beyond.as_str());
        }
        let connection = graceful.watch(connection(stream, peer, router.clone(), ticket.beyond));
        tokio::spawn(async move {
            // An error is the peer's: it went away, does not read, or said something that is no HTTP.
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection broke");
            }
            drop(ticket);
        });
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::info!("some connections did not end in time and are cut");
    }
}

/// Whether only this connection failed, before it was accepted.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    beyond: Option<Beyond>,
) -> hyper::server::conn::http1::Connection<
    Io,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = Response,
        Error = Infallible,
        Future = impl Future<Output = Result<Response, Infallible>>,
    >,
> {
    if let Err(error) = tune(&stream) {
        tracing::debug!(%peer, %error, "a connection could not be tuned");
    }
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let mut router = router.clone();
        async move {
            if let Some(problem) = objection(&request, beyond) {
                return Ok(closing(render_problem(&problem, &request_id(request.headers()), "")));
            }
            tower_service::Service::call(&mut router, request.map(Body::new)).await
        }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(if beyond.is_some() { PROBE_HEAD_TIMEOUT } else { HEAD_TIMEOUT })
        .keep_alive(beyond.is_none())
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(StallGuard::new(stream, WRITE_TIMEOUT)), service)
}

/// Answers are small and none waits for another; a client that is gone is noticed.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, WRITE_TIMEOUT.as_millis() as u32)?;
    Ok(())
}

/// Returns the reason to refuse a request before it is routed.
fn objection(request: &Request<Incoming>, beyond: Option<Beyond>) -> Option<Problem> {
    if let Some(detail) = ambiguity(request.headers(), request.version()) {
        return Some(Problem::new(Kind::InvalidInput, detail));
    }
    let detail = match beyond.filter(|_| !PROBES.contains(&request.uri().path()))? {
        Beyond::Connections => "The server has reached its connection limit.",
        Beyond::Address => "Your address has reached its connection limit.",
    };
    Some(Problem { retry_after: Some(5), ..Problem::new(Kind::RateLimited, detail) })
}

/// A header that is missing or there twice, where a proxy and this server could each believe another one.
fn ambiguity(headers: &HeaderMap, version: Version) -> Option<&'static str> {
    let count = |name| headers.get_all(name).iter().count();
    match (count(header::HOST), count(header::AUTHORIZATION)) {
        (0, _) if version >= Version::HTTP_11 => Some("The request has no `Host` header."),
        (2.., _) => Some("The request has more than one `Host` header."),
        (_, 2..) => Some("The request has more than one `Authorization` header."),
        _ => None,
    }
}

fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_can_be_read_in_two_ways_is_refused() {
        let said = |pairs: &[(&'static str, &'static str)], version| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            ambiguity(&headers, version).unwrap_or_default()
        };
        assert!(said(&[], Version::HTTP_11).contains("no `Host`"));
        assert_eq!(said(&[], Version::HTTP_10), "");
        assert!(said(&[("host", "a"), ("host", "b")], Version::HTTP_11).contains("more than one `Host`"));
        let twice = [("host", "a"), ("authorization", "Bearer a"), ("authorization", "Bearer b")];
        assert!(said(&twice, Version::HTTP_11).contains("more than one `Authorization`"));
        assert_eq!(said(&twice[..2], Version::HTTP_11), "");
    }
}
