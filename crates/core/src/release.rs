//! [`Releases`]: which release of a program decides what its jobs are.
//!
//! In a rolling deployment old and new instances of a program run side by side, and either may start at any time. An old one
//! that restarts must not take back what the new ones declare, nor retire the jobs that only they know. A real rollback,
//! after which only old ones run, must do exactly that.
//!
//! Everything that a program declares is its release ([`ReleaseId`]). The database remembers the releases of each program in
//! the order in which they took over, and when an instance of each was last seen. One rule follows from that
//! ([`Releases::declare`]):
//!
//! | release | instances of the current one | what it may do |
//! |---|---|---|
//! | the current one | | syncs |
//! | never seen | | takes over, and syncs |
//! | seen before, and replaced since | seen lately | waits: it changes nothing ([`ReleaseStatus::Outdated`]) |
//! | seen before, and replaced since | not seen for [`ALIVE_FOR`] | takes over again, and syncs: a rollback |
//!
//! An instance that starts takes over, one that had to wait when it started, and one that is running while the release that
//! replaced it ran and is gone ([`Releases::left_to`]): a deployment that failed. A program that only syncs, in a step of a
//! deployment, never ran, so instances that are running leave what it did alone.
//!
//! A release that was replaced never wins against one that is running and reaches the database, jobs do not go back and
//! forth with every restart, and when all instances are of one release, that one decides.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::declaration::{DeclarationHash, hash_of, versioned};
use crate::ids::{Invalid, JobKey};

/// How long a release counts as running after one of its instances was seen.
pub const ALIVE_FOR: Duration = Duration::from_secs(90);
/// How often an instance says that its release is running.
pub const SEEN_EVERY: Duration = Duration::from_secs(30);
/// The most releases of a program that are remembered. One that was forgotten counts as new.
const MAX_RELEASES: usize = 32;

/// A hash of everything that a program declares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseId(Box<str>);

impl ReleaseId {
    /// The release that declares these jobs, given in the order of their keys.
    pub fn from_jobs<'a>(jobs: impl IntoIterator<Item = (&'a JobKey, &'a DeclarationHash)>) -> ReleaseId {
        let texts = jobs.into_iter().flat_map(|(key, hash)| [key.as_str(), hash.as_str()]);
        ReleaseId(versioned(&hash_of(texts)).into())
    }

    /// The same jobs beside these calendars, as text.
    #[must_use]
    pub fn with_calendars(self, texts: &[String]) -> ReleaseId {
        if texts.is_empty() {
            return self;
        }
        let all = [self.as_str()].into_iter().chain(texts.iter().map(String::as_str));
        ReleaseId(versioned(&hash_of(all)).into())
    }

    /// The same declarations, requested again at this time: a release that was never seen, so it takes over.
    #[must_use]
    pub fn asked_at(&self, at: Timestamp) -> ReleaseId {
        ReleaseId(versioned(&hash_of([self.as_str(), at.to_string().as_str()])).into())
    }

    /// Reads an id that was stored.
    pub fn parse(text: &str) -> Result<ReleaseId, Invalid> {
        DeclarationHash::parse(text).map(|hash| ReleaseId(hash.as_str().into()))
    }

    /// The text, as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A release of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its declarations.
    pub id: ReleaseId,
    /// When it took over.
    pub since: Timestamp,
    /// When one of its instances was last seen.
    pub seen_at: Timestamp,
}

/// Whether a release may change jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseStatus {
    /// It decides what the jobs of its program are.
    Current,
    /// Another release replaced it and is running.
    Outdated {
        /// When the other release took over.
        since: Timestamp,
    },
}

impl ReleaseStatus {
    /// Whether it decides.
    pub fn is_current(self) -> bool {
        self == ReleaseStatus::Current
    }
}

/// The releases of a program that are remembered, in the order in which they took over: the last one is current.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases(Vec<Release>);

impl Releases {
    /// Puts stored releases together.
    pub fn new(releases: Vec<Release>) -> Releases {
        Releases(releases)
    }

    /// All of them, the current one last.
    pub fn all(&self) -> &[Release] {
        &self.0
    }

    /// Notes that an instance of this release is running. It takes over nothing.
    #[must_use]
    pub fn see(&self, id: &ReleaseId, now: Timestamp) -> Releases {
        let mut releases = self.0.clone();
        if let Some(release) = releases.iter_mut().find(|release| release.id == *id) {
            release.seen_at = now;
        }
        Releases(releases)
    }

    /// Whether a release that replaced this one ran and is the last one: when its instances have ended, as after a deploy that
    /// failed, those that run this release take over again. One that only declared its jobs, as a step of a deploy does,
    /// keeps them.
    pub fn left_to(&self, id: &ReleaseId) -> bool {
        self.0.last().is_some_and(|last| last.id != *id && last.seen_at > last.since)
    }

    /// Decides whether this release may change jobs now, and notes that one of its instances was seen.
    #[must_use]
    pub fn declare(&self, id: &ReleaseId, now: Timestamp) -> (Releases, ReleaseStatus) {
        let mut releases = self.0.clone();
        let known = releases.iter().position(|release| release.id == *id);
        let current = releases.last().filter(|current| current.id != *id && is_alive(current, now));
        if let (Some(known), Some(current)) = (known, current) {
            let status = ReleaseStatus::Outdated { since: current.since };
            releases[known].seen_at = now;
            return (Releases(releases), status);
        }
        match known {
            Some(known) if known + 1 == releases.len() => releases[known].seen_at = now,
            known => {
                if let Some(known) = known {
                    releases.remove(known);
                }
                releases.push(Release { id: id.clone(), since: now, seen_at: now });
                let forgotten = releases.len().saturating_sub(MAX_RELEASES);
                releases.drain(..forgotten);
            }
        }
        (Releases(releases), ReleaseStatus::Current)
    }
}

/// Whether an instance was seen lately. One that was seen in the future is alive no longer than any other: a clock that was
/// ahead must not block a program.
fn is_alive(release: &Release, now: Timestamp) -> bool {
    let lately = SignedDuration::try_from(ALIVE_FOR).unwrap_or(SignedDuration::MAX);
    now.duration_since(release.seen_at).abs() < lately
}
