//! After an outage: what was missed, what catch-up did, and how to run the rest.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use everbell_store::testing::execute;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cli::{everbell, json as printed, on_terminal};
use crate::server::{Folder, Server, TARGETS, time};
use crate::ui::visitor::{Visitor, assert_has, part};
use crate::wrong_clock;

/// Every ten seconds.
const DENSE: &str = "*/10 * * * * *";

/// Jobs with each way to catch up, and some that an outage costs nothing.
fn prepare(server: &Server) {
    let dense = |more: Value| {
        let mut body = json!({ "cronExpression": DENSE });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    server.job("sync", &dense(json!({ "policies": { "catchUp": "once" }, "labels": { "team": "data" } })));
    server.job("reminder", &dense(json!({ "policies": { "catchUp": "none" }, "labels": { "team": "ops" } })));
    server.job("each", &dense(json!({ "policies": { "catchUp": "all" } })));
    server.job("yearly", &json!({ "cronExpression": "0 0 1 1 *" }));
    server.job("paused", &dense(json!({})));
    server.post("/jobs/key:paused/pause", &json!({ "reason": "a test" })).expect(200);
    server.job("frozen", &dense(json!({ "labels": { "env": "stage" } })));
    let tomorrow = everbell_cli::clock::wall() + SignedDuration::from_hours(24);
    let freeze = json!({ "until": tomorrow.to_string(), "reason": "a frozen stage", "label": "env=stage" });
    server.post("/freezes", &freeze).expect(201);
    // A job that is too slow for its schedule skips slots, which is no outage.
    server.job("slow", &json!({ "cronExpression": "* * * * * *", "target": "sleep", "policies": { "timeout": "1h" } }));
    server.until("/runs?jobKey=slow&status=skipped", |page| !page["items"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/outages?empty=true").expect(200)["items"], json!([]), "somebody was there");
    server.post("/jobs/key:slow/pause", &json!({ "reason": "it was slow enough" })).expect(200);
    server.until("/runs?jobKey=sync&status=succeeded", |page| !page["items"].as_array().unwrap().is_empty());
}

fn job_of<'a>(outage: &'a Value, key: &str) -> &'a Value {
    let items = outage["items"].as_array().unwrap();
    items.iter().find(|job| job["jobKey"] == key).unwrap_or_else(|| panic!("no {key}: {outage:#}"))
}

fn count(document: &Value, member: &str) -> u64 {
    document[member].as_u64().unwrap_or_else(|| panic!("no {member}: {document:#}"))
}

/// All items of a list, in pages of this size.
fn pages(server: &Server, path: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}&limit={limit}{cursor}")).expect(200);
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// The report of the server that came after an outage of two minutes.
fn report(server: &Server) -> Value {
    let all_ran = |page: &Value| page["items"].as_array().unwrap().len() >= 11;
    server.until("/runs?jobKey=each&status=succeeded,skipped&limit=200", all_ran);
    let list = server
        .until("/outages", |list| list["items"].as_array().unwrap().first().is_some_and(|outage| outage["jobs"] == 3));
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list:#}");
    let outage = list["items"][0].clone();
    let length = time(&outage["until"]).duration_since(time(&outage["from"]));
    assert!((110..200).contains(&length.as_secs()), "{length:?}");

    let (sync, reminder, each) = (job_of(&outage, "sync"), job_of(&outage, "reminder"), job_of(&outage, "each"));
    for job in [sync, reminder, each] {
        assert!((10..=20).contains(&count(job, "slots")), "{job:#}");
        assert!(time(&job["firstSlotAt"]) > time(&outage["from"]) - SignedDuration::from_secs(6), "{job:#}");
    }
    assert!(count(sync, "coalesced") >= 9 && count(sync, "missed") == 0, "{sync:#}");
    assert!(count(reminder, "missed") >= 9 && count(reminder, "coalesced") == 0, "{reminder:#}");
    assert_eq!((count(each, "missed"), count(each, "coalesced")), (0, 0), "{each:#}");
    assert_eq!(count(each, "ran") + count(each, "skipped"), count(each, "slots"), "{each:#}");
    let labeled = server.get("/outages?label=team%3Ddata").expect(200);
    assert_eq!((&labeled["items"][0]["jobs"], &labeled["items"][0]["items"][0]["jobKey"]), (&json!(1), &json!("sync")));
    assert_eq!(server.get("/outages?label=team%3Dnone").expect(200)["items"], json!([]));
    // A list of gaps names the run that covers coalesced slots, as an explanation does.
    for path in ["/gaps?jobKey=sync&reason=coalesced&from=", "/jobs/key:sync/gaps?reason=coalesced&from="] {
        let gaps = server.get(&format!("{path}{}", part(outage["from"].as_str().unwrap()))).expect(200);
        let gap = &gaps["items"][0];
        let run = server.get(&format!("/runs/{}", gap["runId"].as_str().unwrap_or("none"))).expect(200);
        assert!(count(&run, "foldedSlots") >= count(gap, "slots"), "{gap:#}: {run:#}");
    }
    let caught_up = |job: &Value| job["caughtUp"].as_bool().unwrap();
    // Slots within the grace are skipped while late runs are at work.
    let all_ran = count(each, "skipped") == 0;
    assert_eq!([sync, reminder, each].map(caught_up), [true, false, all_ran]);
    let jobs = if all_ran { 2 } else { 1 };
    assert_eq!((count(&outage, "jobsCaughtUp"), &outage["items"][0]["jobKey"]), (jobs, &json!("reminder")));
    let sum = [sync, reminder, each].iter().map(|job| count(job, "slots")).sum::<u64>();
    assert_eq!(count(&outage, "slots"), sum);
    outage
}

/// The gaps of all jobs say the same.
fn gaps(server: &Server, outage: &Value) {
    let slots = |gaps: &[Value]| gaps.iter().map(|gap| count(gap, "slots")).sum::<u64>();
    let missed = pages(server, "/gaps?reason=missed", 200);
    assert_eq!(slots(&missed), count(outage, "missed"), "{missed:#?}");
    assert!(missed.iter().all(|gap| gap["jobKey"] == "reminder"), "{missed:#?}");
    let all = pages(server, "/gaps?reason=coalesced", 200);
    assert!(slots(&all) >= count(outage, "coalesced") && all.iter().any(|gap| gap["jobKey"] == "sync"), "{all:#?}");
    let everything = pages(server, "/gaps?to=2099-01-01T00:00:00Z", 200);
    assert_eq!(pages(server, "/gaps?to=2099-01-01T00:00:00Z", 1), everything, "page by page");
    let labeled = pages(server, "/gaps?label=team%3Dops", 200);
    assert_eq!((slots(&labeled), labeled.len()), (slots(&missed), missed.len()));
    assert_eq!(pages(server, "/gaps?label=team&reason=missed", 200).len(), missed.len());
    assert_eq!(pages(server, "/gaps?label=nobody", 200).len(), 0);
    assert_eq!(pages(server, "/gaps?jobKey=reminder", 200), labeled);
    let from = outage["until"].as_str().unwrap().replace('+', "%2B");
    assert_eq!(pages(server, &format!("/gaps?reason=missed&from={from}"), 200).len(), 0, "it is over");
    server.get("/gaps?reason=nothing").problem(400, "InvalidInput");
    let stats = server.get("/stats?window=PT1H").expect(200);
    assert_eq!((count(&stats["gapSlots"], "missed"), count(&stats, "outages")), (count(outage, "missed"), 1));
    assert!(count(&stats["byStatus"], "succeeded") > 0 && count(&stats, "lateStarts") > 0, "{stats:#}");
    server.get("/stats?window=P40D").problem(400, "InvalidInput");
}

/// The command line shows the same, with the way to run what was missed.
fn command_line(server: &Server, outage: &Value) {
    assert_eq!(printed(server, &["outages"])["items"][0], *outage);
    let shown = on_terminal(server, 120, &["outages"]);
    assert!(shown.stdout.starts_with("FROM") && shown.stdout.lines().count() == 2, "{}", shown.stdout);
    let backfill = format!(
        "everbell jobs backfill reminder --from {} --to {}",
        job_of(outage, "reminder")["firstSlotAt"].as_str().unwrap(),
        job_of(outage, "reminder")["lastSlotAt"].as_str().unwrap()
    );
    let caught_up = format!("{} of 3 jobs caught up", count(outage, "jobsCaughtUp"));
    assert!(shown.stderr.contains(&caught_up) && shown.stderr.contains(&backfill), "{}", shown.stderr);
    let jobs = everbell(server, &["outages", "--jobs"]).stdout;
    assert_eq!(jobs.lines().count(), 3, "{jobs}");
    assert_eq!(printed(server, &["outages", "--from", "2099-01-01"])["items"], json!([]));
    let gaps = everbell(server, &["gaps", "--label", "team=ops", "--reason", "missed"]).stdout;
    assert!(gaps.lines().all(|line| line.starts_with("reminder\t")) && !gaps.is_empty(), "{gaps}");
    let cut = everbell(server, &["gaps", "-n", "1"]);
    assert_eq!((cut.stdout.lines().count(), cut.stderr.as_str()), (1, "1 shown; raise --limit to see more\n"));
}

/// The pages show it too.
fn pages_of(server: &Server, outage: &Value) {
    let ana = Visitor::new(server, &server.token);
    let overview = ana.page("/");
    let slots = count(outage, "slots");
    assert_has(
        &overview,
        &[
            "Nothing ran from",
            &format!("3 jobs missed {slots} slots; {} caught up.", count(outage, "jobsCaughtUp")),
            "/jobs/reminder/backfill?from=",
        ],
    );
    assert!(!overview.contains("/jobs/sync/backfill?from="), "it caught up");
    assert_has(&ana.page("/timeline?range=1h"), &["c-outage", "c-gap", "Nothing ran,"]);
    let from = job_of(outage, "reminder")["firstSlotAt"].as_str().unwrap();
    let form = ana.page(&format!("/jobs/reminder/backfill?from={from}&to={from}"));
    let local = from.trim_end_matches('Z');
    assert_has(&form, &[&format!("value=\"{}\"", local.strip_suffix(":00").unwrap_or(local))]);
}

/// Runs the missed slots, and expects the report to say so.
fn backfill(server: &Server, outage: &Value) {
    let reminder = job_of(outage, "reminder");
    let range = json!({ "from": reminder["firstSlotAt"], "to": reminder["lastSlotAt"], "reason": "the outage" });
    let begun = server.post("/jobs/key:reminder/backfills", &range).expect(202);
    let done = server.until("/backfills", |list| list["items"][0]["status"] == "done");
    let report = &done["items"][0];
    assert_eq!((&report["jobKey"], &report["id"]), (&json!("reminder"), &begun["id"]));
    assert_eq!(count(report, "succeeded"), count(reminder, "missed"));
    let list = server.get("/outages").expect(200);
    let reminder = job_of(&list["items"][0], "reminder");
    assert_eq!((count(reminder, "backfilled"), &reminder["caughtUp"]), (count(reminder, "missed"), &json!(true)));
    let caught_up = count(outage, "jobsCaughtUp") + 1;
    assert_eq!((count(&list["items"][0], "jobsCaughtUp"), &reminder["canBackfill"]), (caught_up, &json!(false)));
    assert_eq!(list["items"][0]["slots"], outage["slots"], "a backfill adds none");
}

#[test]
fn an_outage_is_reported_with_what_it_cost() {
    let server = wrong_clock::start(Folder::new(), "+0").registered();
    prepare(&server);
    let server = wrong_clock::restart(server, "+125");
    let outage = report(&server);
    gaps(&server, &outage);
    command_line(&server, &outage);
    pages_of(&server, &outage);
    backfill(&server, &outage);
}

/// Moves everything that says when two minutes into the past, as if the server had been down for so long.
const TWO_MINUTES_AGO: &str = "
    update everbell.timers set next_run_at = next_run_at - interval '125 s', last_slot_at = last_slot_at - interval '125 s';
    update everbell.instances set heartbeat_at = heartbeat_at - interval '125 s', lease_until = lease_until - interval '125 s';
    update everbell.freezes set starts_at = starts_at - interval '125 s';
    delete from everbell.runs;
    delete from everbell.outcomes;
    delete from everbell.active_runs;
    delete from everbell.gaps;";

#[test]
fn an_outage_is_reported_on_postgres() {
    let server = Server::postgres(TARGETS).registered();
    prepare(&server);
    let server = server.restarted(|url| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute(url, TWO_MINUTES_AGO));
    });
    let outage = report(&server);
    gaps(&server, &outage);
    command_line(&server, &outage);
    backfill(&server, &outage);
}

