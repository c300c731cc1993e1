//! What jobs, calendars and targets look like in request bodies and as blocks of a configuration file: the tables of their
//! members, and how they are read and written.

pub mod calendar;
pub mod definition;
pub mod job;
pub mod target;
