//! Documents of the API from types of the library. Those from types of core are made in `everbell_wire`.

mod backfill;
mod explanation;
mod what_if;

use everbell::client::OrgUpdateStarted;
use everbell_wire as wire;

pub use backfill::{backfill_plan, backfill_report, backfill_size, begun_backfill, begun_backfill_of_all};
pub use explanation::{describe, explanation};
pub use what_if::what_if;

/// An update of every org that was begun.
pub fn begun_org_update(begun: &OrgUpdateStarted) -> wire::OrgUpdateStarted {
    wire::OrgUpdateStarted { id: begun.id.to_string(), done: begun.done }
}
