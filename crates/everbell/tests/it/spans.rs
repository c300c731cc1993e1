//! The span around each run, as a subscriber of the program sees it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use everbell::testing::{RunSetup, TestBell};
use everbell::{Backoff, Everbell, Run, RunError, Schedule};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, info};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Collects the events of this file, each with the fields of the run that it is logged in.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Line>>>);

/// A message, and the fields of its run.
type Line = (String, BTreeMap<String, String>);

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collected {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !event.metadata().target().ends_with("spans") {
            return;
        }
        let mut message = Fields::default();
        event.record(&mut message);
        let span = context.event_span(event).filter(|span| span.name() == "everbell.run");
        let fields = span.map(|span| span.extensions().get::<Fields>().unwrap().0.clone()).unwrap_or_default();
        self.0.lock().unwrap().push((message.0["message"].clone(), fields));
    }
}

async fn talk(run: Run) -> Result<(), RunError> {
    info!("before");
    tokio::task::yield_now().await;
    info!("after an await");
    let own = run.clone();
    let blocking = tokio::task::spawn_blocking(move || {
        let _entered = own.span().enter();
        info!("in a thread");
    });
    blocking.await?;
    if run.attempt() == 1 { Err(RunError::fail("again", "please")) } else { Ok(()) }
}

#[tokio::test]
async fn every_log_line_of_a_handler_can_be_joined_to_its_run() {
    let collected = Collected::default();
    let subscriber = tracing_subscriber::registry().with(collected.clone());
    // For the threads of `spawn_blocking` too: each test is a process of its own.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let job = Schedule::cron("talk", "0 9 * * *").target("talk").per_org().retry(2, Backoff::default());
    let mut test =
        TestBell::start(Everbell::builder().target("talk", talk).schedule(job), "2027-01-01T00:00:00Z").await;
    test.org("acme", "Europe/Paris").await;
    test.advance_to("2027-01-01T12:00:00Z").await;
    let run = test.assert_ran("talk").await.times(1).runs()[0].id;
    let lines = std::mem::take(&mut *collected.0.lock().unwrap());
    let said: Vec<&str> = lines.iter().map(|(said, _)| said.as_str()).collect();
    assert_eq!(said, ["before", "after an await", "in a thread", "before", "after an await", "in a thread"]);
    for (n, (line, fields)) in lines.iter().enumerate() {
        let attempt = if n < 3 { "1" } else { "2" };
        let wanted = [
            ("attempt", attempt),
            ("job", "talk"),
            ("org", "acme"),
            ("run", &run.to_string()),
            ("slot", "2027-01-01T08:00:00Z"),
            ("target_label", "talk"),
            ("version", "1"),
        ];
        let wanted: BTreeMap<String, String> = wanted.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        assert_eq!(fields, &wanted, "{line}");
    }
    // A handler that a test calls alone has the span as well.
    test.perform_with::<()>("talk", (), RunSetup::new().attempt(2)).await.unwrap();
    let lines = std::mem::take(&mut *collected.0.lock().unwrap());
    assert!(
        lines.len() == 3 && lines.iter().all(|(_, fields)| fields["attempt"] == "2" && !fields.contains_key("job"))
    );
}
