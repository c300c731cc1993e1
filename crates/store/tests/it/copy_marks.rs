//! The mark of a database that was moved, and what happens if a copy ends in its last step.

use std::time::Duration;

use everbell_store::connect;
use everbell_store::copy::{CopyOptions, reopen};
use everbell_store::testing::{TestDatabase, execute};
use everbell_store::upkeep::inspect;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use super::copy::{JOBS, copied, full, number, refusal, to, url};
use super::sqlite::Folder;
use super::sqlite_world::audit;

/// Whether a statement is refused, with the message of a database that was copied elsewhere.
async fn is_refused(url: &str, sql: &str) -> bool {
    let done = if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.replace("everbell.", "everbell_"))).execute(&mut connection).await.map(drop)
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.map(drop)
    };
    done.is_err_and(|error| error.to_string().contains("this database was copied to"))
}

const ENQUEUE: &str = "insert into everbell.inbox (target) values ('log')";

#[tokio::test]
async fn nobody_writes_into_a_database_that_was_moved() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    copied(&source, database.url(), &to("pg")).await.unwrap();
    assert!(is_refused(&source, ENQUEUE).await);
    // As an instance that was suspended for so long that its lease was over, and goes on behind the move.
    let suspended = connect(database.url()).await.unwrap();
    copied(database.url(), &url(&folder, "back.db"), &to("back")).await.unwrap();
    let error = suspended.append_audit(&audit(1)).await.unwrap_err().to_string();
    assert!(error.contains("this database was copied to `back`, where its jobs go on; use that one, or"), "{error}");
    for sql in [
        ENQUEUE,
        "select everbell.enqueue('log')",
        "update everbell.instances set heartbeat_at = clock_timestamp()",
        "update everbell.timers set next_run_at = clock_timestamp()",
        "update everbell.active_runs set status = 'running'",
        "update everbell.deliveries set attempt = 1",
        "update everbell.jobs set description = 'other'",
        "insert into everbell.runs select * from everbell.runs limit 0",
    ] {
        assert!(is_refused(database.url(), sql).await, "{sql}");
    }
    reopen(database.url()).await.unwrap();
    assert!(!is_refused(database.url(), ENQUEUE).await);
    reopen(&source).await.unwrap();
    assert!(!is_refused(&source, ENQUEUE).await);
}

/// Makes the commit of a copy into this database wait for a lock that the connection holds.
async fn slow_commits(database: &TestDatabase) -> PgConnection {
    let wait = "create function everbell.wait() returns trigger language plpgsql as $$
                  begin perform pg_advisory_lock(4711); return null; end $$;
                create constraint trigger wait after insert on everbell.jobs deferrable initially deferred
                  for each row execute function everbell.wait()";
    execute(database.url(), wait).await;
    let mut holder = PgConnection::connect(database.url()).await.unwrap();
    sqlx::query("select pg_advisory_lock(4711)").execute(&mut holder).await.unwrap();
    holder
}

/// Ends the session whose commit waits.
async fn end_waiting(holder: &mut PgConnection) {
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and wait_event = 'advisory'";
    let waits = async {
        while sqlx::query_scalar::<_, i64>(end).fetch_one(&mut *holder).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waits).await.unwrap();
}

async fn stop_waiting(holder: PgConnection, database: &TestDatabase) {
    holder.close().await.unwrap();
    execute(database.url(), "drop trigger wait on everbell.jobs").await;
}

#[tokio::test]
async fn source_is_free_again_if_the_commit_of_the_target_fails() {
    let (folder, database) = (Folder::new(), TestDatabase::create().await);
    let source = full(&folder).await;
    let mut holder = slow_commits(&database).await;
    let options = to("pg");
    let (done, ()) = tokio::join!(copied(&source, database.url(), &options), end_waiting(&mut holder));
    let error = done.unwrap_err().to_string();
    assert!(error.contains("committing the copy"), "{error}");
    assert_eq!((inspect(&source).await.unwrap().moved, number(database.url(), JOBS).await), (None, 0));
    drop(connect(&source).await.unwrap());
    stop_waiting(holder, &database).await;
    assert!(copied(&source, database.url(), &options).await.unwrap().was_empty);
}

