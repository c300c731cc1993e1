//! Requests in plain SQL that have a priority, and keep or replace an unfinished job of their key.

use everbell::{Everbell, JobRow, JobStatus};
use everbell_store::testing::{TestDatabase, execute};

use crate::given::{trail, within};
use crate::inbox::{Users, bell, until};

/// The payload, priority, version and status of a job.
async fn facts(bell: &Everbell, key: &str) -> (String, i32, u32, JobStatus) {
    let JobRow { job, .. } = bell.jobs().get(key).await.unwrap();
    let payload = job.definition.payload.as_str().replace(' ', "");
    (payload, job.definition.policies.priority, job.definition.version, job.state.status)
}

async fn priorities_and_choices(url: &str, first: &'static str, rolled_back: &'static str, second: &'static str) {
    let users = Users::default();
    let bell = bell(url, &users).await;
    let steps = async {
        let answered = || until(|| async { bell.store().open_inbox(10, &[]).await.unwrap().is_empty() });
        execute(url, first).await;
        answered().await;
        execute(url, rolled_back).await;
        execute(url, second).await;
        until(|| async { users.sorted().len() >= 3 }).await;
        answered().await;
        assert_eq!(users.sorted(), [3, 4, 5], "each once, and nothing that was kept, refused or rolled back");

        let kept = (r#"{"user":1}"#.to_owned(), 7, 1, JobStatus::Active);
        assert_eq!(facts(&bell, "kept").await, kept, "with nothing of the request that kept it");
        let replaced = bell.jobs().get("replaced").await.unwrap();
        assert_eq!((replaced.version(), replaced.job.definition.policies.priority), (2, -5));
        assert_eq!(facts(&bell, "nightly").await.1, 9, "a schedule has a priority too");

        let refused = bell.jobs().refused_requests(10).await.unwrap();
        let reasons: Vec<&str> = refused.iter().rev().map(|refused| refused.reason.as_str()).collect();
        assert_eq!(reasons.len(), 6, "{reasons:?}");
        assert!(
            reasons[0].contains("ifUnfinished: must be `refuse`, `keep` or `replace`, not `Replace`"),
            "{reasons:?}"
        );
        assert!(reasons[1].contains("policies.priority: must be from -100 to 100, not 101"), "{reasons:?}");
        assert!(reasons[2].contains("policies.priority: must be from -100 to 100, not 4294967297"), "{reasons:?}");
        assert!(reasons[3].contains("ifUnfinished: `keep` needs a key"), "{reasons:?}");
        assert!(reasons[4].contains("`nightly` is recurring"), "{reasons:?}");
        assert!(reasons[5].contains("ifUnfinished: cannot be combined with a cron expression"), "{reasons:?}");

        let trail = trail(&**bell.store()).await;
        let lines = |part: &str| trail.iter().filter(|line| line.starts_with("sql") && line.contains(part)).count();
        assert_eq!(lines("job.replace job:replaced"), 1, "{trail:?}");
        assert_eq!(lines("inbox.keep inbox:"), 1, "{trail:?}");
    };
    within(Box::pin(bell.run_until(steps))).await.unwrap();
}

const FIRST: &str = r#"begin;
select everbell.enqueue('remind', '{"user": 1}', '2199-01-01Z', 'kept', priority => 7);
select everbell.enqueue('remind', '{"user": 2}', '2199-01-01Z', 'replaced');
insert into everbell.inbox (target, payload, key, cron, timezone, priority)
  values ('remind', '{"user": 9}', 'nightly', '0 3 1 1 *', 'Europe/Paris', 9);
commit"#;
const ROLLED_BACK: &str = r#"begin;
select everbell.enqueue('remind', '{"user": 666}', key => 'kept', if_unfinished => 'replace');
rollback"#;
const SECOND: &str = r#"begin;
select everbell.enqueue('remind', '{"user": 666}', key => 'kept', if_unfinished => 'keep', priority => 1);
select everbell.enqueue('remind', '{"user": 3}', key => 'replaced', if_unfinished => 'replace', priority => -5);
select everbell.enqueue('remind', '{"user": 4}', key => 'fresh', if_unfinished => 'replace');
select everbell.enqueue('remind', '{"user": 5}', key => 'new', if_unfinished => 'refuse');
select everbell.enqueue('remind', '{"user": 666}', key => 'kept', if_unfinished => 'Replace');
select everbell.enqueue('remind', '{"user": 666}', priority => 101);
select everbell.enqueue('remind', '{"user": 666}', priority => 4294967297);
select everbell.enqueue('remind', '{"user": 666}', if_unfinished => 'keep');
select everbell.enqueue('remind', '{"user": 666}', key => 'nightly', if_unfinished => 'replace');
insert into everbell.inbox (target, key, cron, if_unfinished) values ('remind', 'other', '0 3 1 1 *', 'keep');
commit"#;

#[tokio::test]
async fn priorities_and_choices_on_postgres() {
    let database = TestDatabase::create().await;
    Box::pin(priorities_and_choices(database.url(), FIRST, ROLLED_BACK, SECOND)).await;
}

const SQLITE_FIRST: &str = r#"begin immediate;
insert into everbell_inbox (target, payload, run_at, key, cron, timezone, priority) values
  ('remind', '{"user":1}', '2199-01-01T00:00:00Z', 'kept', null, null, 7),
  ('remind', '{"user":2}', '2199-01-01T00:00:00Z', 'replaced', null, null, null),
  ('remind', '{"user":9}', null, 'nightly', '0 3 1 1 *', 'Europe/Paris', 9);
commit"#;
const SQLITE_ROLLED_BACK: &str = r#"begin immediate;
insert into everbell_inbox (target, payload, key, if_unfinished) values ('remind', '{"user":666}', 'kept', 'replace');
rollback"#;
const SQLITE_SECOND: &str = r#"begin immediate;
insert into everbell_inbox (target, payload, key, cron, priority, if_unfinished) values
  ('remind', '{"user":666}', 'kept', null, 1, 'keep'),
  ('remind', '{"user":3}', 'replaced', null, -5, 'replace'),
  ('remind', '{"user":4}', 'fresh', null, null, 'replace'),
  ('remind', '{"user":5}', 'new', null, null, 'refuse'),
  ('remind', '{"user":666}', 'kept', null, null, 'Replace'),
  ('remind', '{"user":666}', null, null, 101, null),
  ('remind', '{"user":666}', null, null, 4294967297, null),
  ('remind', '{"user":666}', null, null, null, 'keep'),
  ('remind', '{"user":666}', 'nightly', null, null, 'replace'),
  ('remind', '{"user":9}', 'other', '0 3 1 1 *', null, 'keep');
commit"#;

#[tokio::test]
async fn priorities_and_choices_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("everbell-inbox-choices-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("everbell.db").display());
    Box::pin(priorities_and_choices(&url, SQLITE_FIRST, SQLITE_ROLLED_BACK, SQLITE_SECOND)).await;
    std::fs::remove_dir_all(folder).unwrap();
}
