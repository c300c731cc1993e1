//! Live updates send only what changed.
//!
//! Each part of a page that may change is a region (`data-region`), and a list or a chart inside of it has rows (`data-row`).
//! Both get a short hash of their content. A script that asks for the page again sends the hashes that it has: a region that it
//! has is left out, and of a row that it has only the name is sent. Counting texts such as `3m ago` are not hashed,
//! because scripts keep them up to date.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The header with the hashes that a page has, separated by spaces.
pub(crate) const HAVE: &str = "x-everbell-have";

/// The most hashes that are read: more than a page has.
const MAX_HASHES: usize = 2_000;

/// Marks the regions and rows of a page with their hashes.
pub(crate) fn stamp(html: &str) -> String {
    let mut stamped = String::with_capacity(html.len() + html.len() / 50);
    let mut done = 0;
    for region in regions(html) {
        stamped.push_str(&html[done..region.start]);
        write_region(&mut stamped, &html[region.start..region.end], None);
        done = region.end;
    }
    stamped.push_str(&html[done..]);
    stamped
}

/// Returns the regions of a page that differ from those with these hashes, as a page of their own, with the CSRF token
/// that forms of the page need after another sign-in.
pub(crate) fn changed(html: &str, have: &str) -> String {
    let have: HashSet<&str> = have.split_ascii_whitespace().take(MAX_HASHES).collect();
    let mut page = String::from("<!doctype html><title>Update</title>");
    if let Some(token) = between(html, "name=\"csrf\" value=\"", "\"") {
        page.push_str("<input type=\"hidden\" name=\"csrf\" value=\"");
        page.push_str(token);
        page.push_str("\">");
    }
    for region in regions(html) {
        let text = &html[region.start..region.end];
        if !have.contains(hash(text).as_str()) {
            write_region(&mut page, text, Some(&have));
        }
    }
    page
}

/// Where an element begins and ends.
struct Span {
    start: usize,
    end: usize,
}

/// The regions of a page that are not inside of another. Texts and attributes are escaped on pages, so `<` always begins
/// a tag.
fn regions(html: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = html[from..].find(" data-region=\"") {
        let start = html[..from + at].rfind('<').unwrap_or(from + at);
        let end = element_end(html, start).unwrap_or(from + at + 1);
        if end > start && html[start..].starts_with('<') && end > from + at + 1 {
            found.push(Span { start, end });
        }
        from = end.max(from + at + 1);
    }
    found
}

/// The end of the element that begins at `start`, behind its closing tag.
fn element_end(html: &str, start: usize) -> Option<usize> {
    let name = html[start + 1..].split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())?;
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        let next_close = html[at..].find(&close)? + at;
        let opened = html[at..next_close].match_indices(&open).filter(|(index, _)| {
            let behind = html[at + index + open.len()..].chars().next();
            behind.is_some_and(|c| !c.is_ascii_alphanumeric() && c != '-')
        });
        depth += opened.count();
        depth = depth.checked_sub(1)?;
        at = next_close + close.len();
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Writes a region with hashes. Of rows that are known already only the name is written.
fn write_region(page: &mut String, region: &str, have: Option<&HashSet<&str>>) {
    let tag_end = region.find('>').unwrap_or(region.len());
    page.push_str(&region[..tag_end]);
    push_hash(page, &hash(region));
    let mut rest = &region[tag_end..];
    while let Some(named) = rest.find(" data-row=\"") {
        let Some(at) = rest[..named].rfind('<') else { break };
        let Some(end) = element_end(rest, at).filter(|end| *end > named) else { break };
        let row = &rest[at..end];
        let row_tag_end = row.find('>').unwrap_or(row.len());
        let own = hash(row);
        page.push_str(&rest[..at]);
        page.push_str(&row[..row_tag_end]);
        push_hash(page, &own);
        if have.is_some_and(|have| have.contains(own.as_str())) {
            let name = row[1..].split(' ').next().unwrap_or_default();
            page.push_str(" data-same></");
            page.push_str(name);
            page.push('>');
        } else {
            page.push_str(&row[row_tag_end..]);
        }
        rest = &rest[end..];
    }
    page.push_str(rest);
}

fn push_hash(page: &mut String, hash: &str) {
    page.push_str(" data-hash=\"");
    page.push_str(hash);
    page.push('"');
}

