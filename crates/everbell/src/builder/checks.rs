//! Checks of a builder: each notes all of its problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everbell_core::calendar::CalendarName;
use everbell_core::store::NewCalendar;
use everbell_core::{Target, nearest};

use super::{Builder, Registered};
use crate::client::listed;
use crate::extract::States;
use crate::schedule::Schedule;
use crate::targets::Targets;

/// The most known targets that a problem names.
const MAX_NAMED_TARGETS: usize = 5;

impl Builder {
    pub(super) fn check_targets(&mut self, states: &Arc<States>, problems: &mut Vec<String>) -> Targets {
        let mut targets = Targets::new(self.tracing.clone());
        for Registered { name, options, check, check_payload, erase } in std::mem::take(&mut self.targets) {
            problems.extend(check(states).into_iter().map(|missing| format!("target `{name}`: {missing}")));
            if options.concurrency == Some(0) {
                problems.push(format!("target `{name}`: concurrency must be at least 1"));
            }
            if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
                problems.push(format!("target `{name}`: timeout must be more than 0"));
            }
            match Target::new(&name) {
                Ok(target) => {
                    let action = self.layers.wrap(erase(Arc::clone(states)));
                    if !targets.add_checked(target, action, options, check_payload) {
                        problems.push(format!("target `{name}` is defined twice"));
                    }
                }
                Err(problem) => problems.push(format!("target `{}`: {}", name.escape_debug(), problem.reason)),
            }
        }
        targets
    }

    pub(super) fn check_known(&self, problems: &mut Vec<String>) -> BTreeSet<Target> {
        let checked = self.known.iter().filter_map(|name| {
            let target = Target::new(name);
            target.map_err(|why| problems.push(format!("target `{}`: {}", name.escape_debug(), why.reason))).ok()
        });
        checked.collect()
    }

    pub(super) fn check_calendars(&mut self, problems: &mut Vec<String>) -> Vec<NewCalendar> {
        let mut calendars: Vec<NewCalendar> = Vec::new();
        for (name, content) in std::mem::take(&mut self.calendars) {
            match (CalendarName::new(&name), content.check()) {
                (Ok(name), Ok(())) if calendars.iter().all(|other| other.name != name) => {
                    calendars.push(NewCalendar { name, content, source: self.source });
                }
                (Ok(name), Ok(())) => problems.push(format!("calendar `{name}` is defined twice")),
                (Err(why), _) | (_, Err(why)) => problems.push(format!("calendar `{}`: {why}", name.escape_debug())),
            }
        }
        calendars
    }

    pub(super) fn check_schedules(
        &mut self,
        known: &BTreeSet<String>,
        targets: &Targets,
        problems: &mut Vec<String>,
    ) -> Vec<Schedule> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for schedule in &self.schedules {
            let key = schedule.key().escape_debug().to_string();
            let count = counts.entry(schedule.key()).or_default();
            *count += 1;
            if *count == 2 {
                problems.push(format!("schedule `{key}` is defined twice"));
            }
            let found = schedule.check().err().unwrap_or_default();
            problems.extend(found.iter().map(|problem| format!("schedule `{key}`: {problem}")));
            if let Some(target) = schedule.target_name().filter(|target| !known.contains(*target)) {
                let names = listed(&nearest(target, known.iter().map(String::as_str), MAX_NAMED_TARGETS));
                let target = target.escape_debug();
                problems.push(format!("schedule `{key}` names unknown target `{target}`; known: {names}"));
            }
            let target = schedule.target_name().and_then(|target| Target::new(target).ok());
            if let (Some(target), Some(payload)) = (target, schedule.payload_json())
                && let Err(problem) = targets.check_payload(&target, &payload, None)
            {
                problems.push(format!("schedule `{key}`: {problem}"));
            }
        }
        std::mem::take(&mut self.schedules)
    }
}
