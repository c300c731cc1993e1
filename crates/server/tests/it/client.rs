//! A user's program that calls a real server through `everbell-client`.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::time::Duration;

use everbell_client::wire::JobBody;
use everbell_client::wire::job::JobStatus;
use everbell_client::wire::run::RunStatus;
use everbell_client::{
    Client, Error, EventQuery, JobQuery, PauseRequest, ResumeRequest, RunNowRequest, RunQuery, WithJson,
};
use everbell_wire as wire;
use futures_util::{StreamExt, TryStreamExt};

use crate::server::Server;

fn client(server: &Server) -> Client {
    Client::builder(server.url("")).token(&server.token).build().unwrap()
}

fn yearly(key: &str) -> JobBody {
    JobBody::recurring(key, "print", "0 0 1 1 *")
}

#[tokio::test]
async fn program_creates_a_job_runs_it_and_waits_for_the_end() {
    let server = Server::start();
    let client = client(&server);
    let job = client.jobs().create(&yearly("report").with("timezone", "Europe/Paris")).await.unwrap();
    assert_eq!((job.job_key.as_str(), job.version, job.timezone.as_str()), ("report", 1, "Europe/Paris"));
    let mut events =
        client.events(&EventQuery { types: vec!["run.*".to_owned()], ..EventQuery::default() }).await.unwrap();
    let started = client.jobs().run_now("report", &RunNowRequest::default()).await.unwrap();
    let ended = async {
        loop {
            let run = client.runs().get(&started.run.id).await.unwrap();
            if run.finished_at.is_some() {
                return run;
            }
            events.next_within(Duration::from_millis(200)).await.unwrap();
        }
    };
    let run = tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    assert_eq!((run.status, run.job_key.as_deref()), (RunStatus::Succeeded, Some("report")));
    client.jobs().run_now("report", &RunNowRequest::default()).await.unwrap();
    let mut runs = std::pin::pin!(events.into_stream().filter_map(async |event| event.unwrap().run()));
    let seen = tokio::time::timeout(Duration::from_secs(30), runs.next()).await.unwrap();
    assert_eq!(seen.unwrap().job_key.as_deref(), Some("report"));
}

#[tokio::test]
async fn changes_can_be_bound_to_a_revision_and_repeated_safely() {
    let server = Server::start();
    let client = client(&server);
    let create = || client.jobs().create(&yearly("report")).idempotency_key("once");
    let (first, again) = (create().await.unwrap(), create().await.unwrap());
    assert_eq!(first.id, again.id);
    let pause = PauseRequest { reason: "a holiday".to_owned(), ..PauseRequest::default() };
    let paused = client.jobs().pause("report", &pause).if_match(first.revision).send().await.unwrap();
    assert_eq!((paused.status, &paused.document.job.status), (200, &JobStatus::Paused));
    assert!(paused.text.starts_with('{') && paused.text.contains("\"pauseReason\":\"a holiday\""), "{}", paused.text);
    let stale = client.jobs().resume("report", &ResumeRequest::default()).if_match(first.revision).await;
    assert_eq!(stale.unwrap_err().code(), Some(&wire::ProblemCode::RevisionMismatch));
    let any = client.jobs().resume("report", &ResumeRequest::default()).await.unwrap();
    assert_eq!(any.job.status, JobStatus::Active);
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let server = Server::start();
    let client = client(&server);
    for number in 0..5 {
        client.jobs().create(&yearly(&format!("job-{number}"))).await.unwrap();
    }
    let query = JobQuery { text: Some("job-".to_owned()), ..JobQuery::default() };
    let mut pages = client.jobs().list(&query).page_size(2);
    let mut sizes = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        assert_eq!(page.lines().count(), page.items.len());
        sizes.push(page.items.len());
    }
    assert_eq!(sizes, [2, 2, 1]);
    let all: Vec<_> = client.jobs().list(&query).page_size(2).into_stream().try_collect().await.unwrap();
    assert_eq!(
        all.iter().map(|job| job.job_key.as_str()).collect::<Vec<_>>(),
        ["job-0", "job-1", "job-2", "job-3", "job-4"]
    );
    let first = client.jobs().list(&query).page_size(2).take(3).await.unwrap();
    let keys: Vec<&str> = first.items.iter().map(|job| job.job_key.as_str()).collect();
    assert_eq!((keys, first.next_cursor.is_some()), (vec!["job-0", "job-1", "job-2"], true));
    let json: serde_json::Value = serde_json::from_str(&first.json()).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 3);
    let versions = client.jobs().versions("job-0").read_as::<wire::Items<WithJson<wire::Job>>>().await.unwrap();
    assert_eq!(versions.items[0].json["jobKey"], "job-0");
    assert!(client.runs().list(&RunQuery::default()).take(10).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn refusals_have_the_problem_of_the_server() {
    let server = Server::start();
    let client = client(&server);
    let Err(Error::Refused(refusal)) = client.jobs().get("nothing").await else { panic!("there is no such job") };
    assert_eq!((refusal.status, &refusal.problem.code), (404, &wire::ProblemCode::NotFound));
    assert_eq!(refusal.problem.subject.as_deref(), Some("job"));
    let message = refusal.to_string();
    assert!(message.starts_with("cannot GET /api/v1/jobs/key:nothing: there is no job"), "{message}");
    let wrong = client.jobs().create(&yearly("report").with("timezone", "Mars/Base")).await.unwrap_err();
    assert!(wrong.to_string().contains("\n  #/timezone: "), "{wrong}");
    let stranger = client.clone().with_token("evb_0000000000000000").unwrap();
    let refused = stranger.jobs().list(&JobQuery::default()).next().await.err().unwrap();
    assert_eq!(refused.code(), Some(&wire::ProblemCode::Unauthenticated));
}

#[tokio::test]
async fn servers_that_do_not_answer_are_told_apart() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", free.local_addr().unwrap());
    let silent = Client::builder(&address).timeout(Duration::from_millis(300)).build().unwrap();
    let error = silent.status().await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(error.to_string(), format!("{address} did not answer within 300ms"));
    drop(free);
    let error = silent.status().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("cannot reach the server at {address}: ")), "{error}");
}
