//! The policies of a job as fields of a form: their names, what they mean in words, and what is usual.

/// A field of the form, which is named after the member that it becomes.
#[derive(Debug)]
pub(crate) struct Knob {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: Kind,
    /// What happens if it says nothing.
    pub(crate) usual: &'static str,
    pub(crate) note: &'static str,
}

/// What a field holds.
#[derive(Debug)]
pub(crate) enum Kind {
    /// One of these words, each with its meaning; the first is usual.
    Words(&'static [(&'static str, &'static str)]),
    /// A whole number.
    Number,
    /// A duration.
    Span,
    Text,
}

/// Fields that belong together.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) knobs: &'static [Knob],
}

const fn knob(name: &'static str, label: &'static str, kind: Kind, usual: &'static str, note: &'static str) -> Knob {
    Knob { name, label, kind, usual, note }
}

const OVERLAP: Kind = Kind::Words(&[
    ("skip", "Skip the slot"),
    ("queue", "Let it wait for its turn"),
    ("replace", "Cancel the active run and take its place"),
    ("allow", "Let both run"),
]);
const CATCH_UP: Kind = Kind::Words(&[
    ("once", "Run once, for the latest"),
    ("none", "Let them pass"),
    ("all", "Run each, the oldest first"),
]);
const LEASE_LOSS: Kind = Kind::Words(&[
    ("", "Stop it, unless both may run"),
    ("stop", "Stop it before the next run may start"),
    ("continue", "Let it continue, even beside the next run"),
]);
const GAP: Kind = Kind::Words(&[("shift", "Fire right after the gap"), ("skip", "Do not fire")]);
const FOLD: Kind =
    Kind::Words(&[("first", "Fire the first time"), ("last", "Fire the second time"), ("both", "Fire both times")]);

/// Every policy.
#[rustfmt::skip]
pub(crate) const GROUPS: [Group; 5] = [
    Group { title: "While an earlier run is active", knobs: &[
        knob("policies/overlap", "A slot comes while a run is active", OVERLAP, "skip", "What is skipped is recorded, with the run that was in the way."),
        knob("policies/maxConcurrentRuns", "Runs at the same time", Kind::Number, "1", "So many may be active before the rule above is asked."),
        knob("policies/onLeaseLoss", "An instance cannot reach the database", LEASE_LOSS, "", "After 45 s by default. Its runs are tried again if attempts are left. With SQLite nothing is stopped. A called service that ignores a closed connection, or a Rust handler that blocks its thread, cannot be stopped."),
    ] },
    Group { title: "When slots were missed", knobs: &[
        knob("policies/catchUp", "Nothing was running when slots came", CATCH_UP, "once", "Missed slots that get no run are recorded as a gap."),
        knob("policies/catchUpLimit", "At most so many runs", Kind::Number, "100", "For “run each”: the newest are kept."),
        knob("policies/catchUpWindow", "Only slots younger than", Kind::Span, "any age", "Older ones are not caught up."),
        knob("policies/grace", "On time within", Kind::Span, "1m", "A slot younger than this is late, not missed."),
    ] },
    Group { title: "How long, how often", knobs: &[
        knob("policies/timeout", "Timeout", Kind::Span, "15m", "A run that takes longer is stopped and has failed."),
        knob("policies/retry/maxAttempts", "Attempts", Kind::Number, "1", "How often a run is tried until it succeeds."),
        knob("policies/retry/initial", "Wait before the second attempt", Kind::Span, "10s", "Twice as long before each further one."),
        knob("policies/retry/max", "Longest wait", Kind::Span, "1h", "Waits grow no longer than this."),
        knob("policies/pauseAfterFailures", "Pause after failures in a row", Kind::Number, "never", "So many failed runs pause the job."),
        knob("policies/jitter", "Jitter", Kind::Span, "none", "Each slot is delayed by a share of this, to spread the load."),
    ] },
    Group { title: "Only after another job", knobs: &[
        knob("policies/dependsOn/jobKey", "That job must have succeeded", Kind::Text, "no job", "Else the slot is skipped."),
        knob("policies/dependsOn/within", "Within the last", Kind::Span, "", "Such as 24h."),
    ] },
    Group { title: "When clocks change", knobs: &[
        knob("policies/dst/gap", "A local time does not exist", GAP, "shift", "When clocks go forward."),
        knob("policies/dst/fold", "A local time happens twice", FOLD, "first", "When clocks go back."),
    ] },
];

/// Every field of every group.
pub(crate) fn all() -> impl Iterator<Item = &'static Knob> {
    GROUPS.iter().flat_map(|group| group.knobs)
}

#[cfg(test)]
mod tests {
    use everbell_core::cron::{DstFold, DstGap};
    use everbell_core::{CatchUp, Overlap, PolicyValues};

    use super::super::draft::friendly;
    use super::*;
    use crate::form::job::JOB;
    use crate::form::{Field, Kind as Member};

    fn usual(name: &str) -> &'static str {
        all().find(|knob| knob.name == name).map(|knob| knob.usual).unwrap()
    }

    #[test]
    fn every_member_of_the_policies_has_a_field() {
        fn names(path: &str, fields: &[Field], all: &mut Vec<String>) {
            for field in fields {
                let path = if path.is_empty() { field.name.to_owned() } else { format!("{path}/{}", field.name) };
                match field.kind {
                    Member::Object(inner) => names(&path, inner, all),
                    _ => all.push(path),
                }
            }
        }
        let mut wanted = Vec::new();
        names("", JOB, &mut wanted);
        wanted.retain(|name| name.starts_with("policies/"));
        let mut found: Vec<&str> = all().map(|knob| knob.name).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_said_to_be_usual_is() {
        let values = PolicyValues::default();
        for (name, expected) in [
            ("policies/maxConcurrentRuns", values.max_concurrent_runs.to_string()),
            ("policies/catchUpLimit", values.catch_up_limit.to_string()),
            ("policies/grace", friendly(values.grace)),
            ("policies/timeout", friendly(values.timeout)),
            ("policies/retry/maxAttempts", values.max_attempts.to_string()),
            ("policies/retry/initial", friendly(values.backoff.initial)),
            ("policies/retry/max", friendly(values.backoff.max)),
        ] {
            assert_eq!(usual(name), expected, "{name}");
        }
        for (name, words) in [
            ("policies/overlap", Overlap::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()),
            ("policies/catchUp", CatchUp::ALL.iter().map(|word| word.as_str()).collect()),
            ("policies/dst/gap", DstGap::ALL.iter().map(|word| word.as_str()).collect()),
            ("policies/dst/fold", DstFold::ALL.iter().map(|word| word.as_str()).collect()),
        ] {
            let knob = all().find(|knob| knob.name == name).unwrap();
            let Kind::Words(known) = knob.kind else { panic!("{name} has no words") };
            assert_eq!(known.iter().map(|(word, _)| *word).collect::<Vec<_>>(), words, "{name}");
            assert_eq!(knob.usual, words[0]);
        }
    }
}
