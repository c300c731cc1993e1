//! [`Edit`]: the difference between a version of a job and the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calendar::Calendar;
use crate::ids::Target;
use crate::job::{Scope, Source};
use crate::json::Json;
use crate::policy::Policies;
use crate::spec::Spec;

/// The differences between a version and the next one. `None` keeps the current value.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The new target.
    pub target: Option<Target>,
    /// The new payload.
    pub payload: Option<Json>,
    /// Another schedule.
    pub spec: Option<Spec>,
    /// Other policies.
    pub policies: Option<Policies>,
    /// Another text for people.
    pub description: Option<String>,
    /// Other labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Another owner of the definition.
    pub source: Option<Source>,
    /// One timer instead of one for each org, or the other way round.
    pub scope: Option<Scope>,
    /// The current calendars. The next version gets the days of those that it names.
    pub calendars: Vec<Arc<Calendar>>,
}
