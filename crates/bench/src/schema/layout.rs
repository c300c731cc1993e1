//! The tables to choose from, as PostgreSQL knows them, and the statements of a run's life on each.

/// How a run is written down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One table; starting and finishing are updates.
    A,
    /// `runs` and `outcomes` are appended to; a run lives in `active_runs` while it is pending or running.
    B,
    /// B with one statement that writes `runs`, `active_runs` and `timers`.
    C,
    /// C with the fewest indexes that can do the work.
    Lean,
    /// Lean, and the claim starts the runs at once: there is no pending row.
    Started,
    /// C with nothing but primary keys: what indexes are measured against.
    Bare,
}

impl Layout {
    pub(super) const ALL: [Layout; 5] = [Layout::A, Layout::B, Layout::C, Layout::Lean, Layout::Started];

    pub(super) fn name(self) -> &'static str {
        match self {
            Layout::A => "A one table",
            Layout::B => "B three tables",
            Layout::C => "C merged claim",
            Layout::Lean => "C + lean indexes",
            Layout::Started => "C + lean + start in claim",
            Layout::Bare => "C + primary keys only",
        }
    }

    pub(super) fn tables(self) -> String {
        let runs = match self {
            Layout::A => ONE_TABLE,
            _ => THREE_TABLES,
        };
        let indexes = match self {
            Layout::A => A_INDEXES,
            Layout::B | Layout::C => PROPOSED_INDEXES,
            Layout::Lean | Layout::Started => LEAN_INDEXES,
            Layout::Bare => "",
        };
        format!("{TIMERS}{runs}{indexes}")
    }

    pub(super) fn due(self) -> &'static str {
        if self == Layout::A { A_DUE } else { B_DUE }
    }

    /// The statements of the claim, in order; all take the same parameters.
    pub(super) fn claim(self) -> &'static [&'static str] {
        match self {
            Layout::A => &[A_INSERT, ADVANCE],
            Layout::B => &[B_INSERT, B_INSERT_ACTIVE, ADVANCE],
            Layout::C | Layout::Lean | Layout::Bare => &[C_CLAIM],
            Layout::Started => &[STARTED_CLAIM],
        }
    }

    pub(super) fn start(self) -> Option<&'static str> {
        match self {
            Layout::A => Some(A_START),
            Layout::Started => None,
            Layout::B | Layout::C => Some(B_START),
            Layout::Lean | Layout::Bare => Some(LEAN_START),
        }
    }

    pub(super) fn finish(self) -> &'static str {
        if self == Layout::A { A_FINISH } else { B_FINISH }
    }
}

const TIMERS: &str = "
create table timers (job_id uuid, org_id text, next_run_at timestamptz, last_slot_at timestamptz, rescheduled_from timestamptz,
  primary key (job_id, org_id)) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index timers_due on timers (next_run_at);
create table seed (n int primary key, job_id uuid not null, org_id text not null);
";

const ONE_TABLE: &str = "
create table runs (id uuid primary key, job_id uuid, org_id text, slot_at timestamptz, scheduled_at timestamptz not null,
  created_at timestamptz not null, trigger text not null, target text not null, payload text, skip_reason text, blocking_run_id uuid,
  catch_up bool not null, folded bigint not null, local_date date, status smallint not null, held bool not null, attempt int not null,
  available_at timestamptz not null, runner uuid, lease_until timestamptz, started_at timestamptz, claimed_at timestamptz,
  cancel_requested bool not null default false, finished_at timestamptz, failure_code text, failure_message text,
  failure_details text, result text, output text);
";

const A_INDEXES: &str = "
create unique index runs_slot on runs (job_id, org_id, slot_at);
create index runs_scheduled on runs (scheduled_at, id);
create index runs_active on runs (job_id, org_id) where status < 2;
create index runs_pending on runs (target, available_at) where status = 0;
create index runs_not_succeeded on runs (id) where status > 2;
";

const THREE_TABLES: &str = "
create table runs (id uuid primary key, job_id uuid, org_id text, slot_at timestamptz, scheduled_at timestamptz not null,
  created_at timestamptz not null, trigger text not null, target text not null, payload text, skip_reason text, blocking_run_id uuid,
  catch_up bool not null, folded bigint not null, local_date date);
create table active_runs (run_id uuid primary key, job_id uuid, org_id text, target text not null, status smallint not null,
  held bool not null, attempt int not null, available_at timestamptz not null, runner uuid, lease_until timestamptz,
  started_at timestamptz, claimed_at timestamptz, cancel_requested bool not null default false, scheduled_at timestamptz not null)
  with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create table outcomes (run_id uuid primary key, status smallint not null, attempt int not null, claimed_by uuid, claimed_at timestamptz,
  started_at timestamptz, finished_at timestamptz not null, failure_code text, failure_message text, failure_details text, result text,
  output text);
";

pub(super) const PROPOSED_INDEXES: &str = "
create unique index runs_slot on runs (job_id, org_id, slot_at);
create index runs_scheduled on runs (scheduled_at, id);
create index active_runs_job on active_runs (job_id, org_id);
create index active_runs_target on active_runs (target, available_at);
create index outcomes_not_succeeded on outcomes (run_id) where status > 2;
";

/// The id of a slot's run is a hash of job, org and slot behind the time: the primary key keeps slots unique and history in
/// order.
pub(super) const LEAN_INDEXES: &str = "
create index runs_job on runs (job_id, id);
create index active_runs_job on active_runs (job_id, org_id);
create index outcomes_not_succeeded on outcomes (run_id) where status > 2;
";

