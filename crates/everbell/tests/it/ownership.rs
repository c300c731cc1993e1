//! Several programs, releases and operators on one database: who decides what a declared job is.

use std::sync::Arc;
use std::time::Duration;

use everbell::clock::{BoxFuture, Clock, ClockStep};
use everbell::core::store::{Store, StoreResult};
use everbell::core::{App, Source};
use everbell::{Builder, Edit, Everbell, JobStatus, Removed, Schedule, StoreError};

use crate::given::{Manual, Stored, at, daily, last_entry, nothing, on_every_store};

fn program(stored: &Stored, clock: &Arc<Manual>, app: &str, keys: &[&str]) -> Builder {
    let builder = at(stored, clock).app(app).removed(Removed::Retire).target("nothing", nothing);
    builder.schedules(keys.iter().map(|key| daily(key)))
}

fn one(stored: &Stored, clock: &Arc<Manual>, schedule: Schedule) -> Builder {
    at(stored, clock).app("billing").removed(Removed::Retire).target("nothing", nothing).schedule(schedule)
}

async fn synced(builder: Builder) -> (Everbell, String) {
    let bell = builder.build().await.unwrap();
    let synced = bell.synced().to_string();
    (bell, synced)
}

fn described(text: &str) -> Edit {
    Edit { description: Some(text.to_owned()), ..Edit::default() }
}

on_every_store!(
    two_programs_leave_each_other_alone,
    a_key_belongs_to_one_program_until_another_adopts_it,
    jobs_without_a_program_are_taken_over_by_the_first_that_declares_them,
    an_edit_survives_restarts_until_the_declaration_changes,
    an_edit_can_be_taken_back,
    old_and_new_instances_do_not_undo_each_others_work,
    a_rollback_wins_when_the_new_instances_are_gone,
);

async fn two_programs_leave_each_other_alone(stored: Stored) {
    let clock = Manual::new("12:00");
    synced(program(&stored, &clock, "billing", &["invoices"])).await;
    let (bell, plan) = synced(program(&stored, &clock, "mail", &["digest"])).await;
    assert_eq!(plan, "+ create       digest v1, next 2026-11-16T09:00:00Z\n1 of 1 jobs change");
    let (_, plan) = synced(program(&stored, &clock, "billing", &["invoices"])).await;
    assert_eq!(plan, "= unchanged    invoices v1, next 2026-11-16T09:00:00Z\n0 of 1 jobs change");

    clock.set("13:00");
    let (_, plan) = synced(program(&stored, &clock, "billing", &[])).await;
    assert_eq!(plan, "- retire       invoices v1, no longer declared\n1 of 1 jobs change");
    let digest = bell.jobs().get("digest").await.unwrap().job;
    assert_eq!(digest.state.status, JobStatus::Active);
    assert_eq!(digest.state.declaration.unwrap().app.as_str(), "mail");
}

async fn a_key_belongs_to_one_program_until_another_adopts_it(stored: Stored) {
    let clock = Manual::new("12:00");
    synced(program(&stored, &clock, "billing", &["a", "b"])).await;
    let error = program(&stored, &clock, "mail", &["a", "c"]).build().await.unwrap_err().to_string();
    assert!(
        error.starts_with("schedule `a` already exists: version 1 is owned by the program `billing`; use another key"),
        "{error}"
    );
    let plan = program(&stored, &clock, "mail", &["a"]).plan().await.unwrap().to_string();
    assert!(plan.starts_with("! conflict     a v1, owned by the program `billing`; allow to adopt it"), "{plan}");
    let config = program(&stored, &clock, "billing", &["a"]).source(Source::Config);
    let error = config.build().await.unwrap_err().to_string();
    assert!(error.contains("owned by the program `billing`"), "{error}");

    let (bell, plan) = synced(program(&stored, &clock, "mail", &["a"]).adopt(true)).await;
    assert_eq!(plan, "~ take over    a v1, declared by billing before\n1 of 1 jobs change");
    assert!(matches!(bell.jobs().get("c").await, Err(StoreError::NotFound { .. })), "all or nothing");
    let error = program(&stored, &clock, "billing", &["a", "b"]).build().await.unwrap_err().to_string();
    assert!(error.contains("owned by the program `mail`"), "{error}");
    assert!(last_entry(&*stored.store).await.starts_with("sync:code job.declare job:a (declared by mail)"));
}