#[tokio::test]
async fn copy_that_was_killed_between_mark_and_commit_sends_nobody_to_an_empty_target() {
    let (folder, database) = (Folder::new(), TestDatabase::create().await);
    let source = full(&folder).await;
    let mut holder = slow_commits(&database).await;
    let (from, target) = (source.clone(), database.url().to_owned());
    let copying = tokio::spawn(async move { copied(&from, &target, &to("pg")).await });
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut holder).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    copying.abort();
    assert!(copying.await.unwrap_err().is_cancelled());
    end_waiting(&mut holder).await;
    stop_waiting(holder, &database).await;
    assert_eq!(number(database.url(), JOBS).await, 0);
    let error = connect(&source).await.unwrap_err().to_string();
    assert!(error.starts_with("database: a copy to `pg` that began at 20"), "{error}");
    assert!(
        error.contains("did not finish: run `everbell db copy` again, or") && !error.contains("continue there"),
        "{error}"
    );
    let error = refusal(&source, &url(&folder, "other.db")).await;
    assert!(error.starts_with("source: a copy of the source to `pg` that began at 20"), "{error}");
    // The name for people does not matter, the database does.
    let again = copied(&source, database.url(), &to("the same")).await.unwrap();
    assert!(again.is_equal() && again.was_empty && again.source_marked, "{again:?}");
    assert!(inspect(&source).await.unwrap().moved.unwrap().is_done);

    // Killed behind the commit: the rows are there, and the mark does not know it.
    execute(&source, "update everbell.moves set state = 'begun'").await;
    let again = copied(&source, database.url(), &to("pg")).await.unwrap();
    assert!(
        again.is_equal() && !again.was_empty && inspect(&source).await.unwrap().moved.unwrap().is_done,
        "{again:?}"
    );
    execute(&source, "update everbell.moves set state = 'begun'").await;
    execute(database.url(), "delete from everbell.gaps").await;
    let error = copied(&source, database.url(), &to("pg")).await.unwrap_err().to_string();
    assert!(error.contains("may have finished here or not") && !error.contains("was copied here"), "{error}");
}

#[tokio::test]
async fn schemas_of_one_server_are_different_databases() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let in_schema = |name: &str| {
        let mark = if database.url().contains('?') { '&' } else { '?' };
        format!("{}{mark}schema={name}", database.url())
    };
    copied(&source, &in_schema("one"), &to("pg")).await.unwrap();
    let error = copied(&source, &in_schema("two"), &to("pg")).await.unwrap_err().to_string();
    assert!(error.starts_with("source: the source was already copied to `pg`"), "{error}");
    let again = copied(&source, &in_schema("one"), &to("pg")).await.unwrap();
    assert!(again.is_equal() && !again.was_empty, "{again:?}");
    let back = copied(&in_schema("one"), &in_schema("two"), &to("pg two")).await.unwrap();
    assert!(back.is_equal() && back.was_empty, "{back:?}");
}

#[tokio::test]
async fn target_is_left_alone_until_the_source_is_known_to_be_good() {
    let (folder, database) = (Folder::new(), TestDatabase::empty().await);
    let source = full(&folder).await;
    let store = connect(&source).await.unwrap();
    let target = url(&folder, "new.db");
    assert!(refusal(&source, &target).await.contains("the source, open"));
    assert!(!folder.path().join("new.db").exists());
    refusal(&source, database.url()).await;
    assert_eq!(inspect(database.url()).await.unwrap().schema_version, 0);
    drop(store);
    // A target that has no jobs but a token is not empty.
    drop(connect(&target).await.unwrap());
    let dry = CopyOptions { dry_run: true, ..to("there") };
    assert!(copied(&source, &target, &dry).await.unwrap().was_empty);
    let token = "insert into everbell.tokens (name, hash, role, created_at) values ('a', x'00', 'admin', 0)";
    execute(&target, token).await;
    assert!(!copied(&source, &target, &dry).await.unwrap().was_empty);
    // One of an older release that is in use is not migrated.
    drop(connect(database.url()).await.unwrap());
    let older = "delete from everbell.migrations where version >= 17;
                 drop table everbell.moves, everbell.absences, everbell.departures, everbell.run_counters, everbell.backfills,
                   everbell.counted_hours, everbell.secrets, everbell.targets, everbell.run_groups;
                 drop index everbell.jobs_ranked, everbell.gaps_first, everbell.audit_backfills, everbell.outcomes_finished, everbell.active_runs_waiting;
                 alter table everbell.jobs drop column after_key;
                 alter table everbell.active_runs drop column remote_lease, drop column remote_deadline, drop column progress,
                   drop column progress_message;
                 drop function everbell.refuse_moved() cascade;
                 drop function everbell.enqueue;
                 create function everbell.enqueue(text, jsonb, timestamptz, text, text) returns bigint language sql return 1;
                 alter table everbell.inbox drop column priority, drop column if_unfinished;
                 alter table everbell.problems drop column org_id;
                 create unique index problems_open on everbell.problems (kind, job_key) where closed_at is null;
                 insert into everbell.instances (id, host, pid, version, roles, targets, started_at, heartbeat_at, draining,
                   clock_skew_ms)
                 values ('0190a0c2-0000-8000-8000-00000000aaab', 'web1', 7, '1', '', '', now(), clock_timestamp(), false, 0)";
    execute(database.url(), older).await;
    let error = refusal(&source, database.url()).await;
    assert!(error.starts_with("target: the target has an older schema (16) and is in use, or was"), "{error}");
    assert_eq!(inspect(database.url()).await.unwrap().schema_version, 16);
    execute(database.url(), "update everbell.instances set heartbeat_at = now() - interval '2 minutes'").await;
    assert!(copied(&source, database.url(), &to("pg")).await.unwrap().was_empty);
}
