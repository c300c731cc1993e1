//! Audit entries about jobs that can no longer fire, at all or for some orgs, in the name of everbell.

use everbell_core::store::AuditEntry;
use everbell_core::{Definition, JobId, Json, OrgId, entry_id};
use jiff::Timestamp;

const JOB: &str = "job.errored";
const ORGS: &str = "org.errored";
/// Distinguishes the id of the entry about one org from that of the entry about all of them.
const ORG: &str = "org.errored:org";
/// How many orgs an entry names.
const MAX_NAMED_ORGS: usize = 20;

/// The job cannot fire at all.
pub(crate) fn of_job(id: JobId, key: &str, why: &str, now: Timestamp) -> AuditEntry {
    AuditEntry {
        id: entry_id(JOB, id, None, now),
        at: now,
        actor: "everbell".to_owned(),
        action: JOB.to_owned(),
        object: format!("job:{key}"),
        reason: Some(why.to_owned()),
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}

/// One entry for each job, however many orgs it cannot fire for: a zone that ceases to be may be that of thousands. The
/// orgs that the entry names get one each, too, so that a look at an org finds it.
pub(crate) fn of_orgs<'a>(
    errors: impl Iterator<Item = (&'a Definition, &'a OrgId, &'a String)>,
    now: Timestamp,
) -> Vec<AuditEntry> {
    let mut jobs: Vec<(&Definition, Vec<&OrgId>, &String)> = Vec::new();
    for (job, org, why) in errors {
        match jobs.iter_mut().find(|(known, _, _)| known.id == job.id) {
            Some((_, orgs, _)) => orgs.push(org),
            None => jobs.push((job, vec![org], why)),
        }
    }
    let each = |(job, orgs, why): &(&Definition, Vec<&OrgId>, &String)| -> Vec<AuditEntry> {
        let named = orgs.iter().take(MAX_NAMED_ORGS).map(|org| of_org(job, org, why, now));
        named.chain([entry(job, orgs, why, now)]).collect()
    };
    jobs.iter().flat_map(each).collect()
}

/// The job cannot fire for this org.
fn of_org(job: &Definition, org: &OrgId, why: &str, now: Timestamp) -> AuditEntry {
    let after = serde_json::json!({ "jobKey": job.key.as_str() }).to_string();
    AuditEntry {
        id: entry_id(ORG, job.id, Some(org), now),
        action: ORGS.to_owned(),
        object: format!("org:{org}"),
        after: Json::parse("after", &after).ok(),
        ..of_job(job.id, job.key.as_str(), why, now)
    }
}

/// The reason is that of the first org.
fn entry(job: &Definition, orgs: &[&OrgId], why: &str, now: Timestamp) -> AuditEntry {
    let first: Vec<&str> = orgs.iter().take(MAX_NAMED_ORGS).map(|org| org.as_str()).collect();
    let after = serde_json::json!({ "first": first, "orgs": orgs.len() }).to_string();
    AuditEntry {
        id: entry_id(ORGS, job.id, Some(orgs[0]), now),
        action: ORGS.to_owned(),
        // A number and a few names are always storable.
        after: Json::parse("after", &after).ok(),
        ..of_job(job.id, job.key.as_str(), why, now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rows::definitions::tests::definition;

    #[test]
    fn entries_of_one_instant_have_ids_of_their_own() {
        let (job, why, now) = (definition(1), "no such zone".to_owned(), Timestamp::UNIX_EPOCH);
        let orgs = ["acme", "globex", "initech"].map(|org| OrgId::new(org).unwrap());
        // Two batches of the same instant, and the job as a whole.
        let batch = |orgs: &[OrgId]| of_orgs(orgs.iter().map(|org| (&job, org, &why)), now);
        let mut entries = batch(&orgs[..2]);
        entries.extend(batch(&orgs[2..]));
        entries.push(of_job(job.id, job.key.as_str(), &why, now));
        let ids: BTreeSet<_> = entries.iter().map(|entry| entry.id).collect();
        assert_eq!((entries.len(), ids.len()), (6, 6), "{entries:?}");
    }
}
