//! Runs by the beginning of their ids, their output, and the next runs from a later time on.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{data, json as printed, masked, refused};
use crate::server::{Server, TARGETS};

/// Finds runs by prefixes, on both databases.
fn prefixes(server: &Server) {
    server.job("pulse", &json!({"cronExpression": "* * * 28 5 *", "policies": {"overlap": "allow"}}));
    // Slots whose ids share their first eight digits, which are a span of 65.536 s.
    let millis = (1_780_000_000_000_i64 >> 16 << 16) + 10_000;
    let from = Timestamp::from_second(millis / 1_000).unwrap();
    let to = from + SignedDuration::from_secs(2);
    let range = json!({"from": from.to_string(), "to": to.to_string()});
    server.post("/jobs/key:pulse/backfills", &range).expect(202);
    server.until("/jobs/key:pulse/backfills", |list| list["items"][0]["status"] == "done");
    let done = server.get("/runs").expect(200);
    let ids: Vec<&str> = done["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert!(ids.len() >= 2 && ids.iter().all(|id| id[..8] == ids[0][..8]), "{ids:?}");
    for id in &ids {
        let unique =
            (9..36).find(|end| ids.iter().filter(|other| other.starts_with(&id[..*end])).count() == 1).unwrap();
        for prefix in [&id[..unique], &id[..=unique], *id, &id.replace('-', "")[..unique]] {
            assert!(data(server, &["runs", "show", prefix]).contains(&format!("\nid\t{id}\n")), "{prefix}");
        }
        assert_eq!(data(server, &["runs", "logs", &id[..unique]]), data(server, &["runs", "show", id, "--log"]));
        let found = server.get(&format!("/runs?idPrefix={}", &id[..unique])).expect(200);
        assert_eq!((&found["items"][0]["id"], found["items"].as_array().unwrap().len()), (&json!(id), 1));
    }
    let several = refused(server, &["runs", "rerun", &ids[0][..8]], 2);
    let listed = format!("error: the ids of several runs begin with `{}`\n", &ids[0][..8]);
    let listed = format!("{listed}{}", "  ID  succeeded pulse\n".repeat(ids.len()));
    assert!(masked(&several).starts_with(&listed), "{several}");
    assert!(several.ends_with("  hint: write more of the id\n"), "{several}");
    let pages = server.get(&format!("/runs?idPrefix={}&limit=1", &ids[0][..8])).expect(200);
    let cursor = pages["nextCursor"].as_str().unwrap();
    let second = server.get(&format!("/runs?idPrefix={}&limit=1&cursor={cursor}", &ids[0][..8])).expect(200);
    assert_eq!((&pages["items"][0]["id"], &second["items"][0]["id"]), (&json!(ids[0]), &json!(ids[1])));
    assert!(refused(server, &["runs", "show", "ffffffff"], 3).starts_with("error: cannot show run `ffffffff`"));
    let problem = server.get("/runs?idPrefix=daily-briefing").expect(400);
    assert!(problem.to_string().contains("must be 8 to 32 hexadecimal digits"), "{problem}");
    assert!(data(server, &["runs", "get", "pulse"]).contains("\nid\t"), "the key of a job still names its newest run");
}

#[test]
fn runs_are_found_by_the_beginning_of_their_ids() {
    prefixes(&Server::with(TARGETS));
    prefixes(&Server::postgres(TARGETS));
}

#[test]
fn next_runs_are_listed_from_a_later_time_on() {
    let server = Server::start();
    server.job("daily", &json!({"cronExpression": "0 8 * * *", "labels": {"team": "data"}}));
    server.job("other", &json!({"cronExpression": "* * * * *"}));
    server.job("late", &json!({"cronExpression": "0 8 2 * *", "labels": {"team": "data"}}));
    let from = ["next", "--from", "2099-01-01", "--within", "3d"];
    let found = printed(&server, &[&from[..], &["--label", "team=data"]].concat());
    let shown =
        |item: &serde_json::Value| format!("{} {}", item["at"].as_str().unwrap(), item["jobKey"].as_str().unwrap());
    let fires: Vec<String> = found["items"].as_array().unwrap().iter().map(shown).collect();
    let expected = [
        "2099-01-01T08:00:00Z daily",
        "2099-01-02T08:00:00Z daily",
        "2099-01-02T08:00:00Z late",
        "2099-01-03T08:00:00Z daily",
    ];
    let (mut fires, mut expected) = (fires, expected.map(str::to_owned).to_vec());
    fires.sort();
    expected.sort();
    assert_eq!(fires, expected);
    let all = printed(&server, &[&from[..], &["--limit", "2"]].concat());
    assert_eq!((&all["items"][0]["at"], &all["more"]), (&json!("2099-01-01T00:00:00Z"), &json!(true)));
    let exported = data(&server, &["jobs", "export", "--label", "team=data"]);
    assert!(exported.contains("job_key = \"daily\"") && !exported.contains("job_key = \"other\""), "{exported}");
}
