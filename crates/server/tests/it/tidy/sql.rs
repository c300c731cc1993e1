//! The `.sql` files of the store: one statement each, the same list for both databases, and time is an argument.

const POSTGRES: &str = "crates/store/src/postgres/sql/";
const SQLITE: &str = "crates/store/src/sqlite/sql/";
/// The folders of the texts that several statements share.
const POSTGRES_PARTS: &str = "crates/store/src/postgres/parts/";
const SQLITE_PARTS: &str = "crates/store/src/sqlite/parts/";

/// Halves of a statement that PostgreSQL has as one: SQLite knows no `with` that writes, and is told which
/// way to go where PostgreSQL chooses one.
const SPLIT_IN_SQLITE: [&str; 14] = [
    "clear_failures.sql",
    "create_timers.sql",
    "cut_superseded.sql",
    "delete_runs.sql",
    "first_held.sql",
    "held_turns.sql",
    "hold_runs.sql",
    "list_few_jobs_by_next.sql",
    "next_priority.sql",
    "note_departure.sql",
    "other_instances.sql",
    "runs_to_cancel.sql",
    "waiting_runs.sql",
    "work_of_targets.sql",
];

/// Statements that only a server needs: connections of others, rows that its vacuum has not removed yet, floors, and locks.
const ONLY_POSTGRES: [&str; 9] = [
    "connections.sql",
    "count_dead_rows.sql",
    "count_foreign_timers.sql",
    "lock_chains.sql",
    "oldest_pending.sql",
    "oldest_timer.sql",
    "purge_lock_timers.sql",
    "purge_lock_updates.sql",
    "share_job.sql",
];

/// Ways to ask the database for the time or for a time zone, as the words and signs they consist of.
const CLOCKS: [&[&str]; 4] = [&["now", "(", ")"], &["current_timestamp"], &["at", "time", "zone"], &["'", "now", "'"]];

/// Whether a file is a statement of the store.
pub(super) fn is_statement(path: &str) -> bool {
    path.starts_with(POSTGRES) || path.starts_with(SQLITE)
}

/// Statements that only one of the databases has.
pub(super) fn unpaired(paths: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let folders = [(POSTGRES, SQLITE), (POSTGRES_PARTS, SQLITE_PARTS)];
    for (here, there) in folders.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]) {
        for name in paths.iter().filter_map(|path| path.strip_prefix(here)) {
            let twin = format!("{there}{name}");
            let is_half = here == SQLITE && SPLIT_IN_SQLITE.contains(&name);
            let is_alone = here == POSTGRES && ONLY_POSTGRES.contains(&name);
            if !is_half && !is_alone && !paths.contains(&twin.as_str()) {
                complaints.push(format!("{here}{name}:1: the other database lacks this statement: write {twin}"));
            }
        }
    }
    complaints
}

pub(super) fn clocks(path: &str, statement: &str) -> Vec<String> {
    let words = words(statement);
    let found = (0..words.len()).filter_map(|at| {
        let is_here = |clock: &&&[&str]| words[at..].iter().map(|(_, word)| word).take(clock.len()).eq(clock.iter());
        let clock = CLOCKS.iter().find(is_here)?.join(" ");
        let line = words[at].0;
        Some(format!("{path}:{line}: `{clock}`: times are arguments and zones are decided in core, bind a parameter"))
    });
    found.collect()
}

/// Statements that return whatever columns a table or a view has. A newer release may add one, and what instances of an older
/// one have prepared would change its meaning.
pub(super) fn stars(path: &str, statement: &str) -> Vec<String> {
    let words = words(statement);
    let (mut depth, mut returns, mut complaints) = (0_usize, false, Vec::new());
    let mut before = "";
    let writes = ["insert", "update", "delete"].contains(&main_verb(&words));
    for (line, word) in &words {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            // The rows that an `insert` takes from elsewhere are not returned.
            "select" => returns = !writes,
            "returning" => returns = true,
            "from" => returns = false,
            "*" if returns && ["select", "returning", ",", "."].contains(&before) => {
                complaints.push(format!(
                    "{path}:{line}: the statement returns `*`: name the columns, or use `{{columns of … as …}}` (rows/placeholders.rs)"
                ));
            }
            _ => {}
        }
        before = word;
    }
    complaints
}

