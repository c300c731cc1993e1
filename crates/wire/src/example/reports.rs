//! Examples of reports over all jobs.

use std::collections::BTreeMap;

use super::{Example, JOB_ID, NEXT_RUN_AT, NOW, ORG_JOB_ID, RUN_ID, SLOT_AT, at};
use crate::bulk::RerunOutcome;
use crate::{ClusterStats, NextFire, NextFires, Outage, OutageJob, RerunItem, Reruns};

impl Example for Outage {
    fn example() -> Outage {
        let job = |key: &str, slots, missed, coalesced| OutageJob {
            job_key: key.to_owned(),
            slots,
            missed,
            coalesced,
            ran: slots - missed - coalesced,
            skipped: 0,
            backfilled: 0,
            caught_up: missed == 0,
            can_backfill: missed + coalesced > 0,
            first_slot_at: at("2027-03-15T06:00:30Z"),
            last_slot_at: at("2027-03-15T06:02:00Z"),
        };
        Outage {
            from: at("2027-03-15T06:00:12Z"),
            until: at("2027-03-15T06:02:10Z"),
            jobs: 2,
            jobs_caught_up: 1,
            slots: 8,
            missed: 4,
            coalesced: 3,
            ran: 1,
            skipped: 0,
            backfilled: 0,
            items: vec![job("reminders", 4, 4, 0), job("sync", 4, 0, 3)],
        }
    }
}

impl Example for NextFires {
    fn example() -> NextFires {
        let fire = NextFire {
            at: at(NEXT_RUN_AT),
            local: "2027-03-16T08:00:00+01:00[Europe/Berlin]".to_owned(),
            job_key: "daily-report".to_owned(),
            job_id: JOB_ID.to_owned(),
            target: "send-report".to_owned(),
            moved_from: None,
            org_id: None,
            orgs: None,
            runs: None,
            zones: None,
            spread_ms: None,
            frozen: None,
            frozen_until: None,
            note: None,
        };
        let for_orgs = NextFire {
            at: at("2027-03-15T23:00:00Z"),
            local: "2027-03-15T23:00:00+00:00[UTC]".to_owned(),
            job_key: "briefing".to_owned(),
            job_id: ORG_JOB_ID.to_owned(),
            target: "send-briefing".to_owned(),
            org_id: Some("acme".to_owned()),
            orgs: Some(14),
            zones: Some(2),
            ..fire.clone()
        };
        NextFires { items: vec![for_orgs, fire], more: true, complete: true }
    }
}

impl Example for ClusterStats {
    fn example() -> ClusterStats {
        ClusterStats {
            from: at("2027-03-14T09:30:00Z"),
            to: at(NOW),
            runs: 1_159,
            by_status: BTreeMap::from([("failed".to_owned(), 9), ("succeeded".to_owned(), 1_150)]),
            success_rate: Some(1_150.0 / 1_159.0),
            late_starts: 12,
            lag_ms_p50: Some(25),
            lag_ms_p95: Some(100),
            lag_ms_max: Some(118_000),
            gap_slots: BTreeMap::from([("coalesced".to_owned(), 3), ("missed".to_owned(), 4)]),
            outages: 1,
        }
    }
}

impl Example for Reruns {
    fn example() -> Reruns {
        let item = RerunItem {
            run_id: RUN_ID.to_owned(),
            job_key: Some("daily-report".to_owned()),
            scheduled_at: at(SLOT_AT),
            outcome: RerunOutcome::WouldStart,
            new_run_id: None,
            detail: None,
        };
        Reruns { dry_run: true, matched: 1, started: 1, items: vec![item] }
    }
}
