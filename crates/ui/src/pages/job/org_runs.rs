//! The runs of a job that fires for each org: its last slots with the runs of all orgs, its next ones, and the orgs with most
//! failures.

use std::collections::BTreeMap;

use everbell::{RunFilter, RunRecord};
use everbell_core::freeze::Freeze;
use everbell_core::org::OrgSlot;
use everbell_core::store::{Bucket, PageRequest, RunHistogram};
use everbell_core::{OrgId, RunStatus};
use jiff::{SignedDuration, Timestamp};

use crate::chart::{Counts, MAX_STACKS, Stack, Stacks, orgs_in_zones, stacks};
use crate::clock::Clock;
use crate::frozen::Frozen;
use crate::markup::{Markup, url_part};
use crate::pages::action::Subject;
use crate::pages::runs::row::failure_text;
use crate::request::UiRequest;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::took;

/// The approximate maximum number of runs that the columns count, which keeps the page of a busy job fast.
const MAX_COUNTED_RUNS: u64 = 20_000;
/// The most failed runs that are looked at.
const MAX_FAILURES: u32 = 1_000;
/// The most orgs that are named.
const MAX_WORST: usize = 5;

/// The runs of all orgs, ready to be shown. Empty for a job that fires once for all orgs.
#[derive(Default)]
pub(super) struct OrgRuns {
    pub(super) stacks: Option<Markup>,
    pub(super) next: Vec<NextSlot>,
    pub(super) worst: Vec<WorstOrg>,
    /// The time from which failures are counted.
    pub(super) since: String,
    /// Whether there are more failures than were looked at.
    pub(super) is_cut: bool,
}

/// A slot to come.
pub(super) struct NextSlot {
    pub(super) local: Markup,
    pub(super) away: Markup,
    /// `312 orgs in 5 zones`, or the only org.
    pub(super) orgs: String,
    /// The time over which jitter spreads them.
    pub(super) within: Option<String>,
    pub(super) frozen: Option<Frozen>,
}

/// An org with failed runs.
pub(super) struct WorstOrg {
    pub(super) id: String,
    pub(super) part: String,
    pub(super) failures: u64,
    /// Where its failed runs are listed.
    pub(super) runs: String,
    /// Why the newest one failed.
    pub(super) reason: Option<String>,
}

/// The data that it is drawn from.
#[derive(Default)]
pub(super) struct OrgRunData {
    next: Vec<OrgSlot>,
    buckets: Vec<Bucket>,
    failed: Vec<RunRecord>,
    is_cut: bool,
}

impl OrgRunData {
    pub(super) async fn load(request: &UiRequest, subject: &Subject, count: usize) -> Result<OrgRunData, Problem> {
        if !subject.is_for_each() {
            return Ok(OrgRunData::default());
        }
        let (jobs, row) = (request.jobs(), &subject.row);
        let next = jobs.next_org_slots(row.id(), None, count).await?;
        if !request.may_read_runs() {
            return Ok(OrgRunData { next, ..OrgRunData::default() });
        }
        let mut bounds = jobs.past_org_slots(row, MAX_STACKS, MAX_COUNTED_RUNS).await?;
        let Some(since) = bounds.first().copied() else { return Ok(OrgRunData { next, ..OrgRunData::default() }) };
        // The last slot is one of its own bucket.
        bounds.push(request.now.saturating_add(SignedDuration::from_secs(1)).unwrap_or(request.now));
        let key = row.key().clone();
        let histogram = RunHistogram::new(bounds)?.of_job(key.clone());
        let filter = RunFilter {
            job_key: Some(key),
            status: vec![RunStatus::Failed],
            from: Some(since),
            ..RunFilter::default()
        };
        let page = PageRequest { limit: MAX_FAILURES, after: None };
        let runs = request.runs();
        let (buckets, failed) = tokio::join!(runs.count_runs_by_time(&histogram), runs.list(&filter, &page));
        let failed = failed?;
        Ok(OrgRunData { next, buckets: buckets?, is_cut: failed.next.is_some(), failed: failed.items })
    }

    pub(super) fn draw(&self, subject: &Subject, clock: &Clock, freezes: &[Freeze]) -> OrgRuns {
        let zone = clock.zone(Some(&subject.zone));
        let time = |at: Timestamp| url_part(&at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let stack = |bucket: &Bucket| Stack {
            at: bucket.from,
            runs: Counts::new(RunStatus::ALL.iter().map(|status| (*status, bucket.count(*status)))),
            href: format!("/runs?jobKey={}&from={}&to={}", subject.part, time(bucket.from), time(bucket.to)),
        };
        // Slots from before its first run would only push the others aside.
        let slots: Vec<Stack> = self.buckets.iter().map(stack).skip_while(|slot| slot.runs.total() == 0).collect();
        let picture = || stacks(&Stacks { id: "slot-stacks", job: &subject.key, zone: &zone, slots: &slots });
        let next = self.next.iter().map(|slot| NextSlot {
            local: clock.day(slot.at, Some(&subject.zone)),
            away: clock.away(slot.at),
            orgs: match &slot.first_org {
                Some(org) if slot.orgs == 1 => org.to_string(),
                _ => orgs_in_zones(slot.orgs, slot.zones),
            },
            within: (!slot.within.is_zero()).then(|| took(slot.within.as_millis() as i64)),
            frozen: Frozen::at(freezes, subject.definition(), slot.at, clock),
        });
        OrgRuns {
            stacks: (!slots.is_empty()).then(|| Markup::from_html(picture())),
            next: next.collect(),
            worst: worst(&self.failed, &subject.part),
            since: slots.first().map_or_else(String::new, |slot| clock.words(slot.at, Some(&subject.zone))),
            is_cut: self.is_cut,
        }
    }
}

/// The orgs with most failed runs, which are listed newest first.
fn worst(failed: &[RunRecord], job: &str) -> Vec<WorstOrg> {
    let mut orgs: BTreeMap<&OrgId, (u64, &RunRecord)> = BTreeMap::new();
    for run in failed {
        if let Some(org) = &run.org {
            orgs.entry(org).or_insert((0, run)).0 += 1;
        }
    }
    let mut orgs: Vec<_> = orgs.into_iter().collect();
    orgs.sort_by_key(|(org, (failures, _))| (std::cmp::Reverse(*failures), *org));
    let line = |(org, (failures, newest)): (&OrgId, (u64, &RunRecord))| {
        let part = url_part(org.as_str());
        let runs = format!("/runs?jobKey={job}&orgId={part}&status=failed");
        WorstOrg { id: org.to_string(), part, failures, runs, reason: failure_text(newest) }
    };
    orgs.into_iter().take(MAX_WORST).map(line).collect()
}
