//! One-time jobs as a queue: due at once or at a time, unique by a key where that is wanted.
//!
//! An enqueued job is a job like any other one. What is special is decided here: its slot may be the present moment, an
//! unfinished job of its key may be kept or replaced, and a key is made up if it has none.

use jiff::Timestamp;

use crate::change::{JobChange, JobView, NewJob, PendingRuns};
use crate::ids::{Invalid, JobKey, Target};
use crate::job::{Definition, Job, JobState, JobStatus, Timer};
use crate::plan::{self, Plan, PlanContext, just_before};
use crate::run::{Gap, GapReason};
use crate::spec::When;
use crate::store::{StoreError, StoreResult};

/// The most jobs that are enqueued together.
pub const MAX_ENQUEUED_JOBS: usize = 10_000;

/// The letters of a made-up key: digits first, so that it sorts like its number, and none that look alike.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The longest beginning of a target that a made-up key repeats, in bytes.
const MAX_TARGET_BYTES: usize = 100;

/// The choice about an unfinished job of the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IfUnfinished {
    /// The request is refused.
    #[default]
    Refuse,
    /// It stays as it is, and nothing is created.
    Keep,
    /// Payload, time and settings of the request take its place.
    Replace,
}

impl IfUnfinished {
    /// Reads the word for a choice.
    pub fn parse(word: &str) -> Result<IfUnfinished, Invalid> {
        match word {
            "refuse" => Ok(IfUnfinished::Refuse),
            "keep" => Ok(IfUnfinished::Keep),
            "replace" => Ok(IfUnfinished::Replace),
            other => Err(Invalid::new("ifUnfinished", format!("must be `refuse`, `keep` or `replace`, not `{other}`"))),
        }
    }
}

/// The decision about a request to enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Create a job, or the next version of one that has finished.
    Create,
    /// Leave the unfinished job as it is.
    Keep,
    /// Replace the unfinished job.
    Replace,
}

/// Decides about a request whose key may have a job already.
pub fn decide(known: Option<&Job>, if_unfinished: IfUnfinished) -> StoreResult<Decision> {
    let Some(job) = known.filter(|job| job.state.status != JobStatus::Retired) else { return Ok(Decision::Create) };
    let key = &job.definition.key;
    if !job.definition.is_one_time() {
        let what = format!(
            "job `{key}` is recurring, so it can neither be kept nor replaced by an enqueued one: use another key"
        );
        return Err(StoreError::Conflict { what });
    }
    match if_unfinished {
        IfUnfinished::Keep => Ok(Decision::Keep),
        IfUnfinished::Replace => Ok(Decision::Replace),
        IfUnfinished::Refuse => {
            let what = format!(
                "job `{key}` exists and has not finished: `keep` leaves it as it is, `replace` gives it the new payload, \
                 time and settings"
            );
            Err(StoreError::Conflict { what })
        }
    }
}

/// The slot of a job that is due at this time: not before now, because what is over cannot be due.
pub fn slot(at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    at.map_or(now, |at| at.max(now))
}

/// Makes up a key: the target, then 18 letters that sort by the time of the request. `number` distinguishes the keys of the
/// same millisecond; 40 bits of it count, so numbers in a row are different keys in this order.
pub fn generated_key(target: &Target, now: Timestamp, number: u64) -> String {
    let mut cut = target.as_str().len().min(MAX_TARGET_BYTES);
    while !target.as_str().is_char_boundary(cut) {
        cut -= 1;
    }
    let time = now.as_millisecond().max(0).cast_unsigned();
    let letters = |value: u64, count: u32| (0..count).rev().map(move |place| letter(value >> (5 * place)));
    let tail: String = letters(time, 10).chain(letters(number, 8)).collect();
    format!("{}-{tail}", target.as_str()[..cut].trim_end())
}

fn letter(bits: u64) -> char {
    char::from(LETTERS[(bits & 31) as usize])
}

/// A new one-time job whose slot may be the moment of its creation.
pub fn create(definition: Definition) -> NewJob {
    let mark = match definition.spec.as_ref().map(crate::spec::Spec::when) {
        Ok(When::Once(at)) => just_before(*at).min(definition.created_at),
        _ => definition.created_at,
    };
    let blank = Timer {
        job_id: definition.id,
        org: None,
        next_run_at: None,
        last_slot_at: mark,
        rescheduled_from: None,
        last_local_date: None,
    };
    let timer = Some(plan::arm(&definition, &blank, &PlanContext::default()));
    let state = JobState::new(&definition.created_by, definition.created_at);
    NewJob { state, timer, definition: std::sync::Arc::new(definition) }
}

/// Creates the next version of a key that has a retired one, or the first one.
pub fn create_after(known: Option<&Job>, definition: Definition) -> NewJob {
    match known {
        None => create(definition),
        Some(last) => {
            let (version, supersedes) = (last.definition.version + 1, Some(last.definition.id));
            create(Definition { version, supersedes, ..definition }).following(&last.state)
        }
    }
}