#[test]
fn a_stop_in_good_order_is_an_outage_too_if_it_lasts() {
    let server = wrong_clock::start(Folder::new(), "+0").registered();
    server.job("sync", &json!({ "cronExpression": DENSE }));
    let mut server = server;
    assert!(std::process::Command::new("kill").arg(server.pid().to_string()).status().unwrap().success());
    server.ended();
    // One that was quick costs nothing.
    let mut server = wrong_clock::restart(server, "+3").registered();
    assert_eq!(server.get("/outages?empty=true").expect(200)["items"], json!([]));
    assert!(std::process::Command::new("kill").arg(server.pid().to_string()).status().unwrap().success());
    server.ended();
    let server = wrong_clock::restart(server, "+90").registered();
    let list = server.until("/outages", |list| !list["items"].as_array().unwrap().is_empty());
    assert_eq!((&list["items"][0]["jobs"], &list["items"][0]["items"][0]["jobKey"]), (&json!(1), &json!("sync")));
}

/// The next fires of all jobs.
fn next(server: &Server) {
    let at = |cron: &str, more: Value| {
        let mut body = json!({ "cronExpression": cron, "startAt": "2099-01-01T00:00:00Z" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    server.job("hourly", &at("0 * * * *", json!({ "labels": { "team": "ops" } })));
    server.job("daily", &at("0 8 * * *", json!({ "timezone": "Europe/Paris" })));
    let day = json!({ "from": "2099-01-01T10:00:00Z", "until": "2099-01-01T11:30:00Z", "reason": "a release", "label": "team=ops" });
    server.post("/freezes", &day).expect(201);
    let items = |path: &str| server.get(path).expect(200)["items"].as_array().unwrap().clone();
    let shown = |item: &Value| {
        let frozen = item["frozen"].as_str().map_or_else(String::new, |reason| format!(" {reason}"));
        format!("{} {}{frozen}", &item["at"].as_str().unwrap()[11..16], item["jobKey"].as_str().unwrap())
    };
    let all = items("/next?from=2099-01-01T06:30:00Z&within=PT5H");
    assert_eq!(
        all.iter().map(shown).collect::<Vec<_>>(),
        [
            "07:00 daily",
            "07:00 hourly",
            "08:00 hourly",
            "09:00 hourly",
            "10:00 hourly a release",
            "11:00 hourly a release"
        ]
    );
    assert_eq!(all[0]["local"], "2099-01-01T08:00:00+01:00[Europe/Paris]");
    assert_eq!(all[4]["frozenUntil"], "2099-01-01T11:30:00Z");
    let ops = items("/next?label=team%3Dops&limit=3&to=2099-01-01T09:00:00Z&from=2099-01-01T00:00:00Z");
    assert_eq!(ops.iter().map(shown).collect::<Vec<_>>(), ["00:00 hourly", "01:00 hourly", "02:00 hourly"]);
    let cut = server.get("/next?limit=2").expect(200);
    assert_eq!(
        (cut["items"].as_array().unwrap().len(), &cut["more"], &cut["complete"]),
        (2, &json!(true), &json!(true))
    );
    server.get("/next?within=PT1H&to=2099-01-01T09:00:00Z").problem(400, "InvalidInput");
    // One job at a time, freezes are marked as well.
    let own = items("/jobs/key:hourly/next?from=2099-01-01T10:00:00Z&count=3");
    assert_eq!(
        own.iter().map(|fire| fire["frozen"].clone()).collect::<Vec<_>>(),
        [json!("a release"), json!("a release"), json!(null)]
    );
    next_of_one_job(server);
    // Orgs that fire at the same time are one item.
    server.job("per-org", &json!({ "cronExpression": "0 8 * * *", "scope": "per_org" }));
    for org in ["acme", "beta"] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": "Asia/Tokyo" })).expect(201);
    }
    let found = server.until("/next?limit=1", |list| list["items"][0]["orgs"] == 2);
    assert_eq!((&found["items"][0]["jobKey"], &found["items"][0]["orgId"]), (&json!("per-org"), &json!("acme")));
    let piped = everbell(server, &["next", "--from", "2099-01-01", "--within", "1d", "-n", "3"]);
    assert_eq!(
        (piped.stdout.lines().count(), piped.stderr.as_str()),
        (3, "3 shown; raise --limit to see more within 1d\n")
    );
    let frozen = everbell(server, &["next", "--from", "2099-01-01T10:00:00Z", "--within", "1h"]).stdout;
    assert!(frozen.contains(": a release") && frozen.contains("frozen until "), "{frozen}");
}

/// Where one next run is shown, or a schedule alone, the freeze stands beside it.
fn next_of_one_job(server: &Server) {
    let blocked =
        json!({ "cronExpression": "0 * * * *", "startAt": "2099-01-01T10:00:00Z", "labels": { "team": "ops" } });
    let created = server.job("blocked", &blocked);
    let listed = server.get("/jobs?jobKey=blocked").expect(200)["items"][0].clone();
    for job in [created, server.get("/jobs/key:blocked").expect(200), listed] {
        assert_eq!(job["nextRunAt"], "2099-01-01T10:00:00Z", "the slot is not left out: {job}");
        assert_eq!(
            (&job["nextRunFrozen"], &job["nextRunFrozenUntil"]),
            (&json!("a release"), &json!("2099-01-01T11:30:00Z"))
        );
    }
    let daily = server.get("/jobs/key:daily").expect(200);
    assert!(daily["nextRunFrozen"].is_null() && daily["nextRunFrozenUntil"].is_null(), "{daily}");
    let shown = everbell(server, &["jobs", "show", "blocked", "--tz", "UTC"]).stdout;
    assert!(shown.contains("; frozen until Thu 2099-01-01 11:30 UTC"), "{shown}");
    let ana = Visitor::admin(server);
    assert_has(&ana.page("/jobs?q=blocked"), &["frozen<", "until 2099-01-01 11:30 UTC: a release"]);
    assert_has(&ana.page("/jobs/blocked"), &["until 2099-01-01 11:30 UTC: a release", "then <b>", "2099-01-01 12:00"]);
    assert_has(&ana.page("/jobs/blocked/new-version"), &["frozen until 2099-01-01 11:30 UTC: a release"]);
    // A schedule alone has no labels: it is frozen with all jobs.
    let until =
        json!({ "from": "2099-02-01T00:00:00Z", "until": "2099-02-01T00:30:00Z", "reason": "everything stops" });
    server.post("/freezes", &until).expect(201);
    let schedule = json!({ "cronExpression": "0 * * * *", "from": "2099-01-31T23:30:00Z", "count": 2 });
    let preview = server.post("/cron/preview", &schedule).expect(200);
    assert_eq!(
        (&preview["next"][0]["frozen"], &preview["next"][0]["frozenUntil"], &preview["next"][1]["frozen"]),
        (&json!("everything stops"), &json!("2099-02-01T00:30:00Z"), &json!(null))
    );
}

#[test]
fn next_fires_of_all_jobs_know_freezes_and_orgs() {
    next(&Server::start());
    next(&Server::postgres(TARGETS).registered());
}

/// Jobs and runs that are selected by a label.
fn labeled(server: &Server) {
    for (key, team) in [("a", "ops"), ("b", "ops"), ("c", "data")] {
        server.job(key, &json!({ "cronExpression": "0 0 1 1 *", "target": "fail", "labels": { "team": team } }));
    }
    let ran = printed(server, &["jobs", "run", "--label", "team=ops"]);
    assert_eq!((&ran["changed"], &ran["action"]), (&json!(2), &json!("run_now")), "{ran:#}");
    assert!(ran["items"][0]["runId"].is_string(), "{ran:#}");
    let failed = |page: &Value| page["items"].as_array().unwrap().len() == 2;
    server.until("/runs?label=team%3Dops&status=failed", failed);
    assert_eq!(printed(server, &["runs", "list", "--label", "team=data"])["items"], json!([]));

    // All runs that failed, again.
    let dry = server.post("/runs/rerun", &json!({ "filter": { "label": "team" }, "dryRun": true })).expect(200);
    assert_eq!((&dry["matched"], &dry["started"], &dry["dryRun"]), (&json!(2), &json!(2), &json!(true)));
    assert_eq!(dry["items"][0]["outcome"], "would_start");
    let after = json!({ "filter": { "label": "team", "triggerType": "after" }, "dryRun": true });
    assert_eq!(server.post("/runs/rerun", &after).expect(200)["matched"], 0);
    let none = printed(server, &["runs", "rerun", "--label", "team=data", "--dry-run"]);
    assert_eq!(none["matched"], 0);
    let asked = everbell(server, &["runs", "rerun", "--status", "failed"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("Run 2 runs again?"), "{}", asked.stderr);
    let done = printed(server, &["runs", "rerun", "--status", "failed", "--label", "team=ops", "--yes"]);
    assert_eq!((&done["started"], &done["items"][0]["outcome"]), (&json!(2), &json!("started")), "{done:#}");
    server.until("/runs?label=team%3Dops&status=failed", |page| page["items"].as_array().unwrap().len() == 4);
    let refused = server.post("/runs/rerun", &json!({ "filter": {} })).problem(400, "InvalidInput");
    assert!(refused.to_string().contains("at least one member"), "{refused}");
    for empty in [json!({ "label": null }), json!({ "status": [] })] {
        server.post("/runs/rerun", &json!({ "filter": empty })).problem(400, "InvalidInput");
    }
    server.post("/runs/rerun", &json!({ "filter": { "status": ["running"] } })).problem(400, "InvalidInput");

    let skipped = printed(server, &["jobs", "skip", "--label", "team=ops", "--count", "2"]);
    assert_eq!(skipped["changed"], 2, "{skipped:#}");
    let retired = everbell(server, &["jobs", "retire", "--label", "team=ops"]);
    assert!(retired.stderr.contains("Retire 2 jobs with the label team=ops"), "{}", retired.stderr);
    let operator = server.token_of("operator");
    let headers = [("authorization", format!("Bearer {operator}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let body = json!({ "action": "retire", "filter": { "label": "team" } }).to_string();
    assert_eq!(server.raw("POST", "/api/v1/jobs/bulk", &headers, body.as_bytes()).status, 403);
    let retired = printed(server, &["jobs", "retire", "--label", "team=ops", "--yes"]);
    assert_eq!(retired["changed"], 2, "{retired:#}");
    assert_eq!(server.get("/jobs?label=team").expect(200)["items"].as_array().unwrap().len(), 1);
}

#[test]
fn labels_select_jobs_and_runs() {
    labeled(&Server::start());
    labeled(&Server::postgres(TARGETS).registered());
}
