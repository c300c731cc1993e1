//! Traces: a call of a target belongs to the trace of the request that asked for the run.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::binary::{command, ran};
use crate::server::{Response, Server, TARGETS, eventually, time};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "vendor=a,other=1";

/// A receiver of calls that fails the first of them.
struct Receiver {
    runtime: Runtime,
    calls: MockServer,
}

impl Receiver {
    fn start() -> Receiver {
        let runtime = Runtime::new().unwrap();
        let calls = runtime.block_on(async {
            let calls = MockServer::start().await;
            let broken = Mock::given(any()).respond_with(ResponseTemplate::new(503));
            broken.up_to_n_times(1).mount(&calls).await;
            Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&calls).await;
            calls
        });
        Receiver { runtime, calls }
    }

    fn config(&self) -> String {
        let hook = format!("[[target]]\nlabel = \"hook\"\ntype = \"http\"\nurl = \"{}\"\n", self.calls.uri());
        let program = r#"argv = ["sh", "-c", "echo parent=$TRACEPARENT state=$TRACESTATE"]"#;
        format!("{TARGETS}\n{hook}[[target]]\nlabel = \"env\"\ntype = \"command\"\n{program}\n")
    }

    /// The calls of a job, once there are this many.
    fn calls_of(&self, job: &str, count: usize) -> Vec<Request> {
        let found = eventually(|| {
            let all = self.runtime.block_on(self.calls.received_requests()).unwrap();
            let own: Vec<Request> =
                all.into_iter().filter(|call| header(call, "ce-subject").as_deref() == Some(job)).collect();
            (own.len() >= count).then_some(own)
        });
        found.unwrap_or_else(|| panic!("`{job}` was called less than {count} times"))
    }
}

fn header(call: &Request, name: &str) -> Option<String> {
    call.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

fn trace_of(call: &Request) -> (Option<String>, Option<String>) {
    (header(call, "traceparent"), header(call, "tracestate"))
}

/// Sends a request that belongs to a trace.
fn post_in(server: &Server, path: &str, body: &Value, trace: &[(&str, &str)]) -> Response {
    let token = format!("Bearer {}", server.token);
    let headers: Vec<(&str, &str)> =
        [("authorization", token.as_str())].into_iter().chain(trace.iter().copied()).collect();
    server.request("POST", path, &headers, body.to_string().as_bytes())
}

fn ended(server: &Server, asked: &Response) -> Value {
    server.until(&asked.headers["location"], |run| run["finishedAt"].is_string())
}

fn check(server: &Server, receiver: &Receiver) {
    let retry = json!({ "retry": { "maxAttempts": 2, "initial": "1s", "max": "1s" } });
    server.job("hook", &json!({ "target": "hook", "policies": retry }));
    let both = [("traceparent", PARENT), ("tracestate", "vendor=a"), ("tracestate", "other=1")];
    let sent = (Some(PARENT.to_owned()), Some("vendor=a,other=1".to_owned()));

    // Run now: the first attempt fails, and the second one belongs to the same trace.
    let asked = post_in(server, "/jobs/key:hook/run-now", &json!({}), &both);
    assert_eq!(asked.expect(202)["run"]["traceId"], TRACE_ID);
    let run = ended(server, &asked);
    assert_eq!((&run["status"], &run["attempt"], &run["traceId"]), (&json!("succeeded"), &json!(2), &json!(TRACE_ID)));
    let calls = receiver.calls_of("hook", 2);
    assert_eq!(calls.iter().map(trace_of).collect::<Vec<_>>(), [sent.clone(), sent.clone()]);

    // A one-time job.
    let soon = (time(&run["finishedAt"]) + std::time::Duration::from_secs(6)).to_string();
    let once = json!({ "jobKey": "once", "target": "hook", "runAt": soon });
    post_in(server, "/jobs", &once, &both).expect(201);
    assert_eq!(trace_of(&receiver.calls_of("once", 1)[0]), sent);

    // Slots of a recurring job follow from the clock, whoever created it.
    let secondly = json!({ "jobKey": "secondly", "target": "hook", "cronExpression": "* * * * * *" });
    post_in(server, "/jobs", &secondly, &both).expect(201);
    let call = &receiver.calls_of("secondly", 1)[0];
    let (parent, state) = trace_of(call);
    let own = header(call, "ce-id").unwrap().replace('-', "");
    assert_eq!((parent.unwrap()[3..35].to_owned(), state), (own, None), "a trace with the id of the run");
    let listed = server.until("/runs?jobKey=secondly", |list| !list["items"].as_array().unwrap().is_empty());
    assert_eq!(listed["items"][0]["traceId"], Value::Null);

    // Headers that W3C forbids mean that there is no trace; the request is carried out.
    for bad in [vec![("traceparent", "00-no-trace-01")], vec![("traceparent", PARENT), ("traceparent", PARENT)]] {
        let asked = post_in(server, "/jobs/key:hook/run-now", &json!({}), &bad);
        assert_eq!(asked.expect(202)["run"]["traceId"], Value::Null, "{bad:?}");
        ended(server, &asked);
    }

    // A program finds them in its environment; a trial of a target is a request like others.
    let asked = post_in(server, "/targets/env/try", &json!({}), &both);
    assert_eq!(ended(server, &asked)["output"], format!("parent={PARENT} state={STATE}\n"));
    server.job("env", &json!({ "target": "env" }));
    let asked = server.post("/jobs/key:env/run-now", &json!({}));
    let run = ended(server, &asked);
    let own = format!("parent=00-{}-", run["id"].as_str().unwrap().replace('-', ""));
    let printed = run["output"].as_str().unwrap();
    assert!(printed.starts_with(&own) && printed.ends_with("-01 state=\n"), "{printed}");
}

#[test]
fn calls_belong_to_the_trace_of_the_request_on_sqlite() {
    let receiver = Receiver::start();
    let server = Server::with(&receiver.config()).registered();
    check(&server, &receiver);
    command_line(&server);
}

#[test]
fn calls_belong_to_the_trace_of_the_request_on_postgres() {
    let receiver = Receiver::start();
    check(&Server::postgres(&receiver.config()).registered(), &receiver);
}

/// A traced pipeline that runs the command line is joined, and what it started is shown with its trace.
fn command_line(server: &Server) {
    let everbell = |args: &[&str], parent: &str| {
        let mut command = command(args);
        command.env("EVERBELL_SERVER", server.url("")).env("EVERBELL_TOKEN", &server.token);
        let ran = ran(command.env("TRACEPARENT", parent).env("TRACESTATE", STATE).output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let id = |text: String| serde_json::from_str::<Value>(&text).unwrap()["run"]["id"].as_str().unwrap().to_owned();
    let run = id(everbell(&["jobs", "run", "env", "--json"], PARENT));
    let ended = server.until(&format!("/runs/{run}"), |run| run["finishedAt"].is_string());
    assert_eq!(ended["output"], format!("parent={PARENT} state={STATE}\n"));
    let shown = everbell(&["runs", "show", &run], "");
    assert!(shown.lines().any(|line| line == format!("trace\t{TRACE_ID}")), "{shown}");
    let run = id(everbell(&["jobs", "run", "env", "--queue", "--json"], "nonsense"));
    assert_eq!(server.get(&format!("/runs/{run}")).expect(200)["traceId"], Value::Null);
    assert!(!everbell(&["runs", "show", &run], "").contains("trace"));
}
