//! The tables to choose from, as SQLite knows them. Times are microseconds, ids are 16 bytes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One table; starting and finishing are updates.
    A,
    /// Three tables with the proposed indexes.
    B,
    /// Three tables with the lean indexes.
    Lean,
    /// The same, stored in the order of the primary key.
    Clustered,
}

impl Layout {
    pub(super) const ALL: [Layout; 4] = [Layout::A, Layout::B, Layout::Lean, Layout::Clustered];

    pub(super) fn name(self) -> &'static str {
        match self {
            Layout::A => "A one table",
            Layout::B => "B three tables",
            Layout::Lean => "B + lean indexes",
            Layout::Clustered => "B + lean, without rowid",
        }
    }

    pub(super) fn tables(self) -> String {
        let tables = match self {
            Layout::A => [TIMERS, ONE_TABLE, A_INDEXES].concat(),
            Layout::B => [TIMERS, THREE_TABLES, PROPOSED_INDEXES].concat(),
            Layout::Lean | Layout::Clustered => [TIMERS, THREE_TABLES, LEAN_INDEXES].concat(),
        };
        tables.replace("/*rowid*/", if self == Layout::Clustered { "without rowid" } else { "" })
    }

    pub(super) fn due(self) -> &'static str {
        if self == Layout::A { A_DUE } else { B_DUE }
    }

    pub(super) fn claim(self) -> &'static [&'static str] {
        if self == Layout::A { &[A_INSERT, ADVANCE] } else { &[B_INSERT, B_INSERT_ACTIVE, ADVANCE] }
    }

    pub(super) fn start(self) -> &'static str {
        if self == Layout::A { A_START } else { B_START }
    }

    pub(super) fn finish(self) -> &'static [&'static str] {
        if self == Layout::A { &[A_FINISH] } else { &[B_FINISH, B_FINISH_ACTIVE] }
    }
}

const TIMERS: &str = "
create table timers (job_id blob, org_id text, next_run_at integer, last_slot_at integer, rescheduled_from integer,
  primary key (job_id, org_id)) without rowid;
create index timers_due on timers (next_run_at);
create table seed (n integer primary key, job_id blob, org_id text);
";

const ONE_TABLE: &str = "
create table runs (id blob primary key, job_id blob, org_id text, slot_at integer, scheduled_at integer not null,
  created_at integer not null, trigger text not null, target text not null, payload text, skip_reason text, blocking_run_id blob,
  catch_up integer not null, folded integer not null, local_date text, status integer not null, held integer not null,
  attempt integer not null, available_at integer not null, runner blob, lease_until integer, started_at integer, claimed_at integer,
  cancel_requested integer not null default 0, finished_at integer, failure_code text, failure_message text, failure_details text,
  result text, output text);
";

const A_INDEXES: &str = "
create unique index runs_slot on runs (job_id, org_id, slot_at);
create index runs_scheduled on runs (scheduled_at, id);
create index runs_active on runs (job_id, org_id) where status < 2;
create index runs_pending on runs (target, available_at) where status = 0;
create index runs_not_succeeded on runs (id) where status > 2;
";

const THREE_TABLES: &str = "
create table runs (id blob primary key, job_id blob, org_id text, slot_at integer, scheduled_at integer not null,
  created_at integer not null, trigger text not null, target text not null, payload text, skip_reason text, blocking_run_id blob,
  catch_up integer not null, folded integer not null, local_date text) /*rowid*/;
create table active_runs (run_id blob primary key, job_id blob, org_id text, target text not null, status integer not null,
  held integer not null, attempt integer not null, available_at integer not null, runner blob, lease_until integer,
  started_at integer, claimed_at integer, cancel_requested integer not null default 0, scheduled_at integer not null) /*rowid*/;
create table outcomes (run_id blob primary key, status integer not null, attempt integer not null, claimed_by blob,
  claimed_at integer, started_at integer, finished_at integer not null, failure_code text, failure_message text,
  failure_details text, result text, output text) /*rowid*/;
";