async fn jobs_without_a_program_are_taken_over_by_the_first_that_declares_them(stored: Stored) {
    let clock = Manual::new("12:00");
    let (bell, _) = synced(program(&stored, &clock, "old", &["a", "b", "c"])).await;
    // As a release wrote them that gave programs no name.
    for key in ["a", "b", "c"] {
        let row = bell.jobs().get(key).await.unwrap();
        let forget = |view: &everbell::core::change::JobView| {
            let declaration = view.job.state.declaration.clone().unwrap();
            let mut change = everbell::core::change::record_declaration(view, declaration, "sync:code", clock_now())?;
            change.state.declaration = None;
            Ok(change)
        };
        let entry = everbell::core::store::AuditEntry {
            id: row.job.definition.id.as_uuid(),
            at: clock_now(),
            actor: "sync:code".to_owned(),
            action: "job.declare".to_owned(),
            object: format!("job:{key}"),
            reason: None,
            before: None,
            after: None,
            request: None,
            origin: everbell::core::store::Origin::default(),
        };
        let job = everbell::core::store::JobRef::Id(row.job.definition.id);
        stored.store.change_job(&job, None, &forget, &entry).await.unwrap();
    }
    clock.set("13:00");
    let changed = program(&stored, &clock, "billing", &["a"]).schedule(daily("b").description("new"));
    let (bell, plan) = synced(changed).await;
    let wanted = "\
~ take over    a v1, declared by no program by name before
~ new version  b v1 -> v2 (description, app), next 2026-11-16T09:00:00Z -> 2026-11-16T09:00:00Z
! unowned      c v1, no program declares it by name; retire it manually
2 of 3 jobs change";
    assert_eq!(plan, wanted);
    assert_eq!(bell.jobs().get("c").await.unwrap().job.state.status, JobStatus::Active);
    let error = program(&stored, &clock, "mail", &["a"]).build().await.unwrap_err().to_string();
    assert!(error.contains("owned by the program `billing`"), "{error}");
}

fn clock_now() -> jiff::Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

async fn an_edit_survives_restarts_until_the_declaration_changes(stored: Stored) {
    let clock = Manual::new("12:00");
    let (bell, _) = synced(one(&stored, &clock, daily("a"))).await;
    bell.jobs().by("ana").new_version("a", described("edited")).await.unwrap();
    for time in ["12:10", "13:00"] {
        clock.set(time);
        let (bell, plan) = synced(one(&stored, &clock, daily("a"))).await;
        let wanted = "! edited       a v2 by ana, edited since; the declaration differs (description), next 2026-11-16T09:00:00Z\n\
                      0 of 1 jobs change";
        assert_eq!(plan, wanted);
        let job = bell.jobs().get("a").await.unwrap().job;
        assert_eq!((job.definition.description.as_str(), job.is_edited()), ("edited", true));
    }
    clock.set("14:00");
    let (bell, plan) = synced(one(&stored, &clock, daily("a").payload(1))).await;
    let wanted = "~ new version  a v2 -> v3 (payload, description), next 2026-11-16T09:00:00Z -> 2026-11-16T09:00:00Z, \
                  replaces the edit by ana\n1 of 1 jobs change";
    assert_eq!(plan, wanted);
    assert!(!bell.jobs().get("a").await.unwrap().job.is_edited());

    // The program is changed to what an operator made of the job.
    bell.jobs().by("ana").new_version("a", described("better")).await.unwrap();
    let (bell, plan) = synced(one(&stored, &clock, daily("a").payload(1).description("better"))).await;
    assert_eq!(plan, "~ record       a v4, was edited to what is declared now\n1 of 1 jobs change");
    assert!(!bell.jobs().get("a").await.unwrap().job.is_edited());

    // A job that was edited and then retired stays retired.
    bell.jobs().by("ana").new_version("a", described("worse")).await.unwrap();
    bell.jobs().by("ana").retire("a").await.unwrap();
    let (_, plan) = synced(one(&stored, &clock, daily("a").payload(1).description("better"))).await;
    assert_eq!(plan, "= retired      a v5, by ana\n0 of 1 jobs change");
}

