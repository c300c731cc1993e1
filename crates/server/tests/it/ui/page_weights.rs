//! How much a page sends when it refreshes itself, with a week of history.

use everbell_store::testing::execute;
use serde_json::json;

use super::refresh::hashes;
use super::visitor::Visitor;
use crate::server::{Server, time};

/// The most bytes of a refresh, compressed.
const MAX_REFRESH_BYTES: usize = 20_000;

/// Pages that send more, with 60 jobs and a week of hourly runs. These only get lower.
const HEAVY: [(&str, usize); 1] = [("/timeline?range=7d", 28_000)];

/// A run of each job for every hour of the last week; jobs of the target `fail` fail, and now and then the others do.
const WEEK: &str = "
insert into everbell.runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
with recursive hours (n) as (select 0 union all select n + 1 from hours where n < 167),
numbered as (select id, target, row_number() over (order by job_key) as number from everbell.jobs where scope = 'global'),
planned as (select id as job_id, target, 1000 * unixepoch('now') - 3600000 * n - 50000 * number - 60000 as ms
            from numbered cross join hours)
select unhex(printf('%012x', ms) || hex(randomblob(10))), job_id, 1000 * ms, 0, 1000 * ms, 1000 * ms, 'schedule:7 * * * *',
       target, 0, 0 from planned;";

/// Ends all runs without an end.
const END: &str = "
insert into everbell.outcomes (run_id, status, attempt, claimed_at, started_at, finished_at, failure_code, failure_message,
  output)
select id, case when bad then 'failed' else 'succeeded' end, 1, at + 12000, at + 15000, at + took, case when bad then 'exit_code' end,
       case when bad then 'The command ended with the exit code 3: connect to smtp:25 timed out' end,
       'read 1,204 rows, wrote 1,198, and left 6 out'
from (select id, at, target = 'fail' or at / 10000000 % 23 = 0 as bad, 1000000 * (1 + at / 10000000 % 40) as took
      from everbell.runs where id not in (select run_id from everbell.outcomes));
update everbell.timers set (last_run_at, last_run_id) =
  (select r.at, r.id from everbell.runs r where r.job_id = everbell.timers.job_id order by r.at desc limit 1)
  where org_id = '';
update everbell.jobs set consecutive_failures = 5 where target = 'fail';";

/// One more run of five jobs.
const MORE: &str = "
insert into everbell.runs (id, job_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
select unhex(printf('%012x', 1000 * unixepoch('now')) || hex(randomblob(10))), id, 1000000 * unixepoch('now'), 1,
       1000000 * unixepoch('now'), 1000000 * unixepoch('now'), 'schedule:7 * * * *', target, 0, 0
from everbell.jobs where scope = 'global' order by job_key limit 5;";

fn execute_all(server: &Server, statements: [&'static str; 2]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for sql in statements {
        runtime.block_on(execute(&server.database_url(), sql));
    }
}

#[test]
fn a_refresh_of_any_page_is_small_after_a_week_of_runs() {
    let server = Server::start();
    for number in 0..60 {
        let (target, minute) = if number % 10 == 3 { ("fail", 11) } else { ("print", number % 60) };
        let team = ["billing", "data", "web"][number % 3];
        let job = json!({
            "target": target, "cronExpression": format!("{minute} * * * *"), "labels": {"team": team},
            "description": "Reads what the shops sold, and writes the invoices of the day",
        });
        server.job(&format!("{team}-report-{number:02}"), &job);
    }
    for number in 0..40 {
        let zone = ["Europe/Paris", "America/New_York", "Asia/Tokyo", "UTC"][number % 4];
        server.put(&format!("/orgs/shop-{number:02}"), &json!({"timezone": zone, "name": "A shop"})).expect(201);
    }
    server.job("brief", &json!({"scope": "per_org", "cronExpression": "0 8 * * mon-fri"}));
    execute_all(&server, [WEEK, END]);
    let failed = server.get("/runs?status=failed&limit=1").expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let ana = Visitor::admin(&server);
    let run = format!("/runs/{failed}");
    // The window around now stands still for some minutes; here for as long as the test takes.
    let newest = time(&server.get("/runs?limit=1").expect(200)["items"][0]["scheduledAt"]);
    let [day, week] = ["24h", "7d"].map(|range| format!("/timeline?range={range}&around={newest}"));
    let pages = [
        "/",
        "/jobs",
        "/jobs/billing-report-03",
        "/jobs/brief",
        "/runs",
        &run,
        &day,
        &week,
        "/cluster",
        "/problems",
        "/targets",
        "/orgs",
    ];
    let seen = pages.map(|path| (path, hashes(&ana.page(path))));
    execute_all(&server, [MORE, END]);
    let mut heavy = Vec::new();
    for (path, have) in &seen {
        let headers = [
            ("x-everbell", "live"),
            ("x-everbell-have", have.as_str()),
            ("accept-encoding", "gzip"),
            ("cookie", &ana.cookies()),
        ];
        let reply = server.raw("GET", path, &headers, b"");
        assert_eq!(reply.status, 200, "{path}");
        let bytes: usize = reply.headers["content-length"].parse().unwrap();
        let is_compressed = reply.headers.get("content-encoding").is_some_and(|word| word == "gzip");
        assert!(bytes < 1_200 || is_compressed, "{path}");
        let most = HEAVY.iter().find(|(heavy, _)| path.starts_with(heavy)).map_or(MAX_REFRESH_BYTES, |(_, most)| *most);
        if bytes >= most {
            heavy.push(format!("{path}: {bytes} bytes, at most {most}"));
        }
    }
    assert!(heavy.is_empty(), "{heavy:#?}");
}
