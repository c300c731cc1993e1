//! [`Frame`]: what surrounds every page.

use askama::Template;
use everbell::JobStatus;
use everbell::client::TargetReport;
use everbell_core::RunStatus;
use everbell_core::store::Counts;
use jiff::{SignedDuration, Timestamp};

use super::assets;
use super::badge::icon;
use super::choices::Theme;
use super::clock::Face;
use super::markup::Markup;
use super::request::{Flash, UiRequest};
use super::session::Cookie;
use everbell_http::access::Role;
use everbell_wire::elapsed::wait;

/// Due timers are reported after this many seconds: two polls of an idle scheduler, and some.
const LATE_TIMERS_SECS: i64 = 15;
/// The minimum clock skew that is shown.
const MIN_SHOWN_SKEW: SignedDuration = SignedDuration::from_secs(1);
/// The maximum number of unserved targets that are listed.
const MAX_LISTED_TARGETS: usize = 3;

/// A part of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Jobs,
    Runs,
    Problems,
    Top,
    Timeline,
    Calendars,
    Orgs,
    Cluster,
    Targets,
    Audit,
    Settings,
    /// The search of everything.
    Find,
    /// Signing in.
    Outside,
}

/// The data of the header, the navigation and the banners.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) theme: Theme,
    pub(crate) face: Face,
    pub(crate) mine: String,
    pub(crate) live: bool,
    /// Whether the time zone of the user is known.
    pub(crate) zone_known: bool,
    pub(crate) actor: Option<(String, &'static str)>,
    /// The reason why the actor may not read the audit trail.
    pub(crate) no_audit: Option<String>,
    /// The token that every form sends back.
    pub(crate) csrf_token: String,
    pub(crate) flash: Option<Flash>,
    pub(crate) here: String,
    /// Where the pages are mounted.
    pub(crate) prefix: String,
    /// Whether the person can sign out here.
    pub(crate) can_sign_out: bool,
    /// The address of the API reference, if there is one.
    pub(crate) docs: Option<&'static str>,
    pub(crate) nav_counts: Option<NavCounts>,
    /// Why timers that are due do not fire.
    pub(crate) stuck: Option<Stuck>,
    pub(crate) now: Timestamp,
    pub(crate) environment: Option<String>,
    /// How wrong the clock of this host is, if that is worth a word.
    pub(crate) skew: Option<String>,
}

/// The numbers of the navigation.
pub(crate) struct NavCounts {
    pub(crate) jobs: u64,
    pub(crate) paused: u64,
    pub(crate) retired: u64,
    pub(crate) errored: u64,
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) due: u64,
    pub(crate) late: Option<i64>,
}

impl NavCounts {
    fn new(counts: &Counts, now: Timestamp) -> NavCounts {
        let jobs =
            |status| counts.jobs.iter().filter(|count| count.status == status).map(|count| count.jobs).sum::<u64>();
        let runs = |status| {
            counts.active_runs.iter().filter(|count| count.status == status).map(|count| count.runs).sum::<u64>()
        };
        NavCounts {
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
    /// The address and the name of the page with details.
    pub(crate) link: (&'static str, &'static str),
}

impl Stuck {
    async fn load(request: &UiRequest, due: u64, late: i64) -> Stuck {
        let report = request.app.bell.targets_naming(0).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a page could not read the served targets");
            TargetReport::default()
        });
        Stuck::new(due, late, &report)
    }

    fn new(due: u64, late: i64, report: &TargetReport) -> Stuck {
        let many = if due == 1 { "1 due timer does".to_owned() } else { format!("{due} due timers do") };
        let what = format!("{many} not fire; the oldest is {} late.", wait(late));
        if report.served.is_empty() {
            return Stuck { text: format!("{what} No live instance can fire them."), link: CLUSTER_LINK };
        }
        let names: Vec<&str> = report.unserved.iter().map(|one| one.target.as_str()).take(MAX_LISTED_TARGETS).collect();
        let more = if report.unserved.len() > MAX_LISTED_TARGETS { " and others" } else { "" };
        match names.as_slice() {
            [] => Stuck { text: format!("{what} The scheduler is falling behind."), link: CLUSTER_LINK },
            names => {
                let word = if report.unserved.len() == 1 { "target" } else { "targets" };
                Stuck {
                    text: format!("{what} No live instance serves the {word} {}{more}.", names.join(", ")),
                    link: TARGETS_LINK,
                }
            }
        }
    }
}

const CLUSTER_LINK: (&str, &str) = ("/cluster", "Cluster");
const TARGETS_LINK: (&str, &str) = ("/targets", "Targets");

