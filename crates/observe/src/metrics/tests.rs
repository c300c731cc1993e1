//! The page as Prometheus reads it.

mod page;
mod shipped;

use std::sync::Arc;
use std::time::Duration;

use everbell::testing::TestBell;
use everbell::{Builder, Everbell, Overlap, Run, RunError, Schedule};
use everbell_store::memory::FaultPoint;

use self::page::Page;
use super::Metrics;
use crate::timed::Timed;

const START: &str = "2027-01-01T00:30:00Z";

async fn hang(run: Run) {
    run.canceled().await;
}

async fn fail() -> Result<(), RunError> {
    Err(RunError::fail("no", "never"))
}

fn app(metrics: &Metrics) -> Builder {
    let metrics = metrics.clone();
    Everbell::builder()
        .target("nothing", || async {})
        .target("fail", fail)
        .target("hang", hang)
        .observe(move |event| metrics.observe(event))
}

fn hourly(key: &str, target: &str) -> Schedule {
    Schedule::cron(key, "0 * * * *").target(target)
}

async fn page(metrics: &Metrics, test: &TestBell) -> Page {
    Page::parse(&metrics.render(test.bell()).await)
}

#[tokio::test]
async fn an_empty_page_is_valid_and_says_what_runs() {
    let metrics = Metrics::new();
    let test = TestBell::start(Everbell::builder(), START).await;
    let page = page(&metrics, &test).await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(page.value(&format!("everbell_build_info{{version={version},commit=unknown}}")), Some(1.0));
    assert_eq!(page.value("everbell_database_up"), Some(1.0));
    assert_eq!(page.value("everbell_login_failures_total"), Some(0.0), "there from the beginning");
    assert_eq!(page.value("everbell_gap_slots_total{reason=missed}"), Some(0.0));
    assert_eq!(page.value("everbell_claims_total{step=plan,result=failed}"), Some(0.0));
    assert_eq!(page.value("everbell_due_backlog"), Some(0.0));
    assert_eq!(page.value("everbell_oldest_due_age_seconds"), Some(0.0));
}

#[tokio::test]
async fn what_becomes_of_runs_is_counted() {
    let metrics = Metrics::new();
    let good = hourly("good", "nothing");
    let bad = hourly("bad", "fail");
    let slow = hourly("slow", "hang").overlap(Overlap::Skip);
    let mut test = TestBell::start(app(&metrics).schedules([good, bad, slow]), START).await;
    test.jobs().run_now("good").await.unwrap();
    test.advance_to("2027-01-01T02:00:00Z").await;
    test.jobs().pause("good", "maintenance").await.unwrap();
    test.advance_to("2027-01-01T05:30:00Z").await;
    test.jobs().resume("good").await.unwrap();
    let page = page(&metrics, &test).await;
    let runs = |target, status, trigger| {
        page.value(&format!("everbell_runs_total{{target={target},status={status},trigger={trigger}}}"))
    };
    assert_eq!(runs("nothing", "succeeded", "scheduled"), Some(2.0));
    assert_eq!(runs("nothing", "succeeded", "manual"), Some(1.0));
    assert_eq!(runs("fail", "failed", "scheduled"), Some(5.0));
    assert!(runs("hang", "failed", "scheduled") > Some(0.0), "they time out");
    assert_eq!(page.value("everbell_gap_slots_total{reason=paused}"), Some(3.0));
    assert_eq!(page.value("everbell_fire_lag_seconds_count"), Some(2.0 + 5.0 + 5.0), "scheduled ones only");
    assert_eq!(page.value("everbell_run_duration_seconds_count{target=fail,status=failed}"), Some(5.0));
    assert_eq!(page.value("everbell_claimed_total{step=plan}"), Some(12.0));
    assert_eq!(page.value("everbell_claimed_total{step=start}"), Some(13.0));
    assert_eq!(page.value("everbell_jobs{status=active,schedule_type=recurring}"), Some(3.0));
    assert!(page.value("everbell_claims_total{step=plan,result=some}") > Some(0.0));
    let tick = page.samples_of("everbell_scheduler_last_tick_timestamp_seconds");
    let five: jiff::Timestamp = "2027-01-01T05:30:00Z".parse().unwrap();
    #[allow(clippy::cast_precision_loss, reason = "a time of this century")]
    let latest = five.as_second() as f64;
    assert!(tick.len() == 1 && tick[0].1 <= latest && tick[0].1 > latest - 3_700.0, "{tick:?}");
}

