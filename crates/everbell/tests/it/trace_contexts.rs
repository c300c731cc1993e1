//! Traces: a handler continues the trace of the request that its run follows from.

use std::sync::{Arc, Mutex};

use everbell::testing::{RunSetup, TestBell};
use everbell::{Backoff, Everbell, Run, RunError, RunId, Schedule, State, TraceContext, Tracing};
use tracing::Span;

fn trace(number: u8) -> TraceContext {
    TraceContext::parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-01"), None).unwrap()
}

/// A tracing library: the trace of the current request, and the parents that spans of runs were given.
#[derive(Clone, Default)]
struct Library {
    current: Arc<Mutex<Option<TraceContext>>>,
    parents: Arc<Mutex<Vec<(bool, TraceContext)>>>,
}

impl Library {
    fn enter(&self, context: impl Into<Option<TraceContext>>) {
        *self.current.lock().unwrap() = context.into();
    }

    fn parents(&self) -> Vec<TraceContext> {
        std::mem::take(&mut *self.parents.lock().unwrap()).into_iter().map(|(_, parent)| parent).collect()
    }
}

impl Tracing for Library {
    fn current(&self) -> Option<TraceContext> {
        self.current.lock().unwrap().clone()
    }

    fn set_parent(&self, span: &Span, parent: &TraceContext) {
        let is_of_run = span.metadata().is_some_and(|metadata| metadata.name() == "everbell.run");
        self.parents.lock().unwrap().push((is_of_run, parent.clone()));
    }
}

/// The traces that handlers saw, with the parents that were set before.
#[derive(Clone, Default)]
struct HandlerTraces(Arc<Mutex<Vec<Option<TraceContext>>>>);

impl HandlerTraces {
    fn take(&self) -> Vec<Option<TraceContext>> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

async fn see(run: Run, State(seen): State<HandlerTraces>) -> Result<(), RunError> {
    seen.0.lock().unwrap().push(run.trace_context().cloned());
    if run.attempt() == 1 && run.job().is_some_and(|job| job.policies.max_attempts > 1) {
        return Err(RunError::fail("again", "please"));
    }
    Ok(())
}

async fn start() -> (TestBell, Library, HandlerTraces) {
    let subscriber = tracing_subscriber::registry();
    // Without any subscriber spans are disabled. Each test is a process of its own.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let (library, seen) = (Library::default(), HandlerTraces::default());
    let builder = Everbell::builder()
        .state(seen.clone())
        .target("see", see)
        .tracing(library.clone())
        .schedule(Schedule::cron("hourly", "0 * * * *").target("see"));
    (TestBell::start(builder, "2027-01-01T00:00:00Z").await, library, seen)
}

async fn last_run(test: &TestBell, job: &str) -> RunId {
    test.jobs().get(job).await.unwrap().last_run.unwrap().id
}

#[tokio::test]
async fn a_run_continues_the_trace_of_the_code_that_asked_for_it() {
    let (mut test, library, seen) = start().await;
    library.enter(trace(1));
    let retried = test.jobs().enqueue("see", &()).key("retried").retry(2, Backoff::default()).await.unwrap();
    assert_eq!(retried.job.job.definition.trace_context, Some(trace(1)));
    library.enter(None);
    test.advance_to("2027-01-01T00:30:00Z").await;
    assert_eq!(seen.take(), [Some(trace(1)), Some(trace(1))], "each attempt");
    let parents = library.parents.lock().unwrap().clone();
    assert_eq!(parents, [(true, trace(1)), (true, trace(1))], "the span of each attempt has its parent");
    library.parents();

    library.enter(trace(2));
    test.jobs().run_now("hourly").await.unwrap();
    test.runs().try_target("see", ()).await.unwrap();
    test.jobs().enqueue_many("see", [(), ()]).await.unwrap();
    let later = "2027-01-01T00:40:00Z".parse().unwrap();
    test.jobs().create(Schedule::once("once", later).target("see")).await.unwrap();
    library.enter(trace(3));
    test.advance_to("2027-01-01T00:45:00Z").await;
    assert_eq!(seen.take(), vec![Some(trace(2)); 5], "not that of the engine");
    assert_eq!(library.parents(), vec![trace(2); 5]);
    let stored = test.runs().get(last_run(&test, "once").await).await.unwrap();
    assert_eq!(stored.trace_context, Some(trace(2)));
}

#[tokio::test]
async fn slots_of_recurring_jobs_continue_no_trace() {
    let (mut test, library, seen) = start().await;
    library.enter(trace(1));
    test.jobs().create(Schedule::cron("other", "30 * * * *").target("see")).await.unwrap();
    test.advance_to("2027-01-01T01:00:00Z").await;
    assert_eq!((seen.take(), library.parents()), (vec![None, None], vec![]));
    let refused = test.jobs().create(Schedule::cron("third", "@daily").target("see").trace_context(trace(1))).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("traceContext") && refused.contains("one-time job"), "{refused}");
}

