//! The tables of a database: their columns as both databases know them, and why some of them are not copied.
//!
//! A test compares this list with the schema of both databases, so a table or a column of a new migration cannot be
//! forgotten.

use super::value::Kind;

/// A table that is copied.
#[derive(Debug)]
pub(crate) struct Table {
    /// Without its schema or prefix.
    pub(crate) name: &'static str,
    /// Columns that no two rows share, in the order in which rows are read: a job follows the version that it replaces.
    pub(crate) order_by: &'static [&'static str],
    /// Name and kind of each.
    columns: &'static str,
    /// The condition under which a row is copied although history is limited. `{at}` is the limit, `{id}` the first run id
    /// of that time, `{runs}` a table. Rows of other tables are always copied.
    kept: Option<&'static str>,
    /// Whether a database without jobs has a row here, which the copy replaces.
    pub(crate) is_seeded: bool,
    /// The column whose values the database counts.
    pub(crate) identity: Option<&'static str>,
}

/// A column that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

impl Table {
    /// The columns, in the order in which their values are read and written.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let pairs = self.columns.split(", ").filter_map(|column| column.split_once(' '));
        pairs.map(|(name, kind)| Column { name, kind: Kind::parse(kind) }).collect()
    }

    /// The condition for rows, with the names of tables and the values of a database; none if all rows are copied.
    pub(crate) fn condition(&self, limit: Option<(&str, &str)>, named: impl Fn(&str) -> String) -> Option<String> {
        let ((at, id), kept) = (limit?, self.kept?);
        let mut condition = kept.replace("{at}", at).replace("{id}", id);
        for table in &TABLES {
            condition = condition.replace(&format!("{{{}}}", table.name), &named(table.name));
        }
        Some(condition)
    }
}

/// Tables that stay behind, and why.
pub(crate) const LEFT_OUT: [(&str, &str); 3] = [
    ("instances", "the processes that used the source; those of the target write their own"),
    ("migrations", "the history of each schema; both are at the same version"),
    ("moves", "the mark of a database that was copied elsewhere"),
];

