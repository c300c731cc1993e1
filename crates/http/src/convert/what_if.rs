//! Previews of org moves.

use everbell::Org;
use everbell::client::JobWhatIf;
use everbell::core::org::{Day, Verdict};
use everbell_core::{Spec, Zone};
use everbell_wire as wire;
use jiff::Timestamp;

/// Converts the preview of a move to this zone.
pub fn what_if(org: &Org, zone: &Zone, jobs: &[JobWhatIf], now: Timestamp) -> wire::WhatIf {
    wire::WhatIf {
        org_id: org.id.to_string(),
        at: now,
        timezone_before: org.place.timezone.clone(),
        timezone_after: zone.name().to_owned(),
        jobs: jobs.iter().map(job_what_if).collect(),
    }
}

fn job_what_if(moved: &JobWhatIf) -> wire::JobWhatIf {
    let JobWhatIf { job, here, there, what_if, .. } = moved;
    let fires = |spec: &Option<Spec>, times: &[Timestamp]| -> Vec<wire::Fire> {
        let spec = spec.as_ref();
        spec.map_or_else(Vec::new, |spec| times.iter().map(|at| wire::Fire::new(spec, *at)).collect())
    };
    let again = what_if.days.iter().any(|day| day.verdict == Verdict::Twice);
    wire::JobWhatIf {
        job_key: job.job.definition.key.to_string(),
        job_id: job.job.definition.id.to_string(),
        before: fires(here, &what_if.before),
        after: fires(there, &what_if.after),
        days: what_if.days.iter().map(wire::WhatIfDay::from).collect(),
        would_fire_again: again,
        sentence: sentence(there.as_ref(), &what_if.after, &what_if.days, again),
    }
}

/// A summary for people who are about to move an org.
fn sentence(there: Option<&Spec>, fires: &[Timestamp], days: &[Day], again: bool) -> String {
    let Some((spec, next)) = there.zip(fires.first()) else { return "The job would not fire.".to_owned() };
    let local = next.to_zoned(spec.zone().as_jiff().clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let next = format!("The next run would be at {local} {}.", spec.zone());
    if !spec.at_most_daily() {
        return format!("The job fires more than once a day. {next}");
    }
    let said = format!("Would fire again today: {}.", if again { "yes" } else { "no" });
    if let Some(day) = days.iter().find(|day| day.verdict == Verdict::AtOnce) {
        return format!("{said} {} would run immediately, because its local time has passed.", day.date);
    }
    if let Some(day) = days.iter().find(|day| day.verdict == Verdict::NotAtAll) {
        return format!("{said} {} would have no run. {next}", day.date);
    }
    format!("{said} {next}")
}
