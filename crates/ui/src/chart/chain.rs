//! The jobs of a chain as boxes, one below the other, with arrows from each job to those that start after it.
//!
//! A job is always below the jobs that it starts after, so every arrow points down: a short one between neighbors, and
//! others in lanes left of the boxes. The picture is narrow enough for a phone.

use super::svg::{Markup, Path, Picture, Size, real};
use super::words::shortened;

/// The input of a chain.
pub(crate) struct ChainPicture<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// The key of the job whose chain it is.
    pub(crate) job: &'a str,
    /// Each after the jobs that it starts after.
    pub(crate) boxes: &'a [ChainBox],
}

/// A job of a chain.
pub(crate) struct ChainBox {
    pub(crate) key: String,
    pub(crate) href: String,
    pub(crate) arrows: Vec<ChainArrow>,
}

/// An arrow to a job from one that it starts after.
pub(crate) struct ChainArrow {
    /// The place of that job among the boxes.
    pub(crate) from: usize,
    pub(crate) condition: Condition,
}

/// The outcome that starts the next job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Success,
    Failure,
    Any,
}

impl Condition {
    const fn verb(self) -> &'static str {
        match self {
            Condition::Success => "succeeds",
            Condition::Failure => "fails",
            Condition::Any => "ends",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Condition::Success => "c-arrow c-on-success",
            Condition::Failure => "c-arrow c-on-failure",
            Condition::Any => "c-arrow c-on-any",
        }
    }
}

const WIDTH: f64 = 340.0;
const BOX_HEIGHT: f64 = 44.0;
const GAP: f64 = 18.0;
const LANE: f64 = 12.0;
/// The most lanes; arrows beyond share the last one.
const MAX_LANES: usize = 6;
/// The most characters of a key and of its rule.
const MAX_KEY: usize = 34;
const MAX_RULE: usize = 46;

/// The picture.
pub(crate) fn chain(input: &ChainPicture<'_>) -> String {
    let boxes = input.boxes;
    let sentences: Vec<String> = boxes.iter().map(|one| line(one, boxes)).collect();
    let height = real(i64::try_from(boxes.len()).unwrap_or(0)) * (BOX_HEIGHT + GAP) - GAP + 2.0;
    let picture = Picture {
        id: input.id,
        class: "c-chain",
        title: &format!("Chain of {}", input.job),
        summary: &format!("{}.", sentences.join("; ")),
        linked: true,
        size: Size::Scaled(WIDTH, height.max(BOX_HEIGHT)),
    };
    let lanes = lanes(boxes);
    let left = lanes
        .iter()
        .flatten()
        .filter_map(|lane| *lane)
        .max()
        .map_or(1.0, |most| LANE * (real(i64::try_from(most).unwrap_or(0)) + 1.0) + 8.0);
    let mut markup = Markup::default();
    picture.draw(&mut markup, |markup| {
        for (n, one) in boxes.iter().enumerate() {
            for (arrow, lane) in one.arrows.iter().zip(&lanes[n]) {
                draw_arrow(markup, arrow, n, *lane, left);
            }
        }
        for (n, one) in boxes.iter().enumerate() {
            draw_box(markup, one, n, left, one.key == input.job, &rule(one, boxes));
        }
    });
    markup.finish()
}

/// `when a succeeds and b fails`; empty for the first job.
fn rule(one: &ChainBox, boxes: &[ChainBox]) -> String {
    let part = |arrow: &ChainArrow| {
        let key = boxes.get(arrow.from).map_or("", |parent| parent.key.as_str());
        format!("{key} {}", arrow.condition.verb())
    };
    let parts: Vec<String> = one.arrows.iter().map(part).collect();
    if parts.is_empty() { String::new() } else { format!("when {}", parts.join(" and ")) }
}

/// The job and its rule in one sentence.
fn line(one: &ChainBox, boxes: &[ChainBox]) -> String {
    match rule(one, boxes) {
        rule if rule.is_empty() => format!("{} begins", one.key),
        rule => format!("{} starts {rule}", one.key),
    }
}

/// The lane of each arrow; `None` for one between neighbors. Arrows whose spans overlap get different lanes.
fn lanes(boxes: &[ChainBox]) -> Vec<Vec<Option<usize>>> {
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut lane_of = |from: usize, to: usize| {
        if to <= from + 1 {
            return None;
        }
        let is_free = |spans: &Vec<(usize, usize)>| spans.iter().all(|(start, end)| *end <= from || to <= *start);
        let lane = taken.iter().position(is_free).unwrap_or(taken.len()).min(MAX_LANES - 1);
        if lane == taken.len() {
            taken.push(Vec::new());
        }
        taken[lane].push((from, to));
        Some(lane)
    };
    let of = |(to, one): (usize, &ChainBox)| one.arrows.iter().map(|arrow| lane_of(arrow.from, to)).collect();
    boxes.iter().enumerate().map(of).collect()
}

