//! Small programs around one target.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use everbell::core::store::LeaseTerms;
use everbell::testing::TestBell;
use everbell::{Action, EngineOptions, Event, EventStream, Everbell, RunRecord, Schedule, TargetOptions};
use serde::Serialize;
use uuid::Uuid;

use crate::targets::{CommandSettings, HttpSettings, Kind, Problem, Supervisor, TargetSettings};
use everbell_observe::Metrics;

pub(super) fn settings(kind: Kind) -> TargetSettings {
    TargetSettings { label: "target".to_owned(), options: TargetOptions::default(), kind }
}

pub(super) fn action(kind: Kind) -> Result<Action, Problem> {
    settings(kind).action(&Metrics::new(), &Supervisor::none())
}

pub(super) fn http(url: impl Into<String>, change: impl FnOnce(&mut HttpSettings)) -> Kind {
    let mut settings = HttpSettings::new(url);
    change(&mut settings);
    Kind::Http(settings)
}

/// A script for the shell, which is a program like any other.
pub(super) fn script(text: &str) -> CommandSettings {
    CommandSettings::new(["sh", "-c", text].map(str::to_owned).to_vec())
}

/// Quick to notice and to lose patience.
pub(super) fn options() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.lease = LeaseTerms { duration: Duration::from_secs(30), heartbeat: Duration::from_secs(1) };
    options.cancel_grace = Duration::from_millis(500);
    options.shutdown_grace = Duration::ZERO;
    options
}

/// A program with one job, `job`, that never fires by itself.
pub(super) async fn bell(kind: Kind, schedule: impl FnOnce(Schedule) -> Schedule) -> Everbell {
    let action = action(kind).unwrap_or_else(|(field, problem)| panic!("{field} {problem}"));
    let job = schedule(Schedule::cron("job", "0 0 1 1 *").target("target"));
    let builder = Everbell::builder().database("sqlite::memory:").options(options());
    builder.action("target", action, TargetOptions::default()).schedule(job).build().await.unwrap()
}

/// Performs one run.
pub(super) async fn perform(kind: Kind) -> RunRecord {
    perform_with(kind, serde_json::json!({}), |schedule| schedule).await
}

pub(super) async fn perform_with(
    kind: Kind,
    payload: impl Serialize,
    schedule: impl FnOnce(Schedule) -> Schedule,
) -> RunRecord {
    let bell = bell(kind, schedule).await;
    let mut events = bell.events();
    let asked = bell.jobs().by("ana").run_now("job").payload(payload).await.unwrap().run().id;
    let ended = async { drop(heard(&mut events, |event| matches!(event, Event::Finished { .. })).await) };
    within(bell.run_until(ended)).await.unwrap();
    bell.runs().get(asked).await.unwrap()
}

/// Performs the run of a slot: 8 o'clock in Paris, 7 in UTC.
pub(super) async fn fired(kind: Kind, key: &str, payload: impl Serialize) -> RunRecord {
    let action = action(kind).unwrap_or_else(|(field, problem)| panic!("{field} {problem}"));
    let job = Schedule::cron(key, "0 8 * * *").tz("Europe/Paris").target("target").payload(payload);
    let builder = Everbell::builder().action("target", action, TargetOptions::default()).schedule(job);
    let test = TestBell::start(builder, "2026-11-15T12:00:00Z").await;
    ended(test, key).await
}

/// Like [`fired`], for an org, whose local date is the previous one.
pub(super) async fn fired_for_org(kind: Kind, key: &str, org: &str) -> RunRecord {
    let action = action(kind).unwrap_or_else(|(field, problem)| panic!("{field} {problem}"));
    let job = Schedule::cron(key, "0 20 * * *").per_org().target("target");
    let builder = Everbell::builder().action("target", action, TargetOptions::default()).schedule(job);
    let test = TestBell::start(builder, "2026-11-16T06:30:00Z").await;
    test.org(org, "Pacific/Pago_Pago").await;
    ended(test, key).await
}

/// The one run until seven, when it has ended.
async fn ended(mut test: TestBell, key: &str) -> RunRecord {
    test.advance_to("2026-11-16T07:00:00Z").await;
    let ended = async {
        loop {
            let ran = test.assert_ran(key).await.times(1);
            if ran.runs()[0].status.is_terminal() {
                return ran.runs()[0].clone();
            }
            test.drain().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(ended).await
}

/// The code and the message of a failed run.
pub(super) fn failure(run: &RunRecord) -> (&str, &str) {
    let failure = run.failure.as_ref().unwrap_or_else(|| panic!("it did not fail: {run:?}"));
    (failure.code.as_str(), &failure.message)
}

/// The details of a failed run.
pub(super) fn details(run: &RunRecord) -> serde_json::Value {
    let details = run.failure.as_ref().and_then(|failure| failure.details.as_ref());
    serde_json::from_str(details.unwrap_or_else(|| panic!("no details: {run:?}")).as_str()).unwrap()
}

pub(super) fn result(run: &RunRecord) -> Option<&str> {
    run.result.as_ref().map(everbell::Json::as_str)
}

/// Waits for an event that is wanted.
pub(super) async fn heard(events: &mut EventStream, wanted: impl Fn(&Event) -> bool) -> Arc<Event> {
    let search = async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    within(search).await
}

/// Waits until something is there.
pub(super) async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(search).await
}

/// Fails a test that waits in vain.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), future).await.expect("it happens within a minute")
}

/// A folder that goes away with its test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("everbell-test-{}", Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    /// A file with this text.
    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
