//! The recipes of `docs/notifications.md`, word for word, with a receiver on loopback in place of each service. They use `jq`
//! and `curl`, as their readers do. What must arrive is what the public documentation of each service asks for.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::notify::{Got, Receiver};
use crate::server::{Server, time};

/// The first TOML block after a heading of the document such as `**Slack.**`, with these addresses replaced.
fn recipe(heading: &str, addresses: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notifications.md");
    let document = fs::read_to_string(path).unwrap();
    let (_, recipes) = document.split_once("\n## Recipes\n").expect("the document has recipes");
    let (_, own) = recipes.split_once(&format!("\n**{heading}")).unwrap_or_else(|| panic!("no recipe for {heading}"));
    let (before, rest) = own.split_once("```toml\n").unwrap();
    assert!(!before.contains("\n**"), "{heading} has no block of its own");
    let block = rest.split_once("```").unwrap().0;
    addresses.iter().fold(block.to_owned(), |text, (there, here)| {
        assert!(text.contains(there), "{there} is not in {text}");
        text.replace(there, here)
    })
}

/// A job whose target fails while the file `broken` exists.
const FRAGILE: &str = r#"
[[target]]
label = "fragile"
type = "command"
argv = ["sh", "-c", "echo \"disk 'a' is <full>\"; test ! -e broken"]
[[job]]
job_key = "nightly-backup"
target = "fragile"
cron_expression = "0 0 1 1 *"
"#;

/// A rule that sends failures and recoveries of all jobs to a channel.
fn rule(channel: &str) -> String {
    format!("[[rule]]\nwhen = [\"failed\", \"recovered\"]\njobs = {{ all = true }}\nto = [\"{channel}\"]\n")
}

/// Starts a server with a recipe, and a job that can fail.
fn server(recipe: &str, env: &[(&str, &str)]) -> Server {
    Server::launch(&format!("{FRAGILE}{recipe}"), None, env).registered()
}

/// Lets the job fail, or succeed.
fn run(server: &Server, is_broken: bool) {
    let broken = server.folder.path().join("broken");
    if is_broken {
        fs::write(broken, "").unwrap();
    } else {
        fs::remove_file(broken).unwrap();
    }
    let started = server.post("/jobs/key:nightly-backup/run-now", &json!({})).expect(202);
    let status = if is_broken { "failed" } else { "succeeded" };
    server.until(&format!("/runs/{}", started["run"]["id"].as_str().unwrap()), |run| run["status"] == status);
}

/// Sends a test through the channel, and waits until it was delivered.
fn test(server: &Server, channel: &str) {
    let sent = server.post(&format!("/notify/channels/{channel}/test"), &json!({})).expect(202);
    let path = format!("/notify/deliveries?id={}", sent["id"].as_str().unwrap());
    let ended = server.until(&path, |list| list["items"][0]["status"] != "pending");
    assert_eq!(ended["items"][0]["status"], "delivered", "{ended}");
}

/// The messages of a failure, of its end and of a test.
fn three_messages(server: &Server, receiver: &Receiver, channel: &str) -> [Got; 3] {
    run(server, true);
    receiver.until(1);
    run(server, false);
    receiver.until(2);
    test(server, channel);
    receiver.until(3).try_into().unwrap()
}

/// Every member of an object is one of these, and none is null.
fn assert_members(object: &Value, allowed: &[&str]) {
    for (name, value) in object.as_object().unwrap() {
        assert!(allowed.contains(&name.as_str()) && !value.is_null(), "{name}: {object}");
    }
}

fn assert_json(got: &Got) {
    assert_eq!(got.headers["content-type"], "application/json", "{got:?}");
    assert!(!got.body.is_null(), "{got:?}");
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object[name].as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("no {name}: {object}"))
}

#[test]
fn slack_gets_a_text() {
    let receiver = Receiver::start(&[]);
    let url = format!("http://127.0.0.1:{}/services/T0/B0/secret", receiver.port);
    let recipe = recipe("Slack.", &[]) + &rule("ops-slack");
    let server = server(&recipe, &[("SLACK_URL", &url)]);
    let messages = three_messages(&server, &receiver, "ops-slack");
    for message in &messages {
        assert_json(message);
        assert_eq!(message.path, "/services/T0/B0/secret");
        // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: `text`, and `&`, `<` and `>` escaped.
        assert_members(&message.body, &["text", "blocks"]);
        assert!(text(&message.body, "text").len() < 40_000);
    }
    let texts: Vec<&str> = messages.iter().map(|message| text(&message.body, "text")).collect();
    assert!(texts[0].starts_with(":red_circle: *nightly-backup is failing*\n"), "{}", texts[0]);
    assert!(texts[0].contains("Output: disk 'a' is &lt;full&gt;"), "{}", texts[0]);
    assert!(texts[1].starts_with(":large_green_circle: *nightly-backup has recovered"), "{}", texts[1]);
    assert!(texts[2].starts_with(":bell: *"), "{}", texts[2]);
}

/// An event as <https://developer.pagerduty.com/docs/send-alert-event> has it.
fn assert_pagerduty_event(got: &Got, action: &str) {
    assert_json(got);
    assert_eq!(got.path, "/v2/enqueue");
    let event = &got.body;
    assert_members(
        event,
        &["routing_key", "event_action", "dedup_key", "payload", "images", "links", "client", "client_url"],
    );
    assert_eq!((text(event, "routing_key"), text(event, "event_action")), ("R0UT1NGK3Y", action));
    let payload = &event["payload"];
    assert_members(
        payload,
        &["summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"],
    );
    assert!(text(payload, "summary").chars().count() <= 1_024);
    text(payload, "source");
    assert!(["critical", "error", "warning", "info"].contains(&text(payload, "severity")), "{payload}");
    assert!(payload["custom_details"].is_object(), "{payload}");
}

