//! Orgs: who is eligible, when each fires, and what a change of zone does.

mod diary;
mod properties;
mod schedule;
mod table;
mod what_if;
mod write;
