//! The pages, one file each, with a template of the same name.

pub(super) mod action;
pub(super) mod audit;
pub(super) mod calendars;
pub(super) mod choices;
pub(super) mod cluster;
pub(super) mod events;
pub(super) mod find;
pub(super) mod import;
pub(super) mod job;
pub(super) mod job_form;
pub(super) mod jobs;
pub(super) mod orgs;
pub(super) mod overview;
pub(super) mod problems;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod settings;
pub(super) mod sign_in;
pub(super) mod target_form;
pub(super) mod targets;
pub(super) mod timeline;
pub(super) mod top;

/// The page that a confirmation leads back to.
struct ReturnTo(&'static str);

impl ReturnTo {
    const fn path(&self) -> &'static str {
        self.0
    }
}
