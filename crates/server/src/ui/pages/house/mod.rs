//! The house itself: who works in it, what it can do, what was done, and who may come in.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod settings;
pub(crate) mod targets;
