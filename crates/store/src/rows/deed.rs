//! Effects of a request, as text in a column.

use everbell_core::store::{Deed, PurgedJob, Remembered, RequestKey, StoreResult};
use everbell_core::{Gap, GapReason, JobId, JobKey, RunId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{corrupt, word};
use crate::micros::Micros;

/// The column `deed`. What is empty is left out.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct DeedText {
    entry: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    successor: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapText>,
    pending: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    purged: Option<PurgedText>,
}

/// Key, versions, runs, gaps.
#[derive(Serialize, Deserialize)]
struct PurgedText(String, u64, u64, u64);

/// First slot, last slot, slots, reason, actor.
#[derive(Serialize, Deserialize)]
struct GapText(i64, i64, u64, String, Option<String>);

/// The deed as text.
pub(crate) fn deed_text(deed: &Deed) -> String {
    let gap = |gap: &Gap| {
        let (first, last) = (Micros::from(gap.first_slot_at).0, Micros::from(gap.last_slot_at).0);
        GapText(first, last, gap.slots, gap.reason.as_str().to_owned(), gap.actor.clone())
    };
    let text = DeedText {
        entry: deed.entry.to_string(),
        job: deed.job.map(|id| id.to_string()),
        successor: deed.successor.map(|id| id.to_string()),
        runs: deed.runs.iter().map(ToString::to_string).collect(),
        gaps: deed.gaps.iter().map(gap).collect(),
        pending: deed.pending,
        purged: deed.purged.as_ref().map(|(key, rows)| {
            let PurgedJob { versions, runs, gaps, .. } = *rows;
            PurgedText(key.to_string(), versions, runs, gaps)
        }),
    };
    // Numbers, texts and lists of them always make JSON.
    serde_json::to_string(&text).unwrap_or_default()
}

fn read_deed(key: &str, text: &str) -> StoreResult<Deed> {
    let text: DeedText = serde_json::from_str(text).map_err(|why| corrupt("requests", key, why))?;
    let id = |text: &str| Uuid::parse_str(text).map_err(|why| corrupt("requests", key, why));
    let gap = |GapText(first, last, slots, reason, actor): GapText| {
        let reason = word(GapReason::ALL, GapReason::as_str, &reason).map_err(|why| corrupt("requests", key, why))?;
        Ok(everbell_core::with!(Gap { actor, ..Gap::new(Micros(first).into(), Micros(last).into(), slots, reason) }))
    };
    let purged = |PurgedText(name, versions, runs, gaps): PurgedText| -> StoreResult<(JobKey, PurgedJob)> {
        let name = JobKey::new(&name).map_err(|why| corrupt("requests", key, why))?;
        Ok((name, PurgedJob::last(versions, runs, gaps)))
    };
    Ok(Deed {
        entry: id(&text.entry)?,
        job: text.job.as_deref().map(id).transpose()?.map(JobId::from_uuid),
        successor: text.successor.as_deref().map(id).transpose()?.map(JobId::from_uuid),
        runs: text.runs.iter().map(|run| id(run).map(RunId::from_uuid)).collect::<StoreResult<_>>()?,
        gaps: text.gaps.into_iter().map(gap).collect::<StoreResult<_>>()?,
        pending: text.pending,
        purged: text.purged.map(purged).transpose()?,
    })
}

/// A row of `requests`: fingerprint, status, body, deed.
pub(crate) type RequestRow = (Vec<u8>, Option<i32>, Option<String>, Option<String>);

/// Reads the row of a request.
pub(crate) fn remembered(request: &RequestKey, row: Option<RequestRow>) -> StoreResult<Remembered> {
    Ok(match row {
        None => Remembered::New,
        Some((known, ..)) if known != request.fingerprint => Remembered::Different,
        Some((_, Some(status), Some(body), _)) => Remembered::Answered(u16::try_from(status).unwrap_or(0), body),
        Some((_, _, _, Some(deed))) => Remembered::Done(read_deed(&request.key, &deed)?),
        Some(_) => Remembered::InDoubt,
    })
}