impl Frame {
    pub(super) async fn load(request: &UiRequest, section: Section, title: String) -> Frame {
        let signed_in = request.session.is_some() && request.actor.name != "nobody";
        let nav_counts =
            if signed_in { counts(request).await.map(|counts| NavCounts::new(&counts, request.now)) } else { None };
        let stuck = match nav_counts.as_ref().and_then(|nav_counts| nav_counts.late.map(|late| (nav_counts.due, late)))
        {
            Some((due, late)) if late > LATE_TIMERS_SECS => Some(Stuck::load(request, due, late).await),
            _ => None,
        };
        let flash = request.cookies.get(Cookie::Flash).and_then(|text| {
            let good = text.starts_with('+');
            text.get(1..).map(|text| Flash { good, text: text.to_owned() })
        });
        Frame {
            title,
            section,
            theme: request.choices.theme,
            face: request.choices.face,
            mine: request.choices.mine.name().to_owned(),
            live: request.choices.live,
            zone_known: request.choices.zone_known,
            actor: signed_in.then(|| (request.actor.name.clone(), request.actor.role.as_str())),
            no_audit: request.barred(Role::Operator),
            csrf_token: request.session.as_ref().map(super::session::Session::csrf_token).unwrap_or_default(),
            flash: flash.filter(|_| !request.is_scripted()),
            here: request.here.clone(),
            prefix: request.prefix.as_str().to_owned(),
            can_sign_out: !request.actor.is_user(),
            docs: request.app.options().settings.docs.then_some("/docs/api"),
            nav_counts,
            stuck,
            now: request.now,
            environment: request.app.options().environment.clone(),
            skew: skew_notice(request.app.bell.clock().host_skew()),
        }
    }

    /// Header, navigation and banners.
    pub(crate) fn top(&self) -> Markup {
        Markup::from_html(Top { frame: self }.render().unwrap_or_default())
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

    /// Renders the hidden fields of a form: its CSRF token, and an idempotency key that makes a double click one
    /// request.
    pub(crate) fn hidden(&self) -> Markup {
        let once = uuid::Uuid::new_v4();
        Markup::from_html(format!(
            "<input type=\"hidden\" name=\"csrf\" value=\"{}\"><input type=\"hidden\" name=\"once\" value=\"{once}\">",
            self.csrf_token
        ))
    }
}

/// Time comes from the database, so this harms nothing; but logs of the host have other times.
fn skew_notice(skew: SignedDuration) -> Option<String> {
    let side = if skew.is_negative() { "behind" } else { "ahead of" };
    (skew.abs() >= MIN_SHOWN_SKEW)
        .then(|| format!("Host clock is {:.1} s {side} the database's", skew.as_secs_f64().abs()))
}

/// How much there is, as it was a moment ago. Without an answer of the database there is none.
async fn counts(request: &UiRequest) -> Option<Counts> {
    if let Some(counts) = request.cache.counts(request.now) {
        return Some(counts);
    }
    match request.app.bell.store().counts(request.now).await {
        Ok(counts) => {
            request.cache.keep_counts(request.now, &counts);
            Some(counts)
        }
        Err(error) => {
            tracing::warn!(%error, "a page could not count");
            None
        }
    }
}

impl UiRequest {
    /// Loads the frame of a page.
    pub(crate) async fn frame(&self, section: Section, title: impl Into<String>) -> Frame {
        Frame::load(self, section, title.into()).await
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
        let notice = |millis| skew_notice(SignedDuration::from_millis(millis));
        assert_eq!(notice(999), None);
        assert_eq!(notice(-2_500).as_deref(), Some("Host clock is 2.5 s behind the database's"));
        assert_eq!(notice(61_000).as_deref(), Some("Host clock is 61.0 s ahead of the database's"));
    }

    #[test]
    fn what_keeps_timers_from_firing_is_named() {
        let target = |name: &str| Target::new(name).unwrap();
        let served = vec![ServedTarget::new(target("log"), Vec::new(), 1)];
        let report = |served, unserved| {
            let mut report = TargetReport::default();
            (report.served, report.unserved) = (served, unserved);
            report
        };
        let unserved = |name| UnservedTarget::new(target(name), 1, Vec::new());
        let dead = Stuck::new(2, 20, &TargetReport::default());
        assert_eq!(dead.link, CLUSTER_LINK);
        assert!(dead.text.starts_with("2 due timers do not fire; the oldest is 20s late. No live instance "));
        let behind = Stuck::new(1, 90, &report(served.clone(), Vec::new()));
        assert_eq!(
            behind.text,
            "1 due timer does not fire; the oldest is 1m 30s late. The scheduler is falling behind."
        );
        let gone = ["a", "b", "c", "d"].map(unserved).to_vec();
        let lone = Stuck::new(4, 20, &report(served, gone));
        assert_eq!(lone.link, TARGETS_LINK);
        assert!(lone.text.ends_with("No live instance serves the targets a, b, c and others."), "{lone:?}");
    }
}