#[tokio::test]
async fn an_explicit_trace_counts_more_than_the_current_one() {
    let (mut test, library, seen) = start().await;
    library.enter(trace(1));
    let later = "2027-01-01T00:10:00Z".parse().unwrap();
    test.jobs().create(Schedule::once("once", later).target("see").trace_context(trace(2))).await.unwrap();
    test.advance_to("2027-01-01T00:15:00Z").await;
    test.jobs().run_now("hourly").trace_context(trace(3)).await.unwrap();
    test.jobs().enqueue("see", &()).trace_context(trace(3)).await.unwrap();
    test.jobs().trace_context(trace(3)).enqueue("see", &()).await.unwrap();
    test.jobs().enqueue_many("see", [()]).trace_context(trace(3)).await.unwrap();
    test.runs().trace_context(trace(3)).try_target("see", ()).await.unwrap();
    test.advance_to("2027-01-01T00:20:00Z").await;
    assert_eq!(seen.take(), [vec![Some(trace(2))], vec![Some(trace(3)); 5]].concat());
    test.jobs().enqueue("see", &()).trace_context(None).await.unwrap();
    test.advance_to("2027-01-01T00:25:00Z").await;
    assert_eq!(seen.take(), [None], "none is a choice too");
}

#[tokio::test]
async fn a_rerun_continues_the_trace_of_its_caller_or_of_the_run() {
    let (mut test, library, seen) = start().await;
    test.jobs().run_now("hourly").trace_context(trace(1)).await.unwrap();
    let trial = test.runs().trace_context(trace(2)).try_target("see", ()).await.unwrap();
    test.advance_to("2027-01-01T00:10:00Z").await;
    seen.take();
    let first = last_run(&test, "hourly").await;
    test.runs().rerun(first).await.unwrap();
    test.advance_to("2027-01-01T00:20:00Z").await;
    test.runs().rerun(trial.id).await.unwrap();
    test.advance_to("2027-01-01T00:30:00Z").await;
    library.enter(trace(3));
    test.runs().rerun(first).await.unwrap();
    test.advance_to("2027-01-01T00:40:00Z").await;
    test.runs().trace_context(None).rerun(first).await.unwrap();
    test.advance_to("2027-01-01T00:50:00Z").await;
    assert_eq!(seen.take(), [Some(trace(1)), Some(trace(2)), Some(trace(3)), None], "none is a choice too");
}

#[tokio::test]
async fn work_for_all_orgs_and_backfills_continue_the_trace() {
    let (mut test, library, seen) = start().await;
    let (from, to) = ("2027-01-01T01:00:00Z".parse().unwrap(), "2027-01-01T02:00:00Z".parse().unwrap());
    for org in ["acme", "beta"] {
        test.org(org, "UTC").await;
    }
    test.jobs().create(Schedule::cron("brief", "0 9 * * *").target("see").per_org()).await.unwrap();
    test.jobs().pause("hourly", "to have slots without a run").await.unwrap();
    test.advance_to("2027-01-01T03:30:00Z").await;
    test.jobs().resume("hourly").await.unwrap();
    library.enter(trace(1));
    test.jobs().run_now_for_all("brief").await.unwrap();
    test.jobs().backfill("hourly", from, to).await.unwrap();
    library.enter(None);
    test.advance_to("2027-01-01T03:40:00Z").await;
    assert_eq!(seen.take(), vec![Some(trace(1)); 4]);
    assert!(test.jobs().backfill_for_all("brief", from, to).await.is_ok());
}

#[tokio::test]
async fn a_handler_that_a_test_calls_alone_has_the_trace_of_its_setup() {
    let (test, library, seen) = start().await;
    test.perform_with::<()>("see", (), RunSetup::new().trace_context(trace(1))).await.unwrap();
    test.perform::<()>("see", ()).await.unwrap();
    assert_eq!((seen.take(), library.parents()), (vec![Some(trace(1)), None], vec![trace(1)]));
}

#[test]
fn the_guide_shows_the_hook_of_the_program_that_checks_itself() {
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let hook = |text: &str| {
        let from = text.find("#[derive(Default)]\nstruct OpenTelemetry").unwrap();
        let end = text[from..].find("\n}\n").unwrap();
        text[from..from + end].to_owned()
    };
    let program = hook(&read("../../tests/hosts/opentelemetry/src/main.rs"));
    assert!(program.contains("fn current(") && program.contains("fn set_parent("), "{program}");
    assert_eq!(hook(&read("src/guides/observing.md")), program);
}
