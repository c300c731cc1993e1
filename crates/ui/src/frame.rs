//! [`Frame`]: what surrounds every page.

use std::sync::{Mutex, PoisonError};

use askama::Template;
use everbell::JobStatus;
use everbell::client::TargetReport;
use everbell_core::RunStatus;
use everbell_core::store::Counts;
use jiff::{SignedDuration, Timestamp};

use super::assets;
use super::badge::icon;
use super::choices::{Face, Theme};
use super::hours::Hours;
use super::markup::Markup;
use super::session::Cookie;
use super::visit::{Flash, Visit};
use everbell_http::access::Role;
use everbell_wire::elapsed::wait;

/// How old the numbers of the navigation may be.
const FRESH: SignedDuration = SignedDuration::from_secs(2);

/// Timers that are due for so many seconds are told of: two rounds of a scheduler that sleeps, and some.
const LATE: i64 = 15;
/// Clocks that are further apart are worth a word.
const SKEW: SignedDuration = SignedDuration::from_secs(1);
/// How many targets that nobody serves are named.
const NAMED: usize = 3;

/// A part of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Jobs,
    Runs,
    Timeline,
    Orgs,
    Cluster,
    Targets,
    Audit,
    Settings,
    /// Signing in.
    Outside,
}

/// What pages keep between visits.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(super) hours: Hours,
    counts: Mutex<Option<(Timestamp, Counts)>>,
}

impl Kept {
    /// Something was done, so that the numbers must be read anew.
    pub(super) fn outdated(&self) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What surrounds a page.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) theme: Theme,
    pub(crate) face: Face,
    pub(crate) mine: String,
    pub(crate) live: bool,
    /// Whether somebody, or their browser, has said which zone is theirs.
    pub(crate) zone_known: bool,
    pub(crate) actor: Option<(String, &'static str)>,
    /// Why who is here may not read the audit trail.
    pub(crate) no_audit: Option<String>,
    /// What every form sends back.
    pub(crate) seal: String,
    pub(crate) flash: Option<Flash>,
    pub(crate) here: String,
    pub(crate) tallies: Option<Tallies>,
    /// Why timers that are due do not fire.
    pub(crate) stuck: Option<Stuck>,
    pub(crate) now: Timestamp,
    pub(crate) environment: Option<String>,
    /// How wrong the clock of this host is, if that is worth a word.
    pub(crate) skew: Option<String>,
}

/// The numbers of the navigation.
pub(crate) struct Tallies {
    pub(crate) jobs: u64,
    pub(crate) paused: u64,
    pub(crate) retired: u64,
    pub(crate) errored: u64,
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) due: u64,
    pub(crate) late: Option<i64>,
}

impl Tallies {
    fn of(counts: &Counts, now: Timestamp) -> Tallies {
        let jobs =
            |status| counts.jobs.iter().filter(|count| count.status == status).map(|count| count.jobs).sum::<u64>();
        let runs = |status| {
            counts.active_runs.iter().filter(|count| count.status == status).map(|count| count.runs).sum::<u64>()
        };
        Tallies {
            jobs: jobs(JobStatus::Active) + jobs(JobStatus::Paused),
            paused: jobs(JobStatus::Paused),
            retired: jobs(JobStatus::Retired),
            errored: counts.errored_jobs,
            pending: runs(RunStatus::Pending),
            running: runs(RunStatus::Running),
            due: counts.due_timers,
            late: counts.oldest_due_at.map(|at| now.duration_since(at).as_secs()),
        }
    }
}

/// Timers that are due and do not fire: how many, and where to look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) text: String,
    /// The page that tells more, and its name.
    pub(crate) place: (&'static str, &'static str),
}

impl Stuck {
    async fn of(visit: &Visit, due: u64, late: i64) -> Stuck {
        let report = visit.app.bell.targets_naming(0).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a page could not ask who serves what");
            TargetReport::default()
        });
        Stuck::told(due, late, &report)
    }

    fn told(due: u64, late: i64, report: &TargetReport) -> Stuck {
        let many = if due == 1 { "1 timer is due and does".to_owned() } else { format!("{due} timers are due and do") };
        let what = format!("{many} not fire, the oldest for {}.", wait(late));
        if report.served.is_empty() {
            return Stuck { text: format!("{what} No instance that could fire them is alive."), place: CLUSTER };
        }
        let names: Vec<&str> = report.unserved.iter().map(|one| one.target.as_str()).take(NAMED).collect();
        let more = if report.unserved.len() > NAMED { " and others" } else { "" };
        match names.as_slice() {
            [] => Stuck { text: format!("{what} The scheduler is behind."), place: CLUSTER },
            names => {
                let word = if report.unserved.len() == 1 { "target" } else { "targets" };
                Stuck { text: format!("{what} Nobody serves the {word} {}{more}.", names.join(", ")), place: TARGETS }
            }
        }
    }
}

const CLUSTER: (&str, &str) = ("/cluster", "Cluster");
const TARGETS: (&str, &str) = ("/targets", "Targets");