macro_rules! due {
    ($active:literal) => {
        concat!(
            "with due as materialized (
  select ctid, job_id, org_id, next_run_at from timers where next_run_at <= $1 order by next_run_at limit $2 for update skip locked)
select d.job_id, d.org_id, d.next_run_at, d.ctid::text, exists (select from ",
            $active,
            " a where a.job_id = d.job_id and a.org_id = d.org_id) from due d"
        )
    };
}
const A_DUE: &str = due!("(select * from runs where status < 2)");
const B_DUE: &str = due!("active_runs");

/// $1 now, then one array per column: id, job, org, slot, next, trigger, target, payload, catch-up, folded, place of the timer.
macro_rules! input {
    () => {
        "with input as (select i.*, null::text skip_reason, null::uuid blocking_run_id, '2027-01-15'::date local_date, $1::timestamptz as created_at, $12::text[] as places
  from unnest($2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::bool[],
  $11::bigint[]) as i (id, job_id, org_id, slot_at, next_run_at, trigger, target, payload, catch_up, folded))"
    };
}
macro_rules! runs {
    () => {
        "insert into runs select id, job_id, org_id, slot_at, slot_at, created_at, trigger, target, payload, skip_reason, blocking_run_id,
  catch_up, folded, local_date from input on conflict do nothing returning id"
    };
}
macro_rules! active {
    ($status:literal, $attempt:literal, $at:literal, $from:literal) => {
        concat!(
            "insert into active_runs select id, job_id, org_id, target, ",
            $status,
            ", false, ",
            $attempt,
            ", slot_at, ",
            "case when ",
            $status,
            " = 1 then '00000000-0000-8000-8000-000000000001'::uuid end, ",
            $at,
            " + interval '30 s', ",
            $at,
            ", ",
            $at,
            ", false, slot_at from ",
            $from,
            " on conflict do nothing"
        )
    };
}
/// The timers are locked, so they are where they were; a join by key alone, or by `ctid` as a column, reads all of them when
/// there are not many.
macro_rules! advance {
    () => {
        "update timers t set next_run_at = input.next_run_at, last_slot_at = input.slot_at from input
  where t.ctid = any($12::text[]::tid[]) and t.job_id = input.job_id and t.org_id = input.org_id"
    };
}

const A_INSERT: &str = concat!(
    input!(),
    "insert into runs select id, job_id, org_id, slot_at, slot_at, created_at, trigger, target, payload, skip_reason,
  blocking_run_id, catch_up, folded, local_date, 0, false, 0, slot_at from input on conflict do nothing"
);
const ADVANCE: &str = concat!(input!(), advance!());
const B_INSERT: &str = concat!(input!(), runs!());
const B_INSERT_ACTIVE: &str = concat!(input!(), active!("0", "0", "null::timestamptz", "input"));
const C_CLAIM: &str = concat!(
    input!(),
    ", r as (",
    runs!(),
    "), a as (",
    active!("0", "0", "null::timestamptz", "input join r using (id)"),
    ") ",
    advance!()
);
const STARTED_CLAIM: &str = concat!(
    input!(),
    ", r as (",
    runs!(),
    "), a as (",
    active!("1", "1", "created_at", "input join r using (id)"),
    ") ",
    advance!()
);

/// $1 now, $2 targets, $3 limit, $4 runner, $5 lease.
const A_START: &str = "with picked as materialized (
  select id from runs where status = 0 and not held and target = any($2) and available_at <= $1
  order by scheduled_at, id limit $3 for update skip locked)
update runs r set status = 1, attempt = attempt + 1, runner = $4, lease_until = $5, started_at = $1, claimed_at = $1
from picked p where r.id = p.id returning r.id, r.attempt, r.payload";
macro_rules! start {
    ($order:literal) => {
        concat!(
            "with picked as materialized (
  select run_id from active_runs where status = 0 and not held and target = any($2) and available_at <= $1
  order by ",
            $order,
            " limit $3 for update skip locked)
update active_runs a set status = 1, attempt = attempt + 1, runner = $4, lease_until = $5, started_at = $1, claimed_at = $1
from picked p join runs r on r.id = p.run_id where a.run_id = p.run_id returning a.run_id, a.attempt, r.payload"
        )
    };
}
pub(super) const B_START: &str = start!("scheduled_at, run_id");
/// The id begins with the time of the slot, so the primary key has the order already.
pub(super) const LEAN_START: &str = start!("run_id");

/// $1 now, then arrays: id, attempt, status, failure code, failure message, result, output.
macro_rules! ended {
    () => {
        "with ended as (select * from unnest($2::uuid[], $3::int[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::text[])
  as e (id, attempt, status, failure_code, failure_message, result, output))"
    };
}
const A_FINISH: &str = concat!(
    ended!(),
    "update runs r set status = e.status, finished_at = $1, lease_until = null, failure_code = e.failure_code,
  failure_message = e.failure_message, result = e.result, output = e.output
from ended e where r.id = e.id and r.attempt = e.attempt and r.status = 1 returning r.id"
);
const B_FINISH: &str = concat!(
    ended!(),
    ", gone as (delete from active_runs a using ended e where a.run_id = e.id and a.attempt = e.attempt and a.status = 1
  returning a.run_id, a.runner, a.claimed_at, a.started_at)
insert into outcomes select g.run_id, e.status, e.attempt, g.runner, g.claimed_at, g.started_at, $1, e.failure_code, e.failure_message,
  null, e.result, e.output from gone g join ended e on e.id = g.run_id returning run_id"
);
