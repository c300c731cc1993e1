//! Handlers that fail: codes, texts, and whether they are tried again.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use everbell::testing::TestBell;
use everbell::{Backoff, Everbell, Payload, RunError, RunRecord, RunStatus};
use serde::Deserialize;
use serde_json::json;

use crate::given::{perform, perform_with};

/// `code: message`, and the details.
fn failure_text(run: &RunRecord) -> String {
    assert_eq!(run.status, RunStatus::Failed);
    let failure = run.failure.as_ref().unwrap();
    let details = failure.details.as_ref().map_or(String::new(), |details| format!(" {details}"));
    format!("{}: {}{details}", failure.code.as_str(), failure.message)
}

#[derive(Debug)]
struct Layer(&'static str, Option<Box<Layer>>);

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Layer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|layer| layer as &dyn Error)
    }
}

fn layers() -> Layer {
    Layer("sending: no answer", Some(Box::new(Layer("no answer", Some(Box::new(Layer("timed out", None)))))))
}

#[tokio::test]
async fn an_error_is_told_with_all_of_its_sources() {
    async fn by_question_mark() -> Result<(), RunError> {
        Err(layers())?;
        Ok(())
    }
    async fn as_it_is() -> Result<(), Layer> {
        Err(layers())
    }
    async fn boxed() -> Result<(), Box<dyn Error + Send + Sync>> {
        Err(layers())?;
        Ok(())
    }
    async fn any_how() -> anyhow::Result<()> {
        Err(layers())?;
        Ok(())
    }
    async fn mapped() -> Result<(), RunError> {
        any_how().await.map_err(RunError::new)
    }
    async fn text() -> Result<(), String> {
        Err("no\0pe".to_owned())
    }
    let wanted = "handler_error: sending: no answer: timed out";
    assert_eq!(failure_text(&perform(by_question_mark, ()).await), wanted);
    assert_eq!(failure_text(&perform(as_it_is, ()).await), wanted);
    assert_eq!(failure_text(&perform(boxed, ()).await), wanted);
    assert_eq!(failure_text(&perform(any_how, ()).await), wanted);
    assert_eq!(failure_text(&perform(mapped, ()).await), wanted);
    assert_eq!(failure_text(&perform(text, ()).await), "handler_error: no\u{fffd}pe");
}

