//! Connections: bounded in number and in patience, and closed in good order.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// A connection that does not send the head of a request in this time is closed: also one that is idle.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long connections may take to finish what they do when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// After the system has no more descriptors, before it is asked again.
const BREATH: Duration = Duration::from_millis(100);

/// Answers connections until `ended` is true.
pub(crate) async fn serve(listener: TcpListener, router: Router, most: usize, mut ended: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(most));
    let graceful = GracefulShutdown::new();
    loop {
        // Who finds no room waits in the queue of the listener.
        let accepted = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(Some(accepted)) => accepted,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted; trying again");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(stream, peer, router.clone()));
        tokio::spawn(async move {
            // An error is the peer's: it went away, or said something that is no HTTP.
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection broke");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST_WORDS, graceful.shutdown()).await.is_err() {
        tracing::info!("some connections did not end in time and are cut");
    }
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<Option<Accepted>> {
    let Ok(permit) = Arc::clone(room).acquire_owned().await else { return Ok(None) };
    let (stream, peer) = listener.accept().await?;
    Ok(Some((stream, peer, permit)))
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
) -> hyper::server::conn::http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = Infallible,
        Future = impl Future<Output = Result<axum::response::Response, Infallible>>,
    >,
> {
    // Answers are small; none waits for another.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let mut router = router.clone();
        async move { tower_service::Service::call(&mut router, request.map(axum::body::Body::new)).await }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service)
}