/// Returns the verb of a statement, after its `with`.
fn main_verb(words: &[(usize, String)]) -> &str {
    let mut depth = 0_usize;
    for (_, word) in words {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "select" | "insert" | "update" | "delete" if depth == 0 => return word,
            _ => {}
        }
    }
    ""
}

/// The lower-case words and the signs of a statement with their lines, without comments.
fn words(statement: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let (mut rest, mut line) = (statement, 1);
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |len| len + 2)
        } else {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let len = word.max(first.len_utf8());
            if !first.is_whitespace() {
                words.push((line, rest[..len].to_lowercase()));
            }
            len
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    words
}

#[test]
fn a_statement_of_one_database_is_found() {
    let said = unpaired(&["crates/store/src/postgres/sql/a.sql", "crates/store/src/sqlite/sql/b.sql"]);
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("crates/store/src/postgres/sql/a.sql:1: "), "{said:?}");
    assert!(said[0].ends_with("write crates/store/src/sqlite/sql/a.sql"), "{said:?}");
    assert!(said[1].ends_with("write crates/store/src/postgres/sql/b.sql"), "{said:?}");
}

#[test]
fn equal_lists_pass() {
    assert!(unpaired(&[]).is_empty());
    let migration = "crates/store/src/postgres/migrations/0001.sql";
    assert!(
        unpaired(&["crates/store/src/postgres/sql/a.sql", "crates/store/src/sqlite/sql/a.sql", migration]).is_empty()
    );
    assert!(unpaired(&["crates/store/src/sqlite/sql/waiting_runs.sql"]).is_empty());
    assert!(!unpaired(&["crates/store/src/postgres/sql/waiting_runs.sql"]).is_empty());
    assert!(!unpaired(&["crates/store/src/sqlite/parts/a.sql"]).is_empty());
}

#[test]
fn clocks_are_found() {
    for statement in [
        "select now()",
        "select NOW ( )",
        "a timestamptz default Current_Timestamp",
        "select a at time zone 'UTC'",
        "select a AT  TIME\n ZONE $1",
        "select datetime('now')",
    ] {
        let said = clocks("a.sql", &format!("-- why\n{statement}"));
        assert_eq!(said.len(), 1, "{statement}: {said:?}");
        assert!(said[0].starts_with("a.sql:2: "), "{said:?}");
    }
}

#[test]
fn statements_that_take_the_time_pass() {
    for statement in [
        "update timers set next_run_at = $1 where next_run_at <= $now -- never now()",
        "/* not current_timestamp,\n nor at time zone */ select 1",
        "select known(), now, current_timestamps, at_time_zone, 'nowhere'",
    ] {
        assert!(clocks("a.sql", statement).is_empty(), "{statement}");
    }
}

#[test]
fn statements_that_return_any_column_are_found() {
    for statement in [
        "select * from everbell.jobs",
        "select j.* from page p join everbell.job_rows j on j.id = p.id",
        "with page as (select id from everbell.jobs) select p.id, j.* from page p join everbell.jobs j",
        "insert into everbell.jobs select 1 returning *",
        "delete from everbell.jobs j using gone g where j.id = g.id returning j.id, g.*",
        "with gone as (select 1) update everbell.jobs set a = 1 returning jobs.*",
    ] {
        let said = stars("a.sql", &format!("-- why\n{statement}"));
        assert_eq!(said.len(), 1, "{statement}: {said:?}");
        assert!(said[0].starts_with("a.sql:2: "), "{said:?}");
    }
}

#[test]
fn statements_that_name_what_they_return_pass() {
    for statement in [
        "select {columns of run_rows as r}, coalesce(a.output, o.output) as output from everbell.run_rows r",
        "select count(*), 2 * 3, a.b * c.d from everbell.jobs",
        "with a as (select * from everbell.jobs) select a.id from a cross join lateral (select * from everbell.runs) r",
        "insert into everbell.orgs (id) select * from unnest($1::text[]) as g (id)",
        "insert into everbell.orgs (id) select * from unnest($1::text[]) returning id",
        "-- select *\nselect id from everbell.jobs",
    ] {
        assert_eq!(stars("a.sql", statement), [""; 0], "{statement}");
    }
}