async fn an_edit_can_be_taken_back(stored: Stored) {
    let clock = Manual::new("12:00");
    let (bell, _) = synced(one(&stored, &clock, daily("a").description("declared"))).await;
    let jobs = bell.jobs().by("ana");
    let refused = jobs.restore_declaration("a").await.unwrap_err().to_string();
    assert!(refused.contains("the job is as it was declared"), "{refused}");
    jobs.create(daily("by-hand")).await.unwrap();
    let refused = jobs.restore_declaration("by-hand").await.unwrap_err().to_string();
    assert!(refused.contains("no program and no configuration file declares this job"), "{refused}");

    jobs.new_version("a", described("edited")).await.unwrap();
    jobs.pause("a", "for now").await.unwrap();
    jobs.new_version("a", described("edited again")).await.unwrap();
    let stale = jobs.restore_declaration_if("a", Some(1)).await.unwrap_err();
    assert!(matches!(stale, StoreError::Stale { .. }), "{stale}");
    let changed = jobs.restore_declaration("a").await.unwrap();
    let next = changed.successor.unwrap().job;
    assert_eq!((next.definition.version, next.definition.description.as_str()), (4, "declared"));
    assert_eq!((next.state.status, next.is_edited()), (JobStatus::Paused, false));
    let wanted = r#"ana job.restore_declaration job:a {"description":"edited again","version":3} -> {"description":"declared","version":4}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    clock.set("13:00");
    let (_, plan) = synced(one(&stored, &clock, daily("a").description("declared"))).await;
    assert_eq!(plan, "= unchanged    a v4, paused by ana\n0 of 1 jobs change");
}

async fn old_and_new_instances_do_not_undo_each_others_work(stored: Stored) {
    let clock = Manual::new("12:00");
    let old = || program(&stored, &clock, "billing", &["changed", "dropped"]);
    let new = || {
        let builder = program(&stored, &clock, "billing", &["added"]);
        builder.schedule(daily("changed").description("new"))
    };
    synced(old()).await;
    clock.set("13:00");
    assert_eq!(new().build().await.unwrap().synced().changes(), 3);
    let versions = async || {
        let bell = at(&stored, &clock).build().await.unwrap();
        let mut found = Vec::new();
        for key in ["added", "changed", "dropped"] {
            let job = bell.jobs().get(key).await.unwrap().job;
            found.push((key, job.definition.version, job.state.status));
        }
        found
    };
    let wanted =
        [("added", 1, JobStatus::Active), ("changed", 2, JobStatus::Active), ("dropped", 1, JobStatus::Retired)];
    assert_eq!(versions().await, wanted);
    for _ in 0..3 {
        let (_, plan) = synced(old()).await;
        let lines: Vec<&str> = plan.lines().map(|line| line.split(", a newer").next().unwrap()).collect();
        let held =
            ["! held         added v1", "! held         changed v2", "! held         dropped v1", "0 of 3 jobs change"];
        assert_eq!(lines, held);
        assert_eq!(new().build().await.unwrap().synced().changes(), 0);
    }
    assert_eq!(versions().await, wanted);
}

async fn a_rollback_wins_when_the_new_instances_are_gone(stored: Stored) {
    let clock = Manual::new("12:00");
    let old = || one(&stored, &clock, daily("a").description("old"));
    let new = || one(&stored, &clock, daily("a").description("new"));
    synced(old()).await;
    clock.set("13:00");
    synced(new()).await;
    clock.set("13:01");
    let held = old().plan().await.unwrap();
    assert_eq!(held.held().count(), 1);
    clock.set("13:02");
    let (bell, plan) = synced(old()).await;
    assert!(plan.starts_with("~ new version  a v2 -> v3 (description)"), "{plan}");
    assert_eq!(bell.jobs().get("a").await.unwrap().job.definition.description, "old");
    let (_, plan) = synced(new()).await;
    assert!(plan.starts_with("! held         a v3"), "{plan}");
}

