//! Text that several statements share, in one place: the columns of the views that they return, and the conditions of lists.
//!
//! No statement returns `*`: a newer release may add a column to a table or a view while instances of an older one go on,
//! and what those have prepared must keep its meaning. PostgreSQL refuses a prepared statement whose result has changed
//! on every connection that knows it, and the driver of SQLite goes by the columns that it saw first.
//!
//! `{columns of run_rows as r}` in a statement is the list of the columns of [`RunColumns`](super::RunColumns), each with
//! this alias, and `{columns of job_rows as j}` that of [`JobListColumns`](super::JobListColumns).
//! `{sqlite/parts/filter_jobs.sql as j}` is the text of that file, with `j` in the place of each `{row}`.

/// The columns of [`RunColumns`](super::RunColumns).
const RUN_ROWS: &str = "id job_id job_key job_version org_id local_date target payload trigger by_slot at scheduled_at \
                        created_at status skip_reason skip_detail held catch_up folded attempt runner_id claimed_at \
                        started_at finished_at lease_until cancel_by failure_code failure_message failure_details \
                        next_attempt_at result earlier trace_context";

/// The columns of [`JobListColumns`](super::JobListColumns).
const JOB_ROWS: &str = "id job_key version target payload cron_expression run_at timezone anchor_at start_at end_at dst_gap \
                        dst_fold scope policies labels description source supersedes_job_id created_by created_at status \
                        error pause_reason paused_by paused_at paused_until revision consecutive_failures declaration \
                        updated_by updated_at next_run_at last_slot_at rescheduled_from last_local_date last_run_id \
                        last_run_at next_org_run_at next_org_id trace_context";

/// The word that stands for the alias in the file of a part.
const ROW: &str = "{row}";

/// The statement of a file, with what its placeholders stand for.
macro_rules! filled_sql {
    ($($part:expr),+ $(,)?) => {{
        static SQL: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $crate::rows::placeholders::fill(concat!($($part),+)));
        SQL.as_str()
    }};
}
pub(crate) use filled_sql;

/// Replaces every placeholder. One that cannot be read stays, and the database refuses the statement.
pub(crate) fn fill(sql: &str) -> String {
    let mut filled = String::with_capacity(sql.len() + RUN_ROWS.len() + JOB_ROWS.len());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let placeholder = after.split_once('}').and_then(|(name, after)| Some((text_of(name)?, after)));
        rest = if let Some((text, after)) = placeholder {
            filled.push_str(&text);
            after
        } else {
            filled.push('{');
            after
        };
    }
    filled + rest
}

/// Returns what a placeholder such as `columns of run_rows as r` stands for.
fn text_of(placeholder: &str) -> Option<String> {
    let (name, alias) = placeholder.split_once(" as ")?;
    match name.strip_prefix("columns of ") {
        Some(view) => columns(view, alias),
        None => Some(part(name)?.trim_end().replace(ROW, alias)),
    }
}

fn columns(view: &str, alias: &str) -> Option<String> {
    let columns = match view {
        "run_rows" => RUN_ROWS,
        "job_rows" => JOB_ROWS,
        _ => return None,
    };
    let columns: Vec<String> = columns.split_whitespace().map(|column| format!("{alias}.{column}")).collect();
    Some(columns.join(", "))
}

/// The text of the file of a part.
fn part(file: &str) -> Option<&'static str> {
    Some(match file {
        "postgres/parts/filter_jobs.sql" => include_str!("../postgres/parts/filter_jobs.sql"),
        "postgres/parts/filter_last_runs.sql" => include_str!("../postgres/parts/filter_last_runs.sql"),
        "sqlite/parts/filter_jobs.sql" => include_str!("../sqlite/parts/filter_jobs.sql"),
        "sqlite/parts/filter_last_runs.sql" => include_str!("../sqlite/parts/filter_last_runs.sql"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_columns() {
        let sql = fill("select {columns of run_rows as r}, '{}' from run_rows r where r.labels like '{%'");
        assert!(sql.starts_with("select r.id, r.job_id, r.job_key, "), "{sql}");
        assert!(sql.ends_with(", r.earlier, r.trace_context, '{}' from run_rows r where r.labels like '{%'"), "{sql}");
        let sql = fill("select {columns of job_rows as j} union select {columns of job_rows as k}");
        assert!(sql.contains("j.trace_context union select k.id, "), "{sql}");
    }

    #[test]
    fn placeholders_become_parts_with_their_alias() {
        let sql = fill("where {sqlite/parts/filter_jobs.sql as x} and '{' = y");
        assert!(sql.contains(" x.status in (") && sql.contains("instr(x.labels, '{' || ?11)"), "{sql}");
        assert!(sql.ends_with(" and '{' = y") && !sql.contains(ROW) && !sql.contains("parts/"), "{sql}");
        for database in ["postgres", "sqlite"] {
            let sql = fill(&format!("where {{{database}/parts/filter_last_runs.sql as x}}"));
            assert!(sql.contains("o.run_id = x.last_run_id"), "{sql}");
        }
    }

    #[test]
    fn a_placeholder_that_cannot_be_read_stays() {
        for sql in [
            "select {columns of other as o}",
            "select {columns of run_rows}",
            "select {columns of run_rows as r",
            "select 1 where {sqlite/parts/other.sql as j}",
            "select 1 where {sqlite/parts/filter_jobs.sql}",
        ] {
            assert_eq!(fill(sql), sql);
        }
    }
}
