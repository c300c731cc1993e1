//! Every chart with ordinary and extreme data: held to the rules of all charts, and as a page to look at.
//!
//! `EVERBELL_CHARTS=DIR cargo nextest run -p everbell-server gallery` writes `light.html` and `dark.html` there.

mod scenes;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = include_str!("../../assets/ui/chart.css");
const THEME: &str = include_str!("gallery/theme.css");

/// A part of the page.
struct Scene {
    title: &'static str,
    wide: bool,
    html: String,
}

fn page(theme: &str, scenes: &[Scene]) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\" data-theme=\"{theme}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'self' file:\"><title>Charts</title><link rel=\"stylesheet\" \
         href=\"theme.css\"><link rel=\"stylesheet\" href=\"chart.css\"></head><body><main>"
    );
    for Scene { title, wide, html: scene } in scenes {
        let class = if *wide { " class=\"wide\"" } else { "" };
        write!(html, "<section{class}><h2>{title}</h2>{scene}</section>").unwrap();
    }
    html.push_str("</main></body></html>");
    html
}

#[test]
fn the_gallery_is_written_where_it_is_asked_for() {
    let scenes = scenes::all();
    let (light, dark) = (page("light", &scenes), page("dark", &scenes));
    assert!(scenes.iter().all(|scene| light.contains(&scene.html) && dark.contains(scene.title)));
    let Some(folder) = std::env::var_os("EVERBELL_CHARTS") else { return };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).unwrap();
    for (name, text) in
        [("light.html", light), ("dark.html", dark), ("chart.css", STYLE.to_owned()), ("theme.css", THEME.to_owned())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// The values of an attribute, wherever it stands.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    html.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Tags in order: their name, and whether they open, close or do both.
fn tags(html: &str) -> impl Iterator<Item = (&str, bool, bool)> {
    html.split('<').skip(1).map(|tag| {
        let tag = tag.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        (name, tag.starts_with('/'), tag.ends_with('/'))
    })
}

#[test]
fn every_element_is_closed() {
    for Scene { title, html, .. } in scenes::all() {
        let mut open = Vec::new();
        for (name, closes, empty) in tags(&html) {
            match (closes, empty) {
                (true, _) => assert_eq!(open.pop(), Some(name), "{title}"),
                (false, false) => open.push(name),
                (false, true) => {}
            }
        }
        assert_eq!(open, [""; 0], "{title}");
    }
}

#[test]
fn ids_are_unique_and_everything_that_is_named_exists() {
    let html: String = scenes::all().into_iter().map(|scene| scene.html).collect();
    let ids = values(&html, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    let uses = values(&html, "fill").into_iter().filter_map(|fill| fill.strip_prefix("url(#")?.strip_suffix(')'));
    let shapes = values(&html, "href").into_iter().filter_map(|href| href.strip_prefix('#'));
    let labels = values(&html, "aria-labelledby").into_iter().chain(values(&html, "aria-describedby"));
    let mut named = 0;
    for name in uses.chain(shapes).chain(labels) {
        assert!(unique.contains(name), "{name}");
        named += 1;
    }
    assert!(named > 100, "{named}");
}

/// The policy of the pages allows neither, and text that came from outside is text.
#[test]
fn nothing_is_inline() {
    let html: String = scenes::all().into_iter().map(|scene| scene.html).collect();
    for (name, ..) in tags(&html) {
        assert!(!["script", "style", "foreignObject", "image", "iframe"].contains(&name), "{name}");
    }
    for attribute in ["style", "onclick", "onload", "xlink:href"] {
        assert_eq!(values(&html, attribute), [""; 0]);
    }
    assert!(html.contains("&lt;script&gt;"), "the gallery has a nasty name");
    assert!(!html.contains("NaN") && !html.contains('\u{202e}'));
}

#[test]
fn every_picture_has_a_name_or_is_hidden() {
    for Scene { title, html, .. } in scenes::all() {
        for picture in html.split("<svg ").skip(1) {
            let head = picture.split('>').next().unwrap();
            let is_part = head.contains("c-cap") || head.contains("preserveAspectRatio");
            let is_named = head.contains("role=\"") && head.contains("aria-labelledby=\"");
            assert!(is_part || is_named || head.contains("aria-hidden=\"true\""), "{title}: {head}");
        }
        for (place, _) in html.match_indices("<a ") {
            let (head, rest) = html[place..].split_once('>').unwrap();
            // Inside of what is hidden from those who do not see, if that began after the picture did.
            let seen_only = html[..place].rfind("<g aria-hidden=\"true\">") > html[..place].rfind(" role=\"group\"");
            let is_reached = if seen_only { head.contains("tabindex=\"-1\"") } else { head.contains(" aria-label=\"") };
            assert!(is_reached || !rest.starts_with("<title>"), "{title}: {head}");
        }
    }
}

#[test]
fn the_style_sheet_and_the_charts_know_the_same_classes() {
    let html: String = scenes::all().into_iter().map(|scene| scene.html).collect();
    let written =
        values(&html, "class").into_iter().flat_map(str::split_whitespace).filter(|class| class.starts_with("c-"));
    let written: BTreeSet<&str> = written.collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let styled = STYLE.split('.').skip(1).map(|rest| rest.split(|c| !is_part(c)).next().unwrap());
    let styled: BTreeSet<&str> = styled.filter(|class| class.starts_with("c-")).collect();
    assert_eq!(written, styled);
}

/// The theme of the gallery is what themes must be: text at 4.5 to 1, marks at 3 to 1.
#[test]
fn colours_are_told_from_the_panel() {
    let (light, dark) = THEME.split_once("[data-theme=\"dark\"]").unwrap();
    for theme in [light, dark] {
        let panel = luminance(theme, "--panel");
        let contrast = |name| {
            let colour = luminance(theme, name);
            (colour.max(panel) + 0.05) / (colour.min(panel) + 0.05)
        };
        for text in ["--ink", "--ink-2", "--accent"] {
            assert!(contrast(text) >= 4.5, "{text}: {}", contrast(text));
        }
        for mark in ["--ok", "--bad", "--run", "--wait", "--skip", "--off", "--plan"] {
            assert!(contrast(mark) >= 3.0, "{mark}: {}", contrast(mark));
        }
    }
}

fn luminance(theme: &str, name: &str) -> f64 {
    let colour = theme.split(&format!("{name}: #")).nth(1).unwrap();
    let part = |at: usize| {
        let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
}