#[tokio::test]
async fn skipped_runs_are_counted_under_both_names() {
    let metrics = Metrics::new();
    let slow = Schedule::cron("slow", "*/10 * * * *").target("hang").overlap(Overlap::Skip);
    let mut test = TestBell::start(app(&metrics).schedule(slow), START).await;
    test.advance_to("2027-01-01T00:50:00Z").await;
    test.jobs().run_now("slow").await.unwrap();
    test.jobs().skip_next("slow", 1).await.unwrap();
    let page = page(&metrics, &test).await;
    for name in ["everbell_slots_skipped_total", "everbell_schedules_skipped_total"] {
        assert_eq!(page.value(&format!("{name}{{reason=overlap}}")), Some(2.0), "{name}");
        assert_eq!(page.value(&format!("{name}{{reason=operator}}")), Some(1.0), "{name}");
        assert_eq!(page.value(&format!("{name}{{reason=dependency}}")), Some(0.0), "{name}");
    }
    let skipped = |trigger| format!("everbell_runs_total{{target=hang,status=skipped,trigger={trigger}}}");
    assert_eq!((page.value(&skipped("scheduled")), page.value(&skipped("manual"))), (Some(2.0), Some(1.0)));
    assert_eq!(page.value("everbell_runs_active{target=hang,status=running}"), Some(1.0));
}

#[tokio::test]
async fn without_the_database_what_was_counted_is_still_there() {
    let metrics = Metrics::new();
    let mut test = TestBell::start(app(&metrics).schedule(hourly("good", "nothing")), START).await;
    test.advance_to("2027-01-01T01:00:00Z").await;
    test.fail_next(FaultPoint::Before);
    let away = page(&metrics, &test).await;
    assert_eq!(away.value("everbell_database_up"), Some(0.0));
    assert_eq!(away.value("everbell_runs_total{target=nothing,status=succeeded,trigger=scheduled}"), Some(1.0));
    assert!(away.samples_of("everbell_jobs").is_empty(), "no sample for what is unknown");
    assert_eq!(page(&metrics, &test).await.value("everbell_database_up"), Some(0.0), "asked once a second");
    test.advance_by(Duration::from_secs(1)).await;
    assert_eq!(page(&metrics, &test).await.value("everbell_database_up"), Some(1.0));
}

#[tokio::test]
async fn the_database_is_asked_once_a_second_however_many_ask() {
    let metrics = Metrics::new();
    let mut test = TestBell::start(app(&metrics).schedule(hourly("one", "nothing")), START).await;
    let jobs = "everbell_jobs{status=active,schedule_type=recurring}";
    assert_eq!(page(&metrics, &test).await.value(jobs), Some(1.0));
    test.jobs().create(hourly("two", "nothing")).await.unwrap();
    let (a, b) = tokio::join!(page(&metrics, &test), page(&metrics, &test));
    assert_eq!((a.value(jobs), b.value(jobs)), (Some(1.0), Some(1.0)));
    test.advance_by(Duration::from_secs(1)).await;
    assert_eq!(page(&metrics, &test).await.value(jobs), Some(2.0));
}

#[tokio::test]
async fn instances_are_told_with_their_clocks_and_heartbeats() {
    let metrics = Metrics::new();
    let test = TestBell::start(app(&metrics), START).await;
    let page = page(&metrics, &test).await;
    let [(skewed, skew)] = &page.samples_of("everbell_clock_skew_seconds")[..] else { panic!("one instance") };
    let [(_, age)] = &page.samples_of("everbell_instance_heartbeat_age_seconds")[..] else { panic!("one instance") };
    assert!(skewed.contains("instance=") && skewed.contains("host="), "{skewed}");
    assert_eq!((*skew, *age), (0.0, 0.0));
}

