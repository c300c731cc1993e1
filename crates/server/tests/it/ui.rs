//! The pages, in a real browser: what a person sees and does, and what the browser itself complains about.
//!
//! [`browser`] has the words for tests; [`visitor`] sees pages over HTTP, as a browser without scripts would. Nothing but Debian's `chromium-headless-shell` and `chromedriver` is needed.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod actions;
mod appearance;
mod blocked_jobs;
mod browser;
mod browser_tests;
mod bulk;
mod calendars;
mod cluster;
mod dashboard;
mod docs;
mod driver;
mod embedded;
mod history;
mod import;
mod job_form;
mod jobs;
mod journeys;
mod keys;
mod links;
mod lint;
mod lint_tests;
mod live_updates;
mod messages;
mod narrow;
mod org_jobs;
mod org_journeys;
mod orgs;
mod page_weights;
mod palette;
mod past_week;
mod people;
mod pictures;
mod preserved_state;
mod problems;
mod refresh;
mod run;
mod runs;
mod signing_in;
mod targets;
mod timeline;
pub(crate) mod visitor;
