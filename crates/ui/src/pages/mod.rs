//! The pages: one file each, with one template of the same name.

pub(super) mod action;
pub(super) mod choices;
pub(super) mod events;
pub(super) mod house;
pub(super) mod job;
pub(super) mod jobs;
pub(super) mod make;
pub(super) mod orgs;
pub(super) mod overview;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod sign_in;
pub(super) mod timeline;
