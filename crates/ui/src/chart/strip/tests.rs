use super::*;

fn runs(count: usize, status: impl Fn(usize) -> RunStatus) -> Vec<StripRun> {
    let start: Timestamp = "2026-11-13T07:00:00Z".parse().unwrap();
    let run = |index: usize| StripRun {
        at: start + jiff::SignedDuration::from_hours(index as i64),
        status: status(index),
        took_ms: Some(2_100),
        version: 1,
        note: None,
        href: Some(format!("/runs/{index:036}")),
    };
    (0..count).map(run).collect()
}

fn drawn(size: StripSize, runs: &[StripRun]) -> String {
    let zone = Zone::get("Europe/Paris").unwrap();
    let drawn = strip(&Strip { id: "s1", job: "daily<briefing>", size, zone: &zone, runs });
    assert!(!drawn.contains("NaN") && !drawn.contains("inf") && !drawn.contains("style"), "{drawn}");
    drawn
}

#[test]
fn a_bar_says_when_how_and_how_long_and_leads_to_its_run() {
    let mut given = runs(1, |_| RunStatus::Failed);
    given[0].note = Some("<script>".to_owned());
    let drawn = drawn(StripSize::List, &given);
    let title = "2026-11-13 08:00 · failed · 2.1\u{a0}s · &lt;script&gt;";
    assert!(drawn.contains(&format!("<title>{title}</title>")), "{drawn}");
    assert!(drawn.contains(&format!("<a href=\"/runs/{:036}\" tabindex=\"-1\">", 0)), "{drawn}");
    assert!(drawn.contains("<g aria-hidden=\"true\">"), "sixty in each row are for those who point: {drawn}");
    let on_page = self::drawn(StripSize::Page, &given);
    assert!(on_page.contains(&format!("<a href=\"/runs/{:036}\" aria-label=\"{title}\">", 0)), "{on_page}");
    assert!(drawn.contains("<title id=\"s1-t\">Last runs of daily&lt;briefing&gt;</title>"), "{drawn}");
    assert!(drawn.contains("<desc id=\"s1-d\">1 failed; the newest failed.</desc>"), "{drawn}");
    // Hatched, and with a cross: not by colour alone.
    assert!(drawn.contains("fill=\"url(#s1-bad)\"") && drawn.contains("class=\"c-cap\""), "{drawn}");
}

#[test]
fn strips_end_at_the_right() {
    let given = runs(2, |_| RunStatus::Succeeded);
    let drawn = drawn(StripSize::List, &given);
    // The last of sixty slots begins at 98.33%.
    assert!(drawn.contains("x=\"98.58%\""), "{drawn}");
    assert!(drawn.contains("url(#s1-void)") && drawn.contains("width=\"96.67%\""), "{drawn}");
    assert!(!self::drawn(StripSize::List, &runs(60, |_| RunStatus::Succeeded)).contains("void"));
}

#[test]
fn only_the_newest_are_shown_and_none_is_fine() {
    let given = runs(2_000, |_| RunStatus::Succeeded);
    let shown = drawn(StripSize::Page, &given);
    assert_eq!(shown.matches("<a ").count(), 90);
    assert!(shown.contains(&format!("/runs/{:036}", 1_999)) && !shown.contains(&format!("/runs/{:036}", 1_909)));
    let none = drawn(StripSize::List, &[]);
    assert!(none.contains("role=\"img\"") && none.contains("<desc id=\"s1-d\">no runs.</desc>"), "{none}");
}

#[test]
fn heights_follow_the_median() {
    assert!((height(Some(2_000), 2_000) - 0.5).abs() < 1e-9);
    assert!((height(Some(8_000), 2_000) - 1.0).abs() < 1e-9);
    assert!(height(Some(4_000), 2_000) > height(Some(3_000), 2_000));
    for took in [None, Some(i64::MIN), Some(-1), Some(0), Some(1), Some(i64::MAX)] {
        for median in [1, 7, i64::MAX] {
            assert!((0.2..=1.0).contains(&height(took, median)), "{took:?} {median}");
        }
    }
    assert_eq!(median(&[]), 1);
}

#[test]
fn days_and_versions_are_marked_on_the_page() {
    let mut given = runs(90, |_| RunStatus::Succeeded);
    given.iter_mut().skip(40).for_each(|run| run.version = 4);
    let drawn = drawn(StripSize::Page, &given);
    assert_eq!(drawn.matches("class=\"c-sep\"").count(), 4);
    assert!(drawn.contains(">14 Nov</text>") && drawn.contains(">v4</text>"), "{drawn}");
    let in_list = self::drawn(StripSize::List, &given);
    assert!(!in_list.contains("c-sep") && !in_list.contains("c-ver"));
}

#[test]
fn daily_runs_are_separated_by_months() {
    let mut given = runs(90, |_| RunStatus::Succeeded);
    for (index, run) in given.iter_mut().enumerate() {
        run.at =
            "2026-08-20T06:00:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_hours(24 * index as i64);
    }
    let drawn = drawn(StripSize::Page, &given);
    assert_eq!(drawn.matches("class=\"c-sep\"").count(), 3);
    assert!(drawn.contains(">Sep 2026</text>"), "{drawn}");
}

#[test]
fn a_strip_is_small() {
    let mixed = runs(30, |index| if index % 7 == 0 { RunStatus::Failed } else { RunStatus::Succeeded });
    let size = drawn(StripSize::List, &mixed).len();
    assert!(size < 9_000, "{size}");
    let bare: Vec<_> = mixed.into_iter().map(|run| StripRun { href: None, ..run }).collect();
    let size = drawn(StripSize::List, &bare).len();
    assert!(size < 5_000, "{size}");
}
