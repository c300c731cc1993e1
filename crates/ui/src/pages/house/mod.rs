//! The house itself: who works in it, what it can do, what was done, and who may come in.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod drain;
pub(crate) mod revoke;
pub(crate) mod settings;
pub(crate) mod targets;

/// Where a page that asks first leads back to.
struct Place(&'static str);

impl Place {
    const fn place(&self) -> &'static str {
        self.0
    }
}