#[test]
fn pagerduty_gets_events_that_open_and_resolve_one_incident() {
    let receiver = Receiver::start(&[202; 3]);
    let here = format!("http://127.0.0.1:{}/v2", receiver.port);
    let recipe = recipe("PagerDuty", &[("https://events.pagerduty.com/v2", &here)]) + &rule("oncall");
    let server = server(&recipe, &[("PD_KEY", "R0UT1NGK3Y")]);
    run(&server, true);
    receiver.calls(1);
    run(&server, false);
    receiver.calls(2);
    test(&server, "oncall");
    let events = receiver.calls(3);
    for (event, action) in events.iter().zip(["trigger", "resolve", "trigger"]) {
        assert_pagerduty_event(event, action);
    }
    let key = text(&events[0].body, "dedup_key");
    assert!(key.len() <= 255);
    assert_eq!(text(&events[1].body, "dedup_key"), key);
    assert_eq!(events[2].body.get("dedup_key"), None, "a test is no incident that anything resolves");
    assert_eq!(events[0].body["payload"]["summary"], "nightly-backup is failing");
}

/// Alerts as the OpenAPI document of Alertmanager v2 has them (`postableAlerts`), and the only one of them.
fn alert(got: &Got) -> &Value {
    assert_json(got);
    assert_eq!(got.path, "/api/v2/alerts");
    let [alert] = got.body.as_array().unwrap().as_slice() else { panic!("{got:?}") };
    assert_members(alert, &["labels", "annotations", "startsAt", "endsAt", "generatorURL"]);
    for set in ["labels", "annotations"] {
        let texts = alert[set].as_object().unwrap();
        assert!(texts.values().all(Value::is_string), "{alert}");
    }
    // Labels without a text are dropped, and an alert without any is refused.
    for name in alert["labels"].as_object().unwrap().keys() {
        text(&alert["labels"], name);
    }
    text(&alert["labels"], "alertname");
    alert
}

#[test]
fn alertmanager_gets_an_alert_that_begins_and_ends() {
    let receiver = Receiver::start(&[]);
    let here = format!("http://127.0.0.1:{}", receiver.port);
    // The block has its rule.
    let server = server(&recipe("Alertmanager", &[("http://alertmanager:9093", &here)]), &[]);
    let messages = three_messages(&server, &receiver, "alertmanager");
    let [failing, over, test] = messages.each_ref().map(alert);
    let labels = json!({ "alertname": "Everbell_failed", "job_key": "nightly-backup" });
    assert_eq!((&failing["labels"], &over["labels"]), (&labels, &labels), "labels are the identity of an alert");
    assert_eq!(failing["startsAt"], over["startsAt"]);
    assert_eq!(failing.get("endsAt"), None);
    assert!(time(&over["startsAt"]) < time(&over["endsAt"]), "{over}");
    assert_eq!(failing["annotations"]["summary"], "nightly-backup is failing");
    assert_eq!(test["labels"], json!({ "alertname": "Everbell_test" }));
}

#[test]
fn alertmanager_keeps_the_alerts_of_orgs_apart() {
    let receiver = Receiver::start(&[]);
    let here = format!("http://127.0.0.1:{}", receiver.port);
    let recipe = recipe("Alertmanager", &[("http://alertmanager:9093", &here)]);
    let of_orgs = recipe.replace("jobs = { all = true }\n", "jobs = { all = true }\norgs = [\"*\"]\n");
    let of_orgs = of_orgs
        .replace("\"failed\", \"no_success\", \"recovered\"", "\"failed\", \"recovered\"")
        .replace("within = \"26h\"\n", "");
    let server = server(&of_orgs, &[]);
    for org in ["acme", "bolt"] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": "UTC" })).expect(201);
    }
    server.job("brief", &json!({ "target": "fragile", "scope": "per_org" }));
    fs::write(server.folder.path().join("broken"), "").unwrap();
    for (count, org) in [(1, "acme"), (2, "bolt")] {
        server.post("/jobs/key:brief/run-now", &json!({ "orgId": org })).expect(202);
        let alerts = receiver.until(count);
        let labels = json!({ "alertname": "Everbell_failed", "job_key": "brief", "org_id": org });
        assert_eq!(alert(&alerts[count - 1])["labels"], labels);
    }
}

#[test]
fn healthchecks_hears_of_failures_recoveries_and_successes() {
    let receiver = Receiver::start(&[]);
    let check = "/2b7e1c52-4d7d-4b0e-8a0b-5d1b1a6f3a11";
    let url = format!("http://127.0.0.1:{}{check}", receiver.port);
    let recipe = recipe("Healthchecks", &[]);
    let server = server(&recipe, &[("HEALTHCHECKS_BACKUP_URL", &url)]);
    let pings = |count| -> Vec<String> { receiver.until(count).into_iter().map(|ping| ping.path).collect() };
    run(&server, true);
    // https://healthchecks.io/docs/http_api: success at the address itself, `/fail`, and `/log`, which changes nothing.
    assert_eq!(pings(1), [format!("{check}/fail")]);
    let failed = receiver.until(1).remove(0);
    assert!(failed.text.contains("exit_code") && failed.text.contains("disk 'a' is <full>"), "{failed:?}");
    run(&server, false);
    // The recovery, and the success.
    assert_eq!(pings(3)[1..], [check, check]);
    test(&server, "healthchecks-backup");
    assert_eq!(pings(4)[3], format!("{check}/log"));
}
