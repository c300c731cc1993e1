use super::*;
use everbell_http::api::bulk::BULK;

fn rows(outcomes: &[(&str, bool)]) -> Vec<Row> {
    let row = |(word, soon): &(&str, bool)| Row {
        key: "a".to_owned(),
        part: "a".to_owned(),
        outcome: Outcome::from(&BulkOutcome::from_word(word)),
        class: "",
        word: "",
        detail: None,
        next: None,
        soon: *soon,
    };
    outcomes.iter().map(row).collect()
}

/// A filter that is unknown here would be ignored, and more jobs changed than listed.
#[test]
fn every_filter_of_the_list_is_known() {
    let no_filters = ["sort", "limit", "cursor", "jobKey"];
    for field in everbell_http::api::jobs::LIST.iter().filter(|field| !no_filters.contains(&field.name)) {
        assert!(QUERY.iter().any(|own| own.name == field.name), "{}", field.name);
        let known = |own: &&Field| own.name == "filter";
        let Some(Kind::Component(_, fields)) = BULK.iter().find(known).map(|own| &own.kind) else {
            panic!("no filter")
        };
        assert!(fields.iter().any(|own| own.name == field.name), "{} of the API", field.name);
    }
}

#[test]
fn the_whole_effect_is_one_sentence() {
    let impact_of = |outcomes: &[(&str, bool)], act| impact(&rows(outcomes), act, false);
    let (soon, late) = (("would_change", true), ("would_change", false));
    assert_eq!(
        impact_of(&[soon, late, late], Act::Pause),
        "This pauses 3 active jobs; 1 of them runs within the next hour."
    );
    assert_eq!(impact_of(&[late], Act::Resume), "This resumes 1 paused job; none of them runs within the next hour.");
    assert_eq!(
        impact_of(&[soon, soon, ("unchanged", true)], Act::Pause),
        "This pauses 2 active jobs; 2 of them run within the next hour. 1 job is unchanged."
    );
    assert_eq!(impact_of(&[("unchanged", false); 2], Act::Pause), "Nothing would change. 2 jobs are unchanged.");
    assert_eq!(
        impact(&rows(&[("changed", false), ("failed", false)]), Act::Pause, true),
        "1 job paused. 1 job failed."
    );
    assert_eq!(
        impact_of(&[soon, late], Act::Retire),
        "This retires 2 jobs, which is final; 1 of them runs within the next hour."
    );
}