/// The upper edge of a box.
fn top(n: usize) -> f64 {
    real(i64::try_from(n).unwrap_or(0)) * (BOX_HEIGHT + GAP) + 1.0
}

fn draw_arrow(markup: &mut Markup, arrow: &ChainArrow, to: usize, lane: Option<usize>, left: f64) {
    let (end, path) = match lane {
        None => {
            let x = left + 20.0;
            ((x, top(to)), Path::line((x, top(arrow.from) + BOX_HEIGHT), (x, top(to) - 5.0)))
        }
        Some(lane) => {
            let x = left - 8.0 - LANE * real(i64::try_from(lane).unwrap_or(0));
            let (from, into) = (top(arrow.from) + BOX_HEIGHT * 0.7, top(to) + BOX_HEIGHT * 0.3);
            let mut path = Path::default();
            path.step('M', &[left, from]);
            path.step('H', &[x]);
            path.step('V', &[into]);
            path.step('H', &[left - 5.0]);
            ((left, into), path)
        }
    };
    markup.element("path").class(arrow.condition.class()).attr("d", &path).empty();
    let mut head = Path::default();
    let (x, y) = end;
    head.step('M', &[x, y]);
    if lane.is_none() {
        head.step('L', &[x - 4.0, y - 7.0]);
        head.step('L', &[x + 4.0, y - 7.0]);
    } else {
        head.step('L', &[x - 7.0, y - 4.0]);
        head.step('L', &[x - 7.0, y + 4.0]);
    }
    head.step('Z', &[]);
    markup.element("path").class("c-head").attr("d", &head).empty();
}

fn draw_box(markup: &mut Markup, one: &ChainBox, n: usize, left: f64, is_own: bool, rule: &str) {
    // The texts of the box are the name of the link.
    let link = markup.element("a").attr("href", one.href.as_str());
    let link = if is_own { link.attr("aria-current", "true") } else { link };
    link.inside(|markup| {
        let class = if is_own { "c-box c-this" } else { "c-box" };
        let shape = markup.element("rect").class(class).attr("x", left).attr("y", top(n)).attr("rx", 6.0);
        shape.attr("width", WIDTH - left - 1.0).attr("height", BOX_HEIGHT).empty();
        let (x, middle) = (left + 32.0, top(n) + BOX_HEIGHT / 2.0);
        let key = shortened(&one.key, MAX_KEY);
        let at = if rule.is_empty() { middle + 5.0 } else { middle - 3.0 };
        let class = if is_own { "c-key c-this-key" } else { "c-key" };
        markup.element("text").class(class).attr("x", x).attr("y", at).text(&key);
        if !rule.is_empty() {
            markup.text(" ");
            markup.element("text").class("c-t").attr("x", x).attr("y", middle + 13.0).text(&shortened(rule, MAX_RULE));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job, and the places of those that it starts after.
    pub(super) fn boxes(jobs: &[(&str, &[usize])]) -> Vec<ChainBox> {
        let arrow = |from: &usize| ChainArrow { from: *from, condition: Condition::Success };
        let one = |(key, parents): &(&str, &[usize])| ChainBox {
            key: (*key).to_owned(),
            href: format!("/jobs/{key}"),
            arrows: parents.iter().map(arrow).collect(),
        };
        jobs.iter().map(one).collect()
    }

    #[test]
    fn neighbors_are_joined_directly_and_others_by_lanes() {
        let forked = boxes(&[("a", &[]), ("b", &[0]), ("c", &[0]), ("d", &[1, 2])]);
        assert_eq!(lanes(&forked), [vec![], vec![None], vec![Some(0)], vec![Some(1), None]]);
        let wide = boxes(&[("a", &[]), ("b", &[0]), ("c", &[0]), ("d", &[2]), ("e", &[2])]);
        assert_eq!(lanes(&wide)[4], [Some(0)], "a lane is used again below");
        let many: Vec<(&str, &[usize])> = (0..20).map(|_| ("x", &[0][..])).collect();
        let lanes = lanes(&boxes(&many));
        assert!(lanes.iter().flatten().flatten().all(|lane| *lane < MAX_LANES));
    }

    #[test]
    fn picture_says_in_words_what_it_shows() {
        let html =
            chain(&ChainPicture { id: "chain", job: "d", boxes: &boxes(&[("a", &[]), ("b", &[0]), ("d", &[0, 1])]) });
        assert!(
            html.contains("a begins; b starts when a succeeds; d starts when a succeeds and b succeeds."),
            "{html}"
        );
        assert!(html.contains("href=\"/jobs/b\"") && html.contains("aria-current=\"true\""), "{html}");
        assert_eq!(html.matches("c-head").count(), 3, "{html}");
    }
}
