//! The pages, in a real browser: what a person sees and does, and what the browser itself complains about.
//!
//! [`browser`] has the words for tests; [`visitor`] sees pages over HTTP, as a browser without scripts would. Nothing but Debian's `chromium` and `chromedriver` is needed.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod acting;
mod action;
mod browser;
mod bulk;
mod docs;
mod driver;
mod history;
mod house;
mod import;
mod jobs;
mod judged;
mod keys;
mod lint;
mod living;
mod looks;
mod make;
mod narrow;
mod org_acting;
mod org_jobs;
mod orgs;
mod people;
mod pictures;
mod run;
mod runs;
mod sayings;
mod signing_in;
mod staying;
pub(crate) mod visitor;
mod waiting;
mod walked;
mod whole;