/// A clock whose sleepers wake when the test says so.
#[derive(Debug)]
struct Ticking {
    manual: Arc<Manual>,
    tick: tokio::sync::Notify,
}

impl Clock for Ticking {
    fn now(&self) -> jiff::Timestamp {
        self.manual.now()
    }

    fn monotonic(&self) -> Duration {
        self.manual.monotonic()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.tick.notified())
    }

    fn anchor<'a>(&'a self, store: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>> {
        self.manual.anchor(store)
    }

    fn host_skew(&self) -> jiff::SignedDuration {
        self.manual.host_skew()
    }
}

#[tokio::test]
async fn an_instance_that_was_held_syncs_when_the_newer_release_is_gone_without_a_restart() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    synced(one(&stored, &clock, daily("a").description("old"))).await;
    clock.set("13:00");
    synced(one(&stored, &clock, daily("a").description("new"))).await;
    let ticking = Arc::new(Ticking { manual: Arc::clone(&clock), tick: tokio::sync::Notify::new() });
    let old = one(&stored, &clock, daily("a").description("old")).clock(Arc::clone(&ticking) as Arc<dyn Clock>);
    let bell = old.build().await.unwrap();
    assert_eq!(bell.synced().held().count(), 1);
    let job = async || bell.jobs().get("a").await.unwrap().job.definition;
    assert_eq!(job().await.description, "new");

    let shutdown = async {
        // The newer release is not seen any more. The bound only ends a test that fails.
        clock.set("13:02");
        let restored = async {
            while job().await.description != "old" {
                ticking.tick.notify_waiters();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), restored).await.expect("it is synced again");
        ticking.tick.notify_waiters();
    };
    bell.run_until(shutdown).await.unwrap();
    assert_eq!((job().await.version, job().await.description.as_str()), (3, "old"));
}

/// Repeats until it holds. The bound only ends a test that fails.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect(what);
}

/// When each release was last seen, in the order in which they took over.
async fn seen(bell: &Everbell) -> Vec<jiff::Timestamp> {
    let releases = bell.store().releases(Source::Code, &App::new("billing").unwrap()).await.unwrap();
    releases.all().iter().map(|release| release.seen_at).collect()
}

#[tokio::test]
async fn instances_that_never_stopped_take_over_again_after_a_deploy_that_failed() {
    for (did_run, wanted) in [(true, "old"), (false, "new")] {
        let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
        let ticking = Arc::new(Ticking { manual: Arc::clone(&clock), tick: tokio::sync::Notify::new() });
        let old = one(&stored, &clock, daily("a").description("old")).clock(Arc::clone(&ticking) as Arc<dyn Clock>);
        let old = old.build().await.unwrap();
        clock.set("13:00");
        let (new, _) = synced(one(&stored, &clock, daily("a").description("new"))).await;
        if did_run {
            clock.set("13:01");
            let before = seen(&new).await;
            new.run_until(until("it is seen", async || seen(&new).await != before)).await.unwrap();
        }
        let description = async || old.jobs().get("a").await.unwrap().job.definition.description.clone();
        assert_eq!(description().await, "new");

        clock.set("13:05");
        let shutdown = async {
            let now = clock.now();
            let looked = until("the old release is seen", async || {
                ticking.tick.notify_waiters();
                seen(&old).await.iter().any(|at| *at >= now)
            });
            looked.await;
            if did_run {
                until("it takes over again", async || {
                    ticking.tick.notify_waiters();
                    description().await == "old"
                })
                .await;
            }
            ticking.tick.notify_waiters();
        };
        old.run_until(shutdown).await.unwrap();
        assert_eq!(description().await, wanted, "did the new release run: {did_run}");
    }
}

#[tokio::test]
async fn the_name_of_a_program_is_checked() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    for (name, wanted) in [
        ("", "app ``: must be 1 to 200 bytes long, not 0"),
        (" billing", "app ` billing`: must not begin or end with white space"),
        ("bil\u{200b}ling", "app `bil\\u{200b}ling`: must not contain \\u{200b}"),
    ] {
        let error = at(&stored, &clock).app(name).build().await.unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}
