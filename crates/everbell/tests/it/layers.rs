//! Layers of tower around handlers.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use everbell::testing::TestBell;
use everbell::{Builder, Everbell, HandlerError, Run, RunError, RunResult, RunStatus, Schedule};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service};
use tracing::Instrument;
use tracing::instrument::Instrumented;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// Notes which runs come by, and what came of them.
#[derive(Clone)]
struct Noting(&'static str, Arc<Mutex<Vec<String>>>);

#[derive(Clone)]
struct Noted<S>(Noting, S);

impl<S> Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted(self.clone(), inner)
    }
}

impl<S> Service<Run> for Noted<S>
where
    S: Service<Run, Response = RunResult, Future: Send + 'static>,
{
    type Response = RunResult;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<RunResult, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(context)
    }

    fn call(&mut self, run: Run) -> Self::Future {
        let Noting(name, notes) = self.0.clone();
        notes.lock().unwrap().push(format!("{name} begins {}", run.target()));
        let inner = self.1.call(run);
        Box::pin(async move {
            let result = inner.await;
            let shown = result.as_ref().map(|result| format!("{:?}", result.json().map(ToString::to_string)));
            let shown = shown.unwrap_or_else(|_| "failed".to_owned());
            notes.lock().unwrap().push(format!("{name} ends {shown}"));
            result
        })
    }
}

/// Refuses every run by itself.
#[derive(Clone)]
struct Refusing;

impl<S> Layer<S> for Refusing {
    type Service = Refusing;

    fn layer(&self, _: S) -> Refusing {
        Refusing
    }
}

impl Service<Run> for Refusing {
    type Response = RunResult;
    type Error = HandlerError;
    type Future = Ready<Result<RunResult, HandlerError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HandlerError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Run) -> Self::Future {
        ready(Err(RunError::fail("no_licence", "the licence has expired").fatal().into()))
    }
}

async fn bell(builder: Builder) -> TestBell {
    TestBell::start(builder, "2026-11-15T00:00:00Z").await
}

fn once(key: &str) -> Schedule {
    Schedule::cron(key, "0 8 * * *").target("work")
}

#[tokio::test]
async fn layers_see_the_run_and_its_result_from_the_outside_in() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let builder = Everbell::builder()
        .target("work", async || Ok::<_, RunError>(7))
        .schedule(once("daily"))
        .layer(Noting("inner", Arc::clone(&notes)))
        .layer(Noting("outer", Arc::clone(&notes)));
    let mut bell = bell(builder).await;
    bell.advance_by(Duration::from_hours(9)).await;
    let expected = ["outer begins work", "inner begins work", "inner ends Some(\"7\")", "outer ends Some(\"7\")"];
    assert_eq!(*notes.lock().unwrap(), expected);
}

#[tokio::test]
async fn what_a_handler_says_about_its_failure_survives_every_layer() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let handler = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(RunError::fail("card_declined", "the card was declined").fatal()) }
    };
    let builder = Everbell::builder()
        .target("work", handler)
        .schedule(once("daily").retry(3, everbell::Backoff::default()))
        // Their errors are boxed: the failure comes through all the same.
        .layer(TimeoutLayer::new(Duration::from_mins(1)))
        .layer(Noting("outer", notes));
    let mut bell = bell(builder).await;
    bell.advance_by(Duration::from_hours(9)).await;
    let ran = bell.assert_ran("daily").await;
    let runs = ran.runs();
    let failure = runs[0].failure.as_ref().unwrap();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("card_declined", "the card was declined"));
    assert_eq!(attempts.load(Ordering::SeqCst), 1, "a fatal failure is not retried");
}

#[tokio::test]
async fn an_error_of_a_layer_fails_the_attempt() {
    let late = async || tokio::time::sleep(Duration::from_mins(1)).await;
    let builder = Everbell::builder()
        .target("work", late)
        .schedule(once("daily"))
        .layer(TimeoutLayer::new(Duration::from_millis(20)))
        .layer(GlobalConcurrencyLimitLayer::new(1));
    let mut bell = bell(builder).await;
    bell.advance_by(Duration::from_hours(9)).await;
    let ran = bell.assert_ran("daily").await;
    let runs = ran.runs();
    let failure = runs[0].failure.as_ref().unwrap();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("handler_error", "request timed out"));
}

#[tokio::test]
async fn a_layer_may_fail_a_run_in_its_own_words() {
    let builder = Everbell::builder().target("work", async || {}).schedule(once("daily")).layer(Refusing);
    let mut bell = bell(builder).await;
    bell.advance_by(Duration::from_hours(9)).await;
    let ran = bell.assert_ran("daily").await;
    let runs = ran.runs();
    assert_eq!(runs[0].status, RunStatus::Failed);
    assert_eq!(runs[0].failure.as_ref().unwrap().code.as_str(), "no_licence");
}

/// The tracing layer of the guide `observing`.
#[derive(Clone)]
struct Traced<S = ()>(S);

impl<S> Layer<S> for Traced {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced(inner)
    }
}

impl<S: Service<Run, Response = RunResult>> Service<Run> for Traced<S> {
    type Response = RunResult;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, run: Run) -> Self::Future {
        let span = tracing::info_span!("billing", job = run.job_key().map(everbell::JobKey::as_str));
        self.0.call(run).instrument(span)
    }
}

/// Collects the names of the spans around each event of this file, the outermost first.
#[derive(Clone, Default)]
struct Scopes(Arc<Mutex<Vec<Vec<&'static str>>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Scopes {
    fn on_event(&self, event: &tracing::Event<'_>, context: tracing_subscriber::layer::Context<'_, S>) {
        if event.metadata().target().ends_with("layers") {
            let scope = context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root);
            self.0.lock().unwrap().push(scope.map(|span| span.name()).collect());
        }
    }
}

#[tokio::test]
async fn a_tracing_layer_puts_its_span_between_that_of_the_run_and_the_handler() {
    let scopes = Scopes::default();
    // Each test is a process of its own.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(scopes.clone())).unwrap();
    let work = async || {
        tracing::info!("before");
        tokio::task::yield_now().await;
        tracing::info!("after an await");
    };
    let builder = Everbell::builder().target("work", work).schedule(once("daily")).layer(Traced(()));
    let mut bell = bell(builder).await;
    bell.advance_by(Duration::from_hours(9)).await;
    bell.assert_ran("daily").await.times(1);
    assert_eq!(*scopes.0.lock().unwrap(), [["everbell.run", "billing"], ["everbell.run", "billing"]]);
}