#[tokio::test]
async fn single_jobs_are_told_where_that_is_wanted() {
    let metrics = Metrics::with_jobs();
    let jobs = [hourly("good", "nothing"), hourly("bad", "fail"), hourly("odd \"key\" \\ ü", "nothing")];
    let mut test = TestBell::start(app(&metrics).schedules(jobs), START).await;
    let before = page(&metrics, &test).await;
    assert!(before.samples_of("everbell_job_last_success_timestamp_seconds").is_empty());
    test.advance_to("2027-01-01T02:30:00Z").await;
    let shown = page(&metrics, &test).await;
    let (two, three) = (1_798_768_800.0, 1_798_772_400.0);
    assert_eq!(shown.value("everbell_job_last_success_timestamp_seconds{job_key=good}"), Some(two));
    assert_eq!(shown.value("everbell_job_last_success_timestamp_seconds{job_key=bad}"), None);
    assert_eq!(shown.value("everbell_job_consecutive_failures{job_key=bad}"), Some(2.0));
    assert_eq!(shown.value("everbell_job_next_run_timestamp_seconds{job_key=good}"), Some(three));
    let odd = "everbell_job_consecutive_failures{job_key=odd \"key\" \\ ü}";
    assert_eq!(shown.value(odd), Some(0.0));
    test.jobs().skip_next("good", 1).await.unwrap();
    test.jobs().pause("good", "maintenance").await.unwrap();
    test.advance_to("2027-01-01T03:30:00Z").await;
    let paused = page(&metrics, &test).await;
    assert_eq!(paused.value("everbell_job_last_success_timestamp_seconds{job_key=good}"), Some(two), "remembered");
    assert_eq!(paused.value("everbell_job_next_run_timestamp_seconds{job_key=good}"), None);
    let others = page(&Metrics::new(), &test).await;
    assert!(others.samples_of("everbell_job_consecutive_failures").is_empty(), "not unless it is wanted");
}

#[tokio::test]
async fn no_more_than_a_thousand_jobs_are_told() {
    let metrics = Metrics::with_jobs();
    let jobs = (0..1_010).map(|number| hourly(&format!("job-{number:04}"), "nothing"));
    let test = TestBell::start(app(&metrics).schedules(jobs), START).await;
    let page = page(&metrics, &test).await;
    let told = page.samples_of("everbell_job_consecutive_failures");
    assert_eq!(told.len(), 1_000);
    assert_eq!(page.value("everbell_jobs{status=active,schedule_type=recurring}"), Some(1_010.0));
}

#[tokio::test]
async fn requests_logins_and_answers_of_targets_are_counted() {
    let metrics = Metrics::new();
    metrics.http("GET", "/api/v1/jobs/{job}", 200, 0.003);
    metrics.http("GET", "/api/v1/jobs/{job}", 404, 0.001);
    metrics.http("BREW", "/", 405, 0.001);
    metrics.login_failed();
    for status in [Some(204), Some(503), Some(200), None] {
        metrics.http_target(status);
    }
    let test = TestBell::start(Everbell::builder(), START).await;
    let page = page(&metrics, &test).await;
    let route = "route=/api/v1/jobs/{job}";
    assert_eq!(page.value(&format!("everbell_http_requests_total{{method=GET,{route},status=404}}")), Some(1.0));
    assert_eq!(page.value(&format!("everbell_http_request_duration_seconds_count{{method=GET,{route}}}")), Some(2.0));
    assert_eq!(page.value("everbell_http_requests_total{method=other,route=/,status=405}"), Some(1.0));
    assert_eq!(page.value("everbell_login_failures_total"), Some(1.0));
    let answered = |class| page.value(&format!("everbell_http_target_requests_total{{code_class={class}}}"));
    assert_eq!([answered("2xx"), answered("5xx"), answered("error")], [Some(2.0), Some(1.0), Some(1.0)]);
}

#[tokio::test]
async fn calls_to_the_database_are_timed() {
    let metrics = Metrics::new();
    let store = Arc::new(everbell_store::memory::MemoryStore::new());
    let bell = Everbell::builder().store(Arc::new(Timed::new(store, &metrics))).target("nothing", || async {});
    let bell = bell.schedule(hourly("one", "nothing")).build().await.unwrap();
    let page = Page::parse(&metrics.render(&bell).await);
    let calls = |op| page.value(&format!("everbell_db_operation_duration_seconds_count{{op={op}}}"));
    assert_eq!((calls("create_job"), calls("plan_due")), (Some(1.0), None));
    assert!(calls("now") > Some(0.0), "the clock was anchored");
}