#[tokio::test]
async fn a_failure_may_have_a_code_and_details() {
    async fn own() -> Result<(), RunError> {
        Err(RunError::fail("no_recipients", "nobody is there").details(json!({"org": 7})))
    }
    async fn impossible() -> Result<(), RunError> {
        Err(RunError::fail("No Recipients", "nobody is there"))
    }
    async fn reserved() -> Result<(), RunError> {
        Err(RunError::fail("lost", "the parcel is lost"))
    }
    async fn unstorable() -> Result<(), RunError> {
        Err(RunError::fail("odd", "see the details").details("\0"))
    }
    assert_eq!(failure_text(&perform(own, ()).await), r#"no_recipients: nobody is there {"org":7}"#);
    let wanted = "handler_error: nobody is there (with the impossible failure code `No Recipients`)";
    assert_eq!(failure_text(&perform(impossible, ()).await), wanted);
    let wanted = "handler_error: the parcel is lost (with the reserved failure code `lost`)";
    assert_eq!(failure_text(&perform(reserved, ()).await), wanted);
    let wanted = "odd: see the details (its details cannot be stored: the character \\u0000, which no database keeps, at byte 7)";
    assert_eq!(failure_text(&perform(unstorable, ()).await), wanted);
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_told_with_its_place() {
    #[derive(Deserialize)]
    struct Briefing {
        #[serde(rename = "to")]
        _to: Vec<Person>,
    }
    #[derive(Deserialize)]
    struct Person {
        #[serde(rename = "age")]
        _age: u8,
    }
    async fn brief(_: Payload<Briefing>) {}
    let test = TestBell::start(Everbell::builder().target("brief", brief), "2027-01-01T00:00:00Z").await;
    for (payload, wanted) in [
        (
            json!({}),
            "invalid_payload: the payload is no `Briefing`: missing field `to` at line 1 column 2; a job without a payload has `{}`",
        ),
        (
            json!({"to": [{"age": 3}, {"age": "old"}]}),
            "invalid_payload: the payload is no `Briefing` at `to[1].age`: invalid type: string \"old\", expected u8 at line 1 column 29",
        ),
        (
            json!({"to": [{"age": 300}]}),
            "invalid_payload: the payload is no `Briefing` at `to[0].age`: invalid value: integer `300`, expected u8 at line 1 column 17",
        ),
    ] {
        let error = test.perform::<()>("brief", payload).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_retryable()), (wanted, false));
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_fails_the_run() {
    async fn nul() -> Result<&'static str, RunError> {
        Ok("a\0b")
    }
    async fn large() -> Result<String, RunError> {
        Ok("x".repeat(2 << 20))
    }
    async fn no_json() -> Result<std::collections::BTreeMap<Vec<u8>, u8>, RunError> {
        Ok([(vec![1], 1)].into())
    }
    let wanted =
        "handler_error: its result cannot be stored: the character \\u0000, which no database keeps, at byte 8";
    assert_eq!(failure_text(&perform(nul, ()).await), wanted);
    let wanted = "handler_error: its result cannot be stored: must be at most 1048576 bytes of JSON, not 2097154";
    assert_eq!(failure_text(&perform(large, ()).await), wanted);
    assert_eq!(
        failure_text(&perform(no_json, ()).await),
        "handler_error: its result cannot be stored: key must be a string"
    );
}

#[tokio::test]
async fn a_fatal_failure_is_not_tried_again_and_others_are() {
    async fn fatal() -> Result<(), RunError> {
        Err(RunError::fail("never", "not again").fatal())
    }
    async fn again(run: everbell::Run) -> Result<u32, RunError> {
        if run.attempt() == 1 { Err(RunError::fail("busy", "later")) } else { Ok(run.attempt()) }
    }
    async fn unstorable() -> Result<&'static str, RunError> {
        Ok("\0")
    }
    let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
    let three = |schedule: everbell::Schedule| schedule.retry(3, backoff);
    let run = perform_with(Everbell::builder().target("handler", fatal), (), three).await;
    assert_eq!((run.attempt, failure_text(&run).as_str()), (1, "never: not again"));
    let run = perform_with(Everbell::builder().target("handler", again), (), three).await;
    assert_eq!((run.attempt, run.result.unwrap().as_str()), (2, "2"));
    assert_eq!(perform_with(Everbell::builder().target("handler", unstorable), (), three).await.attempt, 1);
}

#[tokio::test]
async fn a_panic_is_a_failure() {
    async fn panics() {
        panic!("boom");
    }
    assert_eq!(failure_text(&perform(panics, ()).await), "panic: boom");
}

#[test]
fn what_is_fatal_stays_fatal_and_what_pauses_is_not_tried_again() {
    let fail = || RunError::fail("busy", "come back");
    assert!(fail().retry_after(Duration::from_secs(5)).is_retryable());
    assert!(!fail().fatal().retry_after(Duration::from_secs(5)).is_retryable());
    let paused = fail().pausing("nobody is there").retry_after(Duration::from_secs(5));
    assert_eq!((paused.is_retryable(), paused.pause_reason()), (false, Some("nobody is there")));
    assert_eq!(fail().fatal().pause_reason(), None);
}

#[tokio::test]
async fn a_trial_has_no_job_to_pause() {
    async fn gone() -> Result<(), RunError> {
        Err(RunError::fail("gone", "nobody is there").pausing("nobody is there any more"))
    }
    let mut test = TestBell::start(Everbell::builder().target("gone", gone), "2026-11-15T12:00:00Z").await;
    let tried = test.runs().try_target("gone", ()).await.unwrap().id;
    test.drain().await;
    let run = test.runs().get(tried).await.unwrap();
    assert_eq!(failure_text(&run), "gone: nobody is there");
}
