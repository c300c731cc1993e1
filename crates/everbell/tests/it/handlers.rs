//! Functions as targets: what they take and what they give.

use everbell::{Everbell, FromRun, Payload, Run, RunError, RunStatus, State, States};
use serde::{Deserialize, Serialize};

use crate::given::{nothing, perform, perform_with};

#[derive(Debug, Serialize, Deserialize)]
struct Briefing {
    org: u64,
    to: Vec<Person>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Person {
    name: String,
}

fn briefing() -> Briefing {
    Briefing { org: 7, to: vec![Person { name: "Ana".to_owned() }] }
}

#[tokio::test]
async fn a_function_without_anything_succeeds() {
    let run = perform(nothing, ()).await;
    assert_eq!((run.status, run.result, run.failure), (RunStatus::Succeeded, None, None));
}

#[tokio::test]
async fn a_result_is_kept_as_json() {
    #[derive(Serialize)]
    struct Sent {
        mails: usize,
    }
    async fn send(Payload(briefing): Payload<Briefing>) -> Result<Sent, RunError> {
        Ok(Sent { mails: briefing.to.len() })
    }
    let run = perform(send, briefing()).await;
    assert_eq!((run.status, run.result.unwrap().as_str()), (RunStatus::Succeeded, r#"{"mails":1}"#));
}

#[tokio::test]
async fn nothing_as_a_result_is_no_result() {
    async fn unit() -> Result<(), RunError> {
        Ok(())
    }
    async fn none() -> Result<Option<u8>, RunError> {
        Ok(None)
    }
    assert_eq!(perform(unit, ()).await.result, None);
    assert_eq!(perform(none, ()).await.result, None);
}

#[tokio::test]
async fn a_closure_is_a_handler() {
    let greeting = "hello".to_owned();
    let handler = move |run: Run| {
        let text = format!("{greeting} {}", run.target());
        async move { Ok::<_, RunError>(text) }
    };
    assert_eq!(perform(handler, ()).await.result.unwrap().as_str(), r#""hello handler""#);
}

/// An argument of one's own.
struct JobName(String);

impl FromRun for JobName {
    fn from_run(run: &Run, _: &States) -> Result<JobName, RunError> {
        let key = run.job_key().ok_or_else(|| RunError::fail("no_job", "only for jobs").fatal())?;
        Ok(JobName(key.to_string()))
    }
}

#[tokio::test]
async fn a_handler_takes_up_to_six_arguments_in_any_order() {
    async fn six(
        State(number): State<u8>,
        Payload(briefing): Payload<Briefing>,
        run: Run,
        State(text): State<&'static str>,
        JobName(job): JobName,
        Payload(raw): Payload<serde_json::Value>,
    ) -> Result<String, RunError> {
        run.log("a line");
        Ok(format!("{number} {} {} {text} {job} {}", briefing.org, run.attempt(), raw["to"][0]["name"]))
    }
    let builder = Everbell::builder().target("handler", six).state(5_u8).state("text");
    let run = perform_with(builder, briefing(), |schedule| schedule).await;
    assert_eq!(run.result.unwrap().as_str(), r#""5 7 1 text job \"Ana\"""#);
    assert_eq!(run.output.as_deref(), Some("a line\n"));
}

#[tokio::test]
async fn a_payload_may_hold_times_of_the_library() {
    #[derive(Serialize, Deserialize)]
    struct Appointment {
        at: everbell::Timestamp,
        day: everbell::jiff::civil::Date,
    }
    async fn confirm(Payload(appointment): Payload<Appointment>) -> Result<String, RunError> {
        Ok(format!("{} {}", appointment.at, appointment.day))
    }
    let at = "2027-03-28T06:00:00Z".parse().unwrap();
    let run = perform(confirm, Appointment { at, day: everbell::jiff::civil::date(2027, 3, 28) }).await;
    assert_eq!(run.result.unwrap().as_str(), r#""2027-03-28T06:00:00Z 2027-03-28""#);
}
