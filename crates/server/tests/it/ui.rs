//! The pages, in a real browser: what a person sees and does, and what the browser itself complains about.
//!
//! [`browser`] has the words for tests. Nothing but Debian's `chromium` and `chromedriver` is needed.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod browser;
mod docs;
mod driver;
mod judged;
mod keys;
mod lint;
mod looks;
mod pictures;
mod walked;
