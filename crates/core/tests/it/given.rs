//! Jobs for tests, from short texts.

use std::time::Duration;

use everbell_core::cron::{Dst, DstFold, DstGap, Expression};
use everbell_core::{
    CatchUp, Definition, Dependency, JobId, JobKey, OnLost, Overlap, Policies, PolicyValues, Spec, Target,
    Unschedulable, Zone,
};
use jiff::Timestamp;

/// A job from `<expression> [in <zone>]` or `once <time>`, and policies as `name=value` words.
pub(crate) fn job(schedule: &str, policies: &str, created_at: Timestamp) -> Definition {
    let (expression, zone) = schedule.split_once(" in ").unwrap_or((schedule, "UTC"));
    let words: Vec<(&str, &str)> = policies.split_whitespace().map(|word| word.split_once('=').unwrap()).collect();
    let word = |name: &str| words.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
    let dst = Dst {
        gap: word("dstGap").and_then(DstGap::from_word).unwrap_or_default(),
        fold: word("dstFold").and_then(DstFold::from_word).unwrap_or_default(),
    };
    let bound = |name| word(name).map(|text: &str| text.parse::<Timestamp>().unwrap());
    let spec = Zone::get(zone)
        .map_err(|error| Unschedulable {
            expression: Some(expression.to_owned()),
            timezone: zone.to_owned(),
            reason: error.to_string(),
            ..Unschedulable::default()
        })
        .map(|zone| match expression.strip_prefix("once ") {
            Some(at) => Spec::once(at.parse().unwrap(), zone).unwrap(),
            None => Spec::recurring(expression.parse::<Expression>().unwrap(), zone, created_at),
        })
        .map(|spec| spec.with_dst(dst).with_bounds(bound("startAt"), bound("endAt")).unwrap());
    everbell_core::with!(Definition {
        policies: policies_of(&words),
        labels: std::collections::BTreeMap::new(),
        created_by: "test".to_owned(),
        ..Definition::new(
            JobId::new("2026-01-01T00:00:00Z".parse().unwrap(), [7; 10]),
            JobKey::new("job").unwrap(),
            Target::new("log").unwrap(),
            spec,
            created_at
        )
    })
}

fn policies_of(words: &[(&str, &str)]) -> Policies {
    let mut values = PolicyValues::default();
    for (name, value) in words {
        let seconds = || Duration::from_secs(value.parse().unwrap());
        match *name {
            "overlap" => values.overlap = Overlap::from_word(value).unwrap(),
            "max" => values.max_concurrent_runs = value.parse().unwrap(),
            "catchUp" => values.catch_up = CatchUp::from_word(value).unwrap(),
            "limit" => values.catch_up_limit = value.parse().unwrap(),
            "window" => values.catch_up_window = Some(seconds()),
            "grace" => values.grace = seconds(),
            "jitter" => values.jitter = seconds(),
            "timeout" => values.timeout = seconds(),
            "attempts" => values.max_attempts = value.parse().unwrap(),
            "pauseAfter" => values.pause_after_failures = Some(value.parse().unwrap()),
            "onLost" => values.on_lost = OnLost::from_word(value).unwrap(),
            "priority" => values.priority = value.parse().unwrap(),
            "dependsOn" => {
                let within = Duration::from_hours(1);
                values.depends_on = Some(Dependency { job_key: JobKey::new(value).unwrap(), within });
            }
            "dstGap" | "dstFold" | "startAt" | "endAt" => {}
            other => panic!("`{other}` is not a policy"),
        }
    }
    Policies::new(values).unwrap()
}
