//! Every metric that is exported: its name, its kind, its labels, and what it means.
//!
//! Names follow the rules of Prometheus: one prefix, base units, `_total` for counters. Dashboards and alerts are tested
//! against this list.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many values were at most so large.
    Histogram,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug)]
pub(crate) struct Description {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Declares metrics, and the list of all of them.
macro_rules! catalog {
    ($($id:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(crate) const $id: Description =
            Description { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)+

        /// All of them.
#[cfg(test)]
        pub(crate) const ALL: &[&Description] = &[$(&$id),+];
    };
}

catalog! {
    BUILD_INFO = Gauge "everbell_build_info" ["version", "commit"] "Always 1; the labels identify the build.";
    DATABASE_UP = Gauge "everbell_database_up" [] "Whether the database answered when this was rendered. Otherwise the gauges that are read from it are missing.";
    DATABASE_OUTAGES = Counter "everbell_database_outages_total" [] "How often the loops of this process could not reach the database.";
    CLOCK_STEPS = Counter "everbell_clock_steps_total" ["direction"] "How often the database's clock was set by more than two seconds, as this process noticed: forward or back.";
    DATABASE_TIME = Histogram "everbell_db_operation_duration_seconds" ["op"] "How long calls to the database took, from the first attempt to get a connection.";

    RUNS = Counter "everbell_runs_total" ["target", "status", "trigger"] "Runs that this process ended: executed, recorded as lost, or skipped when they were planned.";
    RUN_DURATION = Histogram "everbell_run_duration_seconds" ["target", "status"] "How long the last attempt of a run took.";
    RUN_RETRIES = Counter "everbell_run_retries_total" ["target"] "Attempts that failed and will be repeated.";
    RUNS_LOST = Counter "everbell_runs_lost_total" [] "Attempts of runs that were lost because their instance sent no heartbeat before the lease expired.";
    LEASES_LOST = Counter "everbell_leases_lost_total" [] "Runs that this process still worked on after their lease had expired or gone to another instance.";
    FIRE_LAG = Histogram "everbell_fire_lag_seconds" [] "How late scheduled runs started, first attempts only.";
    SLOTS_SKIPPED = Counter "everbell_slots_skipped_total" ["reason"] "Runs that were recorded as skipped.";
    SCHEDULES_SKIPPED = Counter "everbell_schedules_skipped_total" ["reason"] "An alias of everbell_slots_skipped_total: the same numbers.";
    GAP_SLOTS = Counter "everbell_gap_slots_total" ["reason"] "Slots that got no run.";
    CLAIMS = Counter "everbell_claims_total" ["step", "result"] "Looks for due timers (step plan) and for pending runs (step start) that took some, none, or failed.";
    CLAIMED = Counter "everbell_claimed_total" ["step"] "Due timers that were planned (step plan), pending runs that were started (step start).";
    CLAIM_DURATION = Histogram "everbell_claim_duration_seconds" ["step", "result"] "How long a look for due timers or pending runs took.";
    LAST_TICK = Gauge "everbell_scheduler_last_tick_timestamp_seconds" ["instance"] "When this process last looked for due timers successfully.";

    JOBS = Gauge "everbell_jobs" ["status", "schedule_type"] "Jobs, all versions.";
    JOBS_ERRORED = Gauge "everbell_jobs_errored" [] "Current jobs that cannot fire.";
    JOBS_REPAIRED = Gauge "everbell_jobs_repaired" [] "Active jobs without a next run that this process repaired at its last check, made every 5 minutes.";
    ORGS = Gauge "everbell_orgs" [] "Orgs; no more than 10,000 are counted.";
    ORG_TIMERS_ERRORED = Gauge "everbell_org_timers_errored" [] "Jobs that cannot fire for an org, counted for each org; no more than 10,000.";
    ORGS_WAITING = Gauge "everbell_orgs_waiting" [] "Orgs that changed and whose timers have not been updated yet; no more than 10,000.";
    ORG_UPDATES = Gauge "everbell_org_sweeps" [] "Org updates that are not finished.";
    RUNS_ACTIVE = Gauge "everbell_runs_active" ["target", "status"] "Runs that are pending or running.";
    DUE_BACKLOG = Gauge "everbell_due_backlog" [] "Timers that are due and not yet planned.";
    OLDEST_DUE_AGE = Gauge "everbell_oldest_due_age_seconds" [] "Time since the oldest of them became due; 0 if there is none.";
    OLDEST_TRANSACTION_AGE = Gauge "everbell_oldest_transaction_age_seconds" [] "Age of the oldest open transaction of another session in the database; 0 if there is none.";
    CLOCK_SKEW = Gauge "everbell_clock_skew_seconds" ["instance", "host"] "How far the clock of a host is ahead of the database's.";
    HEARTBEAT_AGE = Gauge "everbell_instance_heartbeat_age_seconds" ["instance", "host"] "Age of an instance's last heartbeat.";
    JOB_LAST_SUCCESS = Gauge "everbell_job_last_success_timestamp_seconds" ["job_key"] "When a job last succeeded, as far as this process knows: take the maximum over instances.";
    JOB_FAILURES = Gauge "everbell_job_consecutive_failures" ["job_key"] "Failed runs of a job since its last success.";
    JOB_NEXT_RUN = Gauge "everbell_job_next_run_timestamp_seconds" ["job_key"] "When a job fires next; missing if it does not.";

    HTTP_TARGET = Counter "everbell_http_target_requests_total" ["code_class"] "Responses to calls of HTTP targets: 1xx to 5xx, or error if there was none.";
    HTTP_REQUESTS = Counter "everbell_http_requests_total" ["method", "route", "status"] "Requests to this server.";
    HTTP_DURATION = Histogram "everbell_http_request_duration_seconds" ["method", "route"] "How long requests to this server took.";
    CONNECTIONS_REFUSED = Counter "everbell_http_connections_refused_total" ["limit"] "Connections beyond the total limit (connections) or the limit per address (address): closed, or restricted to probes.";
    LOG_LINES_DROPPED = Counter "everbell_log_lines_dropped_total" [] "Log lines that were dropped because standard error was not read in time.";
    LOGIN_FAILURES = Counter "everbell_login_failures_total" [] "Requests with an unknown or expired token.";
}