const PROPOSED_INDEXES: &str = "
create unique index runs_slot on runs (job_id, org_id, slot_at);
create index runs_scheduled on runs (scheduled_at, id);
create index active_runs_job on active_runs (job_id, org_id);
create index active_runs_target on active_runs (target, available_at);
create index outcomes_not_succeeded on outcomes (run_id) where status > 2;
";

const LEAN_INDEXES: &str = "
create index runs_job on runs (job_id, id);
create index active_runs_job on active_runs (job_id, org_id);
create index outcomes_not_succeeded on outcomes (run_id) where status > 2;
";

const A_DUE: &str = "select job_id, org_id, next_run_at,
  exists (select 1 from runs a where a.job_id = t.job_id and a.org_id = t.org_id and a.status < 2)
from timers t where next_run_at <= ?1 order by next_run_at limit ?2";
const B_DUE: &str = "select job_id, org_id, next_run_at,
  exists (select 1 from active_runs a where a.job_id = t.job_id and a.org_id = t.org_id)
from timers t where next_run_at <= ?1 order by next_run_at limit ?2";

/// ?1 now, ?2 rows: id, job, org, slot, next, trigger, target, payload, catch-up, folded.
const A_INSERT: &str = "insert into runs
select unhex(value->>0), unhex(value->>1), value->>2, value->>3, value->>3, ?1, value->>5, value->>6, value->>7, null, null, value->>8,
  value->>9, '2027-01-15', 0, 0, 0, value->>3, null, null, null, null, 0, null, null, null, null, null, null
from json_each(?2) where true on conflict do nothing";
const B_INSERT: &str = "insert into runs
select unhex(value->>0), unhex(value->>1), value->>2, value->>3, value->>3, ?1, value->>5, value->>6, value->>7, null, null, value->>8,
  value->>9, '2027-01-15' from json_each(?2) where true on conflict do nothing";
const B_INSERT_ACTIVE: &str = "insert into active_runs
select unhex(value->>0), unhex(value->>1), value->>2, value->>6, 0, 0, 0, value->>3, null, null, null, null, ?1 < 0, value->>3
from json_each(?2) where true on conflict do nothing";
const ADVANCE: &str = "update timers set next_run_at = i.value->>4, last_slot_at = min(?1, i.value->>3)
from json_each(?2) i where timers.job_id = unhex(i.value->>1) and timers.org_id = i.value->>2";

/// ?1 now, ?2 targets, ?3 limit, ?4 runner, ?5 lease.
const A_START: &str = "update runs set status = 1, attempt = attempt + 1, runner = ?4, lease_until = ?5, started_at = ?1, claimed_at = ?1
where id in (select id from runs where status = 0 and not held and target in (select value from json_each(?2)) and available_at <= ?1
  order by scheduled_at, id limit ?3) returning id, attempt, payload";
const B_START: &str = "update active_runs set status = 1, attempt = attempt + 1, runner = ?4, lease_until = ?5, started_at = ?1, claimed_at = ?1
where run_id in (select run_id from active_runs where status = 0 and not held and target in (select value from json_each(?2))
  and available_at <= ?1 order by scheduled_at, run_id limit ?3)
returning run_id, attempt, (select payload from runs where id = run_id)";

/// ?1 now, ?2 rows: id, attempt, status, failure code, failure message.
const A_FINISH: &str =
    "update runs set status = e.value->>2, finished_at = ?1, lease_until = null, failure_code = e.value->>3,
  failure_message = e.value->>4 from json_each(?2) e
where runs.id = unhex(e.value->>0) and runs.attempt = e.value->>1 and runs.status = 1";
const B_FINISH: &str = "insert into outcomes
select a.run_id, e.value->>2, a.attempt, a.runner, a.claimed_at, a.started_at, ?1, e.value->>3, e.value->>4, null, null, null
from json_each(?2) e cross join active_runs a on a.run_id = unhex(e.value->>0) and a.attempt = e.value->>1 and a.status = 1";
const B_FINISH_ACTIVE: &str = "delete from active_runs
where run_id in (select unhex(value->>0) from json_each(?2)) and status = 1 and ?1 > 0";