/// Tables that are copied, each after those that it refers to.
pub(crate) const TABLES: [Table; 29] = [
    Table {
        name: "jobs",
        order_by: &["job_key", "version"],
        columns: "after_key text, anchor_at time, consecutive_failures int4, content_hash bytes, created_at time, \
                  created_by text, cron_expression text, declaration text, description text, dst_fold text, \
                  dst_gap text, end_at time, error text, id uuid, job_key text, labels text, \
                  pause_reason text, paused_at time, paused_by text, paused_until time, payload text, \
                  policies text, revision int, run_at time, schedule_type text, scope text, source text, \
                  start_at time, status text, supersedes_job_id uuid, target text, timezone text, \
                  trace_context text, updated_at time, updated_by text, version int4",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "timers",
        order_by: &["job_id", "org_id"],
        columns: "error text, job_id uuid, last_local_date text, last_run_at time, last_run_id uuid, \
                  last_slot_at time, next_run_at time, org_id text, rescheduled_from time, target text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "orgs",
        order_by: &["id"],
        columns: "changed_at time, created_at time, deleted bool, enabled bool, id text, moved_at time, \
                  moved_from text, name text, revision int, settings text, timezone text, updated_at time, \
                  updated_by text, waiting bool",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "org_overrides",
        order_by: &["org_id", "job_key"],
        columns: "cron_expression text, enabled bool, job_key text, org_id text, updated_at time, \
                  updated_by text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "sweeps",
        order_by: &["id"],
        columns: "actor text, at time, detail text, id uuid, job_id uuid, job_key text, reached text, \
                  seen int, stepped_at time, work text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "backfills",
        order_by: &["id"],
        columns: "from_at time, id uuid, is_open bool, job_key text, org_id text, paused_ok bool, progress text, \
                  reason text, requested_at time, requested_by text, revision int, run_trigger text, status text, \
                  to_at time, updated_at time",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "runs",
        order_by: &["id"],
        columns: "at time, catch_up bool, created_at time, folded int, id uuid, job_id uuid, \
                  local_date text, nonce int, org_id text, payload text, scheduled_at time, \
                  skip_detail text, skip_reason text, target text, trace_context text, trigger text",
        kept: Some(
            "id >= {id} or (skip_reason is not null and created_at >= {at}) or id in (select run_id \
             from {active_runs}) or id in (select run_id from {outcomes} where finished_at >= {at} and \
             run_id < {id}) or id in (select last_run_id from {timers} where last_run_id is not null)",
        ),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "active_runs",
        order_by: &["run_id"],
        columns: "attempt int4, available_at time, backfill bool, cancel_by text, claimed_at time, \
                  earlier text, failure_code text, failure_details text, failure_message text, held bool, \
                  job_id uuid, lease_until time, max_concurrent int4, org_id text, output text, paused bool, \
                  priority int4, progress int4, progress_message text, remote_deadline time, remote_lease int, \
                  run_id uuid, runner_id uuid, started_at time, status text, target text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "outcomes",
        order_by: &["run_id"],
        columns: "attempt int4, claimed_at time, earlier text, failure_code text, failure_details text, \
                  failure_message text, finished_at time, output text, result text, run_id uuid, \
                  runner_id uuid, started_at time, status text",
        kept: Some(
            "run_id >= {id} or finished_at >= {at} or run_id in (select last_run_id from {timers} where \
             last_run_id is not null)",
        ),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "gaps",
        order_by: &["id"],
        columns: "actor text, created_at time, first_slot_at time, id uuid, job_id uuid, last_slot_at time, \
                  org_id text, reason text, slots int",
        kept: Some("created_at >= {at}"),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "audit",
        order_by: &["id"],
        columns: "action text, actor text, address text, after text, at time, before text, id uuid, \
                  object text, reason text, request_id text, role text",
        kept: Some("\"at\" >= {at}"),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "calendars",
        order_by: &["name"],
        columns: "applied_version int, content text, created_at time, name text, source text, \
                  updated_at time, updated_by text, version int",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "freezes",
        order_by: &["id"],
        columns: "created_at time, created_by text, ended_at time, ended_by text, ends_at time, id uuid, \
                  reason text, scope text, starts_at time",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "problems",
        order_by: &["id"],
        columns: "closed_at time, id uuid, job_key text, kind text, opened_at time, org_id text, state text",
        kept: Some(
            "closed_at is null or closed_at >= {at} or id in (select problem_id from {deliveries} where \
             problem_id is not null and (ended_at is null or ended_at >= {at}))",
        ),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "deliveries",
        order_by: &["id"],
        columns: "attempt int, available_at time, change text, channel text, created_at time, ended_at time, \
                  error text, id uuid, lease_until time, message text, next_attempt_at time, \
                  problem_id uuid, rule text, status text",
        kept: Some("ended_at is null or ended_at >= {at}"),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "alert_state",
        order_by: &["id"],
        columns: "generation int, id int4, looked_at time",
        kept: None,
        is_seeded: true,
        identity: None,
    },
    Table {
        name: "tokens",
        order_by: &["name"],
        columns: "created_at time, expires_at time, hash bytes, last_used_at time, name text, \
                  revoked_at time, role text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "sessions",
        order_by: &["id"],
        columns: "actor text, address text, created_at time, expires_at time, hash bytes, id uuid, \
                  last_used_at time, role text, token_hash bytes, user_agent text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "requests",
        order_by: &["key"],
        columns: "body text, created_at time, deed text, fingerprint bytes, key text, status int4",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "apps",
        order_by: &["source", "app"],
        columns: "app text, releases text, source text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "inbox",
        order_by: &["id"],
        columns: "answered_at time, cron text, id int, if_unfinished text, job_key text, key text, payload text, \
                  priority int, refusal text, role text_or_empty, run_at time_text, target text, timezone text, traceparent text",
        kept: Some("answered_at is null or answered_at >= {at}"),
        is_seeded: false,
        identity: Some("id"),
    },
    Table {
        name: "targets",
        order_by: &["label"],
        columns: "created_at time, definition text, label text, revision int, updated_at time, updated_by text",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "run_groups",
        order_by: &["job_key", "name"],
        columns: "closed_at time, deadline time, job_key text, name text, opened_at time, runs text, started uuid",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "absences",
        order_by: &["from_at"],
        columns: "from_at time, until_at time",
        kept: Some("until_at >= {at}"),
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "departures",
        order_by: &["id"],
        columns: "heartbeat_at time, id int4",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "run_counters",
        order_by: &["hour", "job_key", "target"],
        columns: "canceled int, delay_longest int, delay_places text, delay_runs int, delay_total int, failed int, \
                  failures text, hour time, job_key text, skipped int, succeeded int, target text, took_longest int, \
                  took_places text, took_runs int, took_total int",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "counted_hours",
        order_by: &["hour"],
        columns: "counted_at time, hour time",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "secrets",
        order_by: &["name"],
        columns: "name text, value bytes",
        kept: None,
        is_seeded: false,
        identity: None,
    },
    Table {
        name: "clock",
        order_by: &["id"],
        columns: "id int4, trusted_at time",
        kept: None,
        is_seeded: true,
        identity: None,
    },
];
