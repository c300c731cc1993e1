//! The list of migrations. Both databases have the same, each in its folder `migrations/`.

/// The texts of all migrations, from the folder beside the file that calls this. What was released never changes.
macro_rules! migrations {
    () => {
        [
            include_str!("migrations/0001_first.sql"),
            include_str!("migrations/0002_instance_process.sql"),
            include_str!("migrations/0003_clock.sql"),
            include_str!("migrations/0004_deeds.sql"),
            include_str!("migrations/0005_sessions.sql"),
            include_str!("migrations/0006_first_org.sql"),
            include_str!("migrations/0007_earlier_attempts.sql"),
            include_str!("migrations/0008_declarations.sql"),
            include_str!("migrations/0009_finished_jobs.sql"),
            include_str!("migrations/0010_priority.sql"),
            include_str!("migrations/0011_inbox.sql"),
            include_str!("migrations/0012_trace_context.sql"),
            include_str!("migrations/0013_instance_leases.sql"),
            include_str!("migrations/0014_problems.sql"),
            include_str!("migrations/0015_calendars.sql"),
            include_str!("migrations/0016_backfill_lane.sql"),
            include_str!("migrations/0017_moves.sql"),
            include_str!("migrations/0018_absences.sql"),
            include_str!("migrations/0019_run_counters.sql"),
            include_str!("migrations/0020_chains.sql"),
            include_str!("migrations/0021_backfills.sql"),
            include_str!("migrations/0022_waiting_runs.sql"),
            include_str!("migrations/0023_remote_runs.sql"),
            include_str!("migrations/0024_target_counters.sql"),
            include_str!("migrations/0025_targets.sql"),
            include_str!("migrations/0026_inbox_choices.sql"),
            include_str!("migrations/0027_run_groups.sql"),
            include_str!("migrations/0028_problems_of_orgs.sql"),
            include_str!("migrations/0029_inbox_keys.sql"),
            include_str!("migrations/0030_ranked_jobs.sql"),
        ]
    };
}
pub(crate) use migrations;
