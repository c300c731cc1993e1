//! Names of things: validated where they are made, so that everything behind can trust them.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A value that was refused, with the field it was meant for and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field, as the API spells it, such as `jobKey` or `policies.timeout`.
    pub field: &'static str,
    /// The error, and the values that are allowed.
    pub reason: String,
    /// The org that it is about, of a request that names several. The reason names it too.
    pub org: Option<OrgId>,
}

impl Invalid {
    /// A refusal of `field`.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Invalid {
        Invalid { field, reason: reason.into(), org: None }
    }

    /// The refusal of every change of a retired job.
    pub fn retired() -> Invalid {
        let remedy = "name the job by its key to reach its current version, or create it again";
        Invalid::new("status", format!("this version is {FINAL}: {remedy}"))
    }

    /// The same refusal, with the current version of the job, if there is one.
    pub fn retired_version(key: &JobKey, version: u32, current: Option<(u32, JobId)>) -> Invalid {
        let Some((current, id)) = current else {
            return Invalid::new("status", format!("job `{key}` is {FINAL}: create it again"));
        };
        let remedy = format!("the current version is {current}, with the id {id}; name the job by its key to reach it");
        Invalid::new("status", format!("version {version} of job `{key}` is {FINAL}: {remedy}"))
    }

    /// The refusal of runs beyond the bound on those of a job that have not ended.
    pub fn too_many_pending(active: usize, more: usize, limit: u32) -> Invalid {
        let runs = if more == 1 { "1 more run".to_owned() } else { format!("{more} more runs") };
        let reason = format!(
            "the job has {active} runs that are pending or running and would get {runs}; at most {limit} are allowed \
             (`engine.max_pending_runs`): wait until some have ended, or cancel them"
        );
        Invalid::new(PENDING_RUNS, reason)
    }

    /// Whether a change was refused because the job has too many runs that have not ended.
    pub fn is_too_many_pending(&self) -> bool {
        self.field == PENDING_RUNS
    }

    /// Whether a change was refused because the job is retired.
    pub fn is_retired(&self) -> bool {
        self.field == "status" && self.reason.contains(FINAL)
    }
}

/// No request has a field of this name.
const PENDING_RUNS: &str = "pendingRuns";

/// Part of the reason, which tells this refusal from others.
const FINAL: &str = "retired, which is final";

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an id that was made elsewhere.
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            /// The id as a UUID.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                Uuid::try_parse(text).map(Self).map_err(|_| Invalid::new("id", "a UUID is needed"))
            }
        }
    };
}

uuid_id! {
    /// One version of a job.
    JobId
}
uuid_id! {
    /// One run. A run of a slot has the same id on every instance: see [`RunId::for_slot`].
    RunId
}
uuid_id! {
    /// One running process.
    InstanceId
}
uuid_id! {
    /// One backfill of a range of slots.
    BackfillId
}

impl JobId {
    /// A time-ordered id from the time of creation and 80 random bits that the caller brings.
    pub fn new(created_at: Timestamp, random: [u8; 10]) -> JobId {
        JobId(time_ordered(created_at, &random))
    }
}

impl InstanceId {
    /// The holder of every run that was handed over to its remote side: see [`remote`](crate::remote). It is no instance.
    pub const REMOTE: InstanceId = InstanceId(Uuid::nil());

    /// A time-ordered id from the time of start and 80 random bits that the caller brings.
    pub fn new(started_at: Timestamp, random: [u8; 10]) -> InstanceId {
        InstanceId(time_ordered(started_at, &random))
    }
}

impl BackfillId {
    /// A time-ordered id from the time of creation and 80 random bits that the caller brings.
    pub fn new(created_at: Timestamp, random: [u8; 10]) -> BackfillId {
        BackfillId(time_ordered(created_at, &random))
    }
}

impl RunId {
    /// The id of the run of a slot: the same wherever and however often it is computed, ordered by the slot.
    ///
    /// A claim whose answer was lost can therefore be read back, and a second insert meets the first.
    pub fn for_slot(job: JobId, org: Option<&OrgId>, slot: Timestamp) -> RunId {
        let hash = slot_hash(b"run", job, org, slot);
        RunId(time_ordered(slot, &hash[..10]))
    }