/// Replaces an unfinished one-time job. Runs of it that have not started are canceled; one that is at work goes on, and
/// the new one waits for it if the job's `overlap` says so. A pause goes on.
pub fn replace(view: &JobView, definition: Definition, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let state = view.job.state.retired(by, now)?;
    if !view.job.definition.is_one_time() {
        return Err(Invalid::new("jobKey", "the job of this key is recurring"));
    }
    let successor = Job { definition: std::sync::Arc::clone(&view.job.definition), state: state.clone() };
    let mut successor = create_after(Some(&successor), definition);
    if let Some(pause) = &view.job.state.pause {
        successor.state = JobState { status: JobStatus::Paused, pause: Some(pause.clone()), ..successor.state };
        successor.timer = successor.timer.as_ref().map(plan::disarm);
    }
    Ok(JobChange {
        successor: Some(successor),
        pending: PendingRuns::End,
        ..JobChange::new(state, passed_over(view, now))
    })
}

/// The last plan of a job that is replaced: a slot that has come and was not planned yet is folded into the new one.
fn passed_over(view: &JobView, now: Timestamp) -> Plan {
    let spec = view.job.definition.spec.as_ref().ok();
    let slot = spec.and_then(|spec| spec.next_after(view.timer.last_slot_at)).filter(|slot| *slot <= now);
    let timer = plan::disarm(&view.timer);
    match slot {
        None => Plan::nothing(&timer),
        Some(slot) => {
            let gap =
                Gap { first_slot_at: slot, last_slot_at: slot, slots: 1, reason: GapReason::Coalesced, actor: None };
            Plan { gaps: vec![gap], ..Plan::nothing(&Timer { last_slot_at: slot, ..timer }) }
        }
    }
}

/// Refuses more jobs than are enqueued together.
pub fn expect_bounded(jobs: usize) -> Result<(), Invalid> {
    if jobs <= MAX_ENQUEUED_JOBS {
        return Ok(());
    }
    let reason = format!("must be at most {MAX_ENQUEUED_JOBS} at a time, not {jobs}: enqueue them in several calls");
    Err(Invalid::new("payloads", reason))
}

/// Refuses jobs that cannot be created together: too many, or with a predecessor or timers of orgs.
pub fn expect_plain(jobs: &[NewJob]) -> Result<(), Invalid> {
    expect_bounded(jobs.len())?;
    let is_plain = |job: &NewJob| {
        let Definition { supersedes, version, policies, .. } = &*job.definition;
        let is_following = job.definition.spec.as_ref().is_ok_and(crate::spec::Spec::is_following);
        job.timer.is_some() && !is_following && supersedes.is_none() && *version == 1 && policies.calendars.is_empty()
    };
    match jobs.iter().find(|job| !is_plain(job)) {
        None => Ok(()),
        Some(job) => {
            let reason = format!(
                "job `{}` must be the first version of its key, with one timer, without calendars and after no other job",
                job.definition.key
            );
            Err(Invalid::new("jobKey", reason))
        }
    }
}

/// The key of a job, checked as that of any new job.
pub fn new_key(text: &str) -> Result<JobKey, Invalid> {
    let key = JobKey::new(text)?;
    key.expect_visible()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(label: &str) -> Target {
        Target::new(label).unwrap()
    }

    #[test]
    fn made_up_keys_are_short_sort_by_time_and_name_the_target() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let key = |millis, number| generated_key(&target("send-mail"), at(millis), number);
        let first = key(1_794_950_000_000, 0);
        assert_eq!(first, "send-mail-01m7nnpvc000000000");
        let keys = [
            first,
            key(1_794_950_000_000, 1),
            key(1_794_950_000_000, 31),
            key(1_794_950_000_000, 32),
            key(1_794_950_000_001, 0),
        ];
        assert!(keys.is_sorted(), "{keys:?}");
        let long = generated_key(&target(&"é".repeat(100)), at(0), u64::MAX);
        assert!(long.len() <= 120 && JobKey::new(&long).is_ok(), "{long}");
        assert!(JobKey::new(&generated_key(&target("mail@2"), at(0), 7)).is_ok());
    }

    #[test]
    fn what_is_over_is_due_now() {
        let (early, late) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(2).unwrap());
        assert_eq!((slot(None, early), slot(Some(late), early), slot(Some(early), late)), (early, late, late));
    }

    #[test]
    fn the_words_for_choices_are_read_and_others_refused() {
        let read = |word| IfUnfinished::parse(word).map_err(|invalid| invalid.to_string());
        assert_eq!(read("refuse"), Ok(IfUnfinished::Refuse));
        assert_eq!(read("keep"), Ok(IfUnfinished::Keep));
        assert_eq!(read("replace"), Ok(IfUnfinished::Replace));
        let reason = "ifUnfinished: must be `refuse`, `keep` or `replace`, not `Keep`";
        assert_eq!(read("Keep"), Err(reason.to_owned()));
    }

    #[test]
    fn too_many_at_a_time_are_refused_with_the_bound() {
        assert!(expect_bounded(10_000).is_ok());
        assert!(expect_bounded(10_001).unwrap_err().reason.contains("at most 10000 at a time"));
    }
}
