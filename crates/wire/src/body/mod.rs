//! The forms of jobs, calendars and targets, which request bodies and blocks of a configuration file share: their members, and
//! how they are read and written.

pub mod calendar;
pub mod definition;
pub mod job;
pub mod target;