    /// The time that the id begins with, in whole milliseconds: the slot, or the request of a run by hand.
    ///
    /// Ids sort by it, so the order of ids is the order of history.
    pub fn time(&self) -> Timestamp {
        let millis = (self.0.as_u128() >> 80) as i64;
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }

    /// The smallest id that begins with this time: a bound for ranges of history.
    pub fn first_at(time: Timestamp) -> RunId {
        RunId(Uuid::from_u128((time.as_millisecond().max(0) as u128) << 80))
    }

    /// The smallest id whose [`time`](RunId::time) is not before this one: where a range of history begins or ends.
    pub fn first_from(time: Timestamp) -> RunId {
        // Ids hold milliseconds, so a bound inside one begins with the next.
        let up = time.checked_add(SignedDuration::from_nanos(999_999)).unwrap_or(time);
        RunId::first_at(up)
    }

    /// The id of the run that another run starts at its end: the same however often it is computed.
    pub fn after(job: &JobKey, org: Option<&OrgId>, ended: RunId, ended_at: Timestamp) -> RunId {
        let org = org.map_or("", OrgId::as_str);
        let mut hash = Sha256::new();
        hash.update(b"after\0");
        hash.update(ended.0.as_bytes());
        hash.update((org.len() as u64).to_be_bytes());
        hash.update(org);
        hash.update(job.as_str());
        let hash: [u8; 32] = hash.finalize().into();
        RunId(time_ordered(ended_at, &hash[..10]))
    }

    /// The id of a run that no slot asked for, from the time of the request and 80 random bits that the caller brings.
    pub fn by_hand(requested_at: Timestamp, random: [u8; 10]) -> RunId {
        RunId(time_ordered(requested_at, &random))
    }
}

/// The id of a gap, from its reason and first slot.
pub(crate) fn gap_id(reason: &str, job: JobId, org: Option<&OrgId>, first_slot: Timestamp) -> Uuid {
    time_ordered(first_slot, &slot_hash(reason.as_bytes(), job, org, first_slot)[..10])
}

/// The id of an audit entry about a job (and an org) that everbell writes by itself. The same input gives the same id.
pub fn entry_id(action: &str, job: JobId, org: Option<&OrgId>, at: Timestamp) -> Uuid {
    time_ordered(at, &slot_hash(action.as_bytes(), job, org, at)[..10])
}

/// The id of the run by hand that an org update creates for an org. The same input gives the same id.
pub(crate) fn org_update_run_id(org_update: Uuid, job: JobId, org: &OrgId, at: Timestamp) -> RunId {
    RunId(time_ordered(at, &slot_hash(org_update.as_bytes(), job, Some(org), at)[..10]))
}

/// The id of a problem or of a message about one, from what it is about. Ids of the same millisecond sort by `rank`, up to 15.
/// The same input gives the same id.
pub(crate) fn alert_id(parts: &[&[u8]], at: Timestamp, rank: u8) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(at.as_nanosecond().to_be_bytes());
    let mut tail = hash.finalize();
    // The upper half of this byte is the version of the id.
    tail[0] = rank & 0x0f;
    time_ordered(at, &tail[..10])
}

