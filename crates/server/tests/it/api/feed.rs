//! The next fires as a calendar that people subscribe to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::server::Server;

const PATH: &str = "/api/v1/next/calendar.ics";

/// The lines of a calendar, unfolded.
fn unfolded(text: &str) -> Vec<String> {
    text.replace("\r\n ", "").split("\r\n").map(str::to_owned).collect()
}

fn titles(lines: &[String]) -> Vec<&str> {
    let mut titles: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("SUMMARY:")).collect();
    titles.dedup();
    titles
}

#[test]
fn a_calendar_subscribes_to_the_next_fires() {
    let server =
        Server::with(&format!("{}\n[server]\npublic_url = \"https://cron.example\"\n", crate::server::TARGETS));
    let daily = json!({ "cronExpression": "0 3 * * *", "timezone": "Europe/Berlin", "labels": { "team": "data" }, "description": "Counts, sums" });
    server.job("report", &daily);
    server.job("poll", &json!({ "cronExpression": "* * * * *" }));
    let get = |path: &str| {
        let bearer = format!("Bearer {}", server.token);
        let response = server.raw("GET", path, &[("authorization", &bearer)], b"");
        assert_eq!(
            (response.status, response.headers["content-type"].as_str()),
            (200, "text/calendar"),
            "{response:?}"
        );
        unfolded(&response.text)
    };
    let lines = get(PATH);
    assert_eq!(titles(&lines), ["report"], "a job that fires each minute would hide all others");
    let has = |lines: &[String], wanted: &str| lines.iter().any(|line| line.contains(wanted));
    assert!(has(&lines, "Without 1 job that fires more than 24 times a day."), "{lines:?}");
    let days = lines.iter().filter(|line| line.starts_with("SUMMARY")).count();
    assert!((30..=32).contains(&days), "{days}");
    for wanted in [
        "DESCRIPTION:Counts\\, sums",
        "Europe/Berlin\\nTarget: print",
        "URL:https://cron.example/jobs/report",
        "CATEGORIES:team=data",
        "STATUS:CONFIRMED",
    ] {
        assert!(has(&lines, wanted), "{wanted}: {lines:?}");
    }
    let ids =
        |lines: &[String]| -> Vec<String> { lines.iter().filter(|line| line.starts_with("UID:")).cloned().collect() };
    assert_eq!(ids(&lines), ids(&get(PATH)), "an event keeps its id");

    let frequent = get(&format!("{PATH}?frequent=true&within=1h"));
    assert!((59..=61).contains(&frequent.iter().filter(|line| *line == "SUMMARY:poll").count()), "{frequent:?}");
    assert_eq!(titles(&get(&format!("{PATH}?label=team%3Dsales"))), [""; 0]);
    assert!(has(&get(&format!("{PATH}?label=team")), "X-WR-CALNAME:everbell: team"));
    let until = (everbell_cli::clock::wall() + jiff::SignedDuration::from_hours(40 * 24)).to_string();
    let freeze = json!({ "until": until, "reason": "year end" });
    server.post("/freezes", &freeze).expect(201);
    let frozen = get(PATH);
    assert!(has(&frozen, "STATUS:CANCELLED") && !has(&frozen, "STATUS:CONFIRMED"), "{frozen:?}");
    assert!(has(&frozen, "Does not fire because of a freeze: year end"), "{frozen:?}");
    server.get("/next/calendar.ics?within=400d").problem(400, "InvalidInput");
}

#[test]
fn a_calendar_signs_in_with_a_token_as_its_password() {
    let server = Server::start();
    let token = server.token_of("viewer");
    let ask = |path: &str, password: &str| {
        let header = format!("Basic {}", STANDARD.encode(format!("anybody:{password}")));
        server.raw("GET", path, &[("authorization", &header)], b"")
    };
    assert_eq!(ask(PATH, &token).status, 200);
    assert_eq!(ask(PATH, "evb_wrong").status, 401);
    assert_eq!(ask("/api/v1/next", &token).status, 401, "only a feed takes passwords");
    let unknown = server.raw("GET", PATH, &[], b"");
    assert_eq!(unknown.status, 401);
    assert!(unknown.headers["www-authenticate"].contains("Basic realm"), "{unknown:?}");
}