impl Frame {
    pub(super) async fn of(visit: &Visit, section: Section, title: String) -> Frame {
        let signed_in = visit.session.is_some() && visit.actor.name != "nobody";
        let tallies = if signed_in { counts(visit).await.map(|counts| Tallies::of(&counts, visit.now)) } else { None };
        let stuck = match tallies.as_ref().and_then(|tallies| tallies.late.map(|late| (tallies.due, late))) {
            Some((due, late)) if late > LATE => Some(Stuck::of(visit, due, late).await),
            _ => None,
        };
        let flash = visit.cookies.get(Cookie::Flash).and_then(|text| {
            let good = text.starts_with('+');
            text.get(1..).map(|text| Flash { good, text: text.to_owned() })
        });
        Frame {
            title,
            section,
            theme: visit.choices.theme,
            face: visit.choices.face,
            mine: visit.choices.mine.name().to_owned(),
            live: visit.choices.live,
            zone_known: visit.choices.zone_known,
            actor: signed_in.then(|| (visit.actor.name.clone(), visit.actor.role.as_str())),
            no_audit: visit.barred(Role::Operator),
            seal: visit.session.as_ref().map(super::session::Session::seal).unwrap_or_default(),
            flash: flash.filter(|_| !visit.is_scripted()),
            here: visit.here.clone(),
            tallies,
            stuck,
            now: visit.now,
            environment: visit.app.options.environment.clone(),
            skew: told_skew(visit.app.bell.clock().host_skew()),
        }
    }

    /// Header, navigation and banners.
    pub(crate) fn top(&self) -> Markup {
        Markup::of(Top { frame: self }.render().unwrap_or_default())
    }

    #[expect(clippy::unused_self, reason = "templates reach what they need through their frame")]
    pub(crate) fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    #[expect(clippy::unused_self, reason = "templates reach what they need through their frame")]
    pub(crate) fn icon(&self, name: &str) -> Markup {
        icon(name)
    }

    /// The path of this page, without its query.
    pub(crate) fn path(&self) -> &str {
        self.here.split('?').next().unwrap_or("/")
    }

    pub(crate) fn is(&self, section: Section) -> bool {
        self.section == section
    }

    /// What every form holds: that it is ours, and that a double click is one request.
    pub(crate) fn hidden(&self) -> Markup {
        let once = uuid::Uuid::new_v4();
        Markup::of(format!(
            "<input type=\"hidden\" name=\"seal\" value=\"{}\"><input type=\"hidden\" name=\"once\" value=\"{once}\">",
            self.seal
        ))
    }
}

/// Time comes from the database, so this harms nothing; but logs of the host have other times.
fn told_skew(skew: SignedDuration) -> Option<String> {
    let side = if skew.is_negative() { "behind" } else { "ahead of" };
    (skew.abs() >= SKEW)
        .then(|| format!("this host's clock is {:.1} s {side} the database's", skew.as_secs_f64().abs()))
}

/// How much there is, as it was a moment ago. Without an answer of the database there is none.
async fn counts(visit: &Visit) -> Option<Counts> {
    let kept = &visit.kept.counts;
    let known = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, counts)) = known.filter(|(at, _)| visit.now.duration_since(*at) < FRESH) {
        return Some(counts);
    }
    match visit.app.bell.store().counts(visit.now).await {
        Ok(counts) => {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((visit.now, counts.clone()));
            Some(counts)
        }
        Err(error) => {
            tracing::warn!(%error, "a page could not count");
            None
        }
    }
}

/// Header, navigation and banners.
#[derive(Template)]
#[template(path = "frame_top.html")]
struct Top<'a> {
    frame: &'a Frame,
}

#[cfg(test)]
mod tests {
    use everbell::client::{ServedTarget, UnservedTarget};
    use everbell_core::Target;

    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_told() {
        let told = |millis| told_skew(SignedDuration::from_millis(millis));
        assert_eq!(told(999), None);
        assert_eq!(told(-2_500).as_deref(), Some("this host's clock is 2.5 s behind the database's"));
        assert_eq!(told(61_000).as_deref(), Some("this host's clock is 61.0 s ahead of the database's"));
    }

    #[test]
    fn what_keeps_timers_from_firing_is_named() {
        let target = |name: &str| Target::new(name).unwrap();
        let served = vec![ServedTarget { target: target("log"), instances: Vec::new(), jobs: 1 }];
        let unserved = |name| UnservedTarget { target: target(name), count: 1, jobs: Vec::new() };
        let nobody = Stuck::told(2, 20, &TargetReport::default());
        assert_eq!(nobody.place, CLUSTER);
        assert!(nobody.text.starts_with("2 timers are due and do not fire, the oldest for 20s. No instance "));
        let behind = Stuck::told(1, 90, &TargetReport { served: served.clone(), unserved: Vec::new() });
        assert_eq!(behind.text, "1 timer is due and does not fire, the oldest for 1m 30s. The scheduler is behind.");
        let gone = ["a", "b", "c", "d"].map(unserved).to_vec();
        let lone = Stuck::told(4, 20, &TargetReport { served, unserved: gone });
        assert_eq!(lone.place, TARGETS);
        assert!(lone.text.ends_with("Nobody serves the targets a, b, c and others."), "{lone:?}");
    }
}