/// 48 bits of time, then `tail`, in the form of a version 8 UUID (RFC 9562): sorts by time like version 7, but does not
/// claim to be random.
fn time_ordered(at: Timestamp, tail: &[u8]) -> Uuid {
    let millis = at.as_millisecond().max(0).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis[2..]);
    bytes[6..].copy_from_slice(&tail[..10]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// A stable hash of a slot, for one purpose. The same on every machine and in every release.
pub(crate) fn slot_hash(purpose: &[u8], job: JobId, org: Option<&OrgId>, slot: Timestamp) -> [u8; 32] {
    let org = org.map_or("", OrgId::as_str);
    let mut hash = Sha256::new();
    hash.update(purpose);
    hash.update([0]);
    hash.update(job.0.as_bytes());
    hash.update((org.len() as u64).to_be_bytes());
    hash.update(org);
    hash.update(slot.as_microsecond().to_be_bytes());
    hash.finalize().into()
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text, if it is 1 to 200 bytes of printable characters without white space around them.
            pub fn new(text: &str) -> Result<Self, Invalid> {
                check_name($field, text)?;
                Ok(Self(text.into()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Refuses a new name that does not look like what it is. Names that are stored already stay valid.
            pub fn expect_visible(&self) -> Result<(), Invalid> {
                expect_visible($field, &self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// The name that all versions of a job share. Must not end in `@` and digits, which names a version of it.
    JobKey, "jobKey"
}
text_id! {
    /// The label of an action. The engine knows nothing else about it.
    Target, "target"
}
text_id! {
    /// The name of a program that declares jobs. It stays the same from one deployment to the next.
    App, "app"
}
text_id! {
    /// A tenant.
    OrgId, "orgId"
}

const MAX_NAME_BYTES: usize = 200;

/// Whether a character is not seen, or changes the order in which its neighbours are shown: with it, two different names
/// can look the same.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}' | '\u{890}'..='\u{891}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Refuses text with characters that are not seen.
pub fn expect_visible(field: &'static str, text: &str) -> Result<(), Invalid> {
    let found = text.chars().find(|c| c.is_control() || is_invisible(*c));
    found.map_or(Ok(()), |c| {
        let reason = format!("must not contain {}: invisible characters are not allowed", c.escape_unicode());
        Err(Invalid::new(field, reason))
    })
}

fn check_name(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(Invalid::new(field, format!("must be 1 to {MAX_NAME_BYTES} bytes long, not {}", text.len())));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(field, "must not contain control characters"));
    }
    if text.trim() != text {
        return Err(Invalid::new(field, "must not begin or end with white space"));
    }
    if [".", ".."].contains(&text) {
        return Err(Invalid::new(field, "must not be `.` or `..`: they cannot be used in a URL"));
    }
    let version = text.rsplit_once('@').is_some_and(|(_, v)| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()));
    if field == "jobKey" && version {
        return Err(Invalid::new(field, "must not end in `@` and digits: that names a version of a job"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobId {
        JobId::new("2026-11-15T12:00:00Z".parse().unwrap(), [7; 10])
    }

    #[test]
    fn the_run_of_a_slot_has_one_id() {
        let slot = "2026-11-15T13:45:00Z".parse().unwrap();
        let id = RunId::for_slot(job(), None, slot);
        // Stored in databases: must never change.
        assert_eq!(id.to_string(), "01a1df74-3f60-861e-a1cb-72be71238aec");
        assert_eq!(id, RunId::for_slot(job(), None, slot));
        let org = OrgId::new("acme").unwrap();
        assert_ne!(id, RunId::for_slot(job(), Some(&org), slot));
        assert!(RunId::for_slot(job(), None, "2026-11-15T13:46:00Z".parse().unwrap()) > id, "ids sort by slot");
        assert_eq!(id.time(), slot);
        assert!(RunId::first_at(slot) < id && RunId::first_at("2026-11-15T13:45:00.001Z".parse().unwrap()) > id);
        let inside = "2026-11-15T13:45:00.0003Z".parse().unwrap();
        assert!(RunId::first_from(slot) < id && RunId::first_from(inside) > id, "its time is before that");
    }

    #[test]
    fn names_are_bounded_printable_text() {
        for good in ["a", "daily-briefing", "fieldforce.brief", "<script>'\"", "שלום", "⏰", "a@b", "a@", "x y"] {
            assert!(JobKey::new(good).is_ok(), "{good}");
        }
        for (bad, reason) in [
            ("", "1 to 200 bytes"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            ("..", "URL"),
            (".", "URL"),
            (" a", "white space"),
            ("nightly@2", "names a version"),
        ] {
            assert!(JobKey::new(bad).unwrap_err().reason.contains(reason), "{bad:?}");
        }
        assert!(JobKey::new(&"x".repeat(201)).is_err());
        let stored = JobKey::new("admin\u{200c}").unwrap();
        assert_eq!(
            stored.expect_visible().unwrap_err().to_string(),
            "jobKey: must not contain \\u{200c}: invisible characters are not allowed"
        );
        for good in ["שלום", "⏰\u{fe0f}", "naïve", "日本語"] {
            assert!(JobKey::new(good).unwrap().expect_visible().is_ok(), "{good}");
        }
        assert!(Target::new("mail@2").is_ok());
    }
}