/// A hash of what people see, without what counts on by itself, keys that are used once and CSRF tokens.
fn hash(html: &str) -> String {
    let mut hash = Sha256::new();
    let mut rest = html;
    loop {
        let away = rest.find("<span class=\"away\"").map(|at| (at, '>', '<'));
        let once = rest.find("name=\"once\" value=\"").map(|at| (at + "name=\"once\" value=".len(), '"', '"'));
        let csrf = rest.find("name=\"csrf\" value=\"").map(|at| (at + "name=\"csrf\" value=".len(), '"', '"'));
        let Some((at, open, close)) = [away, once, csrf].into_iter().flatten().min_by_key(|(at, ..)| *at) else {
            break;
        };
        let Some(begin) = rest[at..].find(open).map(|begin| at + begin + 1) else { break };
        let Some(end) = rest[begin..].find(close).map(|end| begin + end) else { break };
        hash.update(&rest[..begin]);
        rest = &rest[end..];
    }
    hash.update(rest);
    URL_SAFE_NO_PAD.encode(&hash.finalize()[..6])
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "<body><div id=\"nav\" data-region=\"nav\"><div>3 jobs</div></div>\
        <form><input name=\"csrf\" value=\"token\"></form>\
        <section id=\"jobs\" data-region=\"jobs\"><table>\
        <tr data-row=\"a\"><td>one <span class=\"away\" data-at=\"1\">3m ago</span></td></tr>\
        <tr data-row=\"b\"><td>two</td></tr></table></section><footer></footer></body>";

    /// The hashes of a stamped page.
    fn hashes(stamped: &str) -> String {
        let found = stamped.split("data-hash=\"").skip(1).filter_map(|rest| rest.split('"').next());
        found.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stamping_changes_nothing_else() {
        let stamped = stamp(PAGE);
        assert_eq!(hashes(&stamped).split(' ').count(), 4);
        let mut plain = stamped;
        while let Some(hash) = between(&plain, " data-hash=\"", "\"").map(str::to_owned) {
            plain = plain.replace(&format!(" data-hash=\"{hash}\""), "");
        }
        assert_eq!(plain, PAGE);
    }

    #[test]
    fn only_what_changed_is_sent() {
        let have = hashes(&stamp(PAGE));
        let same = changed(PAGE, &have);
        assert!(!same.contains("data-region") && same.contains("value=\"token\""), "{same}");
        let later = changed(&PAGE.replace("3m ago", "4m ago"), &have);
        assert!(!later.contains("data-region"), "counting is not a change: {later}");
        let form = PAGE.replace("3 jobs", "<input name=\"csrf\" value=\"token\">3 jobs");
        let masked = changed(&form.replace("token", "another"), &hashes(&stamp(&form)));
        assert!(!masked.contains("data-region"), "another mask of a token is not a change: {masked}");
        let edited = changed(&PAGE.replace("two", "deux"), &have);
        assert!(edited.contains("id=\"jobs\"") && !edited.contains("id=\"nav\""), "{edited}");
        assert!(edited.contains("deux") && !edited.contains("one") && edited.contains("data-row=\"a\""), "{edited}");
        assert!(changed(PAGE, "").contains("3 jobs"), "a page without hashes gets all");
    }

    #[test]
    fn rows_of_a_chart_have_groups_inside() {
        let chart = |second: &str| {
            format!(
                "<section id=\"card\" data-region=\"card\"><svg><g transform=\"translate(0 8)\"><g data-row=\"a\"><g><path/></g>\
                 one</g></g><g data-row=\"b\">{second}</g></svg></section>"
            )
        };
        let later = changed(&chart("deux"), &hashes(&stamp(&chart("two"))));
        assert!(later.contains("data-same></g></g><g data-row=\"b\"") && later.contains("deux</g></svg>"), "{later}");
        assert!(!later.contains("one"), "{later}");
    }

    #[test]
    fn regions_end_where_their_element_ends() {
        let nested = "<div data-region=\"a\" id=\"a\"><div><div></div></div><divan></divan></div><div>b</div>";
        let found = regions(nested);
        assert_eq!(found.len(), 1);
        assert_eq!(&nested[found[0].end..], "<div>b</div>");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(html in "(<div|</div>| data-region=\"|>|\"|a|<tr data-row=\"|</tr>|<span class=\"away\"|é){0,40}") {
            let stamped = stamp(&html);
            let _ = changed(&html, &hashes(&stamped));
        }
    }
}
