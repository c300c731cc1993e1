//! Markup that is well-formed by construction: every text is escaped, every element is closed.

use std::fmt::Write;

use crate::markup::push_escaped;

/// A writer of SVG and HTML.
#[derive(Default)]
pub(super) struct Markup(String);

impl Markup {
    /// Begins an element. It is written by one of [`Element::empty`], [`Element::text`] and [`Element::inside`].
    pub(super) fn element(&mut self, name: &'static str) -> Element<'_> {
        self.0.push('<');
        self.0.push_str(name);
        Element { markup: self, name }
    }

    /// Text between elements.
    pub(super) fn text(&mut self, text: &str) {
        escape(&mut self.0, text);
    }

    /// Adds a mark with a tooltip and an optional link.
    pub(super) fn mark(&mut self, mark: Mark<'_>, draw: impl FnOnce(&mut Markup)) {
        let Mark { title, href, tab } = mark;
        let element = match href {
            Some(href) if tab => self.element("a").attr("href", href).attr("aria-label", title),
            Some(href) => self.element("a").attr("href", href).attr("tabindex", "-1"),
            None => self.element("g"),
        };
        element.inside(|markup| {
            markup.element("title").text(title);
            draw(markup);
        });
    }

    /// Marks for those who see and point: everybody else would have to pass over hundreds of them.
    pub(super) fn seen_only(&mut self, draw: impl FnOnce(&mut Markup)) {
        self.element("g").attr("aria-hidden", "true").inside(draw);
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// The tooltip and the link of a mark.
#[derive(Clone, Copy)]
pub(super) struct Mark<'a> {
    pub(super) title: &'a str,
    pub(super) href: Option<&'a str>,
    /// Whether the tabulator stops here. Where there are hundreds of marks it must not: they are inside of
    /// [`Markup::seen_only`], and the same is in words and in a table.
    pub(super) tab: bool,
}

/// A whole picture: its name and summary for those who do not see it.
pub(super) struct Picture<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(super) id: &'a str,
    pub(super) class: &'a str,
    pub(super) title: &'a str,
    pub(super) summary: &'a str,
    /// Whether its marks lead somewhere: then it is a group, not one image.
    pub(super) linked: bool,
    pub(super) size: Size,
}

/// How large a picture is.
pub(super) enum Size {
    /// As wide as there is room, with a fixed height in pixels. Places across are in percent, so no text is stretched.
    Fluid(f64),
    /// Width and height of the coordinates, which are scaled together.
    Scaled(f64, f64),
}

impl Picture<'_> {
    pub(super) fn draw(&self, markup: &mut Markup, body: impl FnOnce(&mut Markup)) {
        let (title, summary) = (format!("{}-t", self.id), format!("{}-d", self.id));
        let role = if self.linked { "group" } else { "img" };
        let element = markup.element("svg").attr("class", self.class).attr("role", role);
        let element = element.attr("aria-labelledby", &title).attr("aria-describedby", &summary);
        let element = match self.size {
            Size::Fluid(height) => element.attr("width", "100%").attr("height", height),
            Size::Scaled(width, height) => {
                let view = format!("0 0 {} {}", Rounded(width), Rounded(height));
                element.attr("viewBox", &view).attr("width", width).attr("height", height)
            }
        };
        element.inside(|markup| {
            markup.element("title").attr("id", &title).text(self.title);
            markup.element("desc").attr("id", &summary).text(self.summary);
            body(markup);
        });
    }
}

/// An element whose attributes are being written.
#[must_use]
pub(super) struct Element<'a> {
    markup: &'a mut Markup,
    name: &'static str,
}

impl Element<'_> {
    pub(super) fn attr(self, name: &'static str, value: impl Value) -> Self {
        self.markup.0.push(' ');
        self.markup.0.push_str(name);
        self.markup.0.push_str("=\"");
        value.write(&mut self.markup.0);
        self.markup.0.push('"');
        self
    }

    /// The usual attribute.
    pub(super) fn class(self, value: &str) -> Self {
        self.attr("class", value)
    }

    /// An element of SVG without content.
    pub(super) fn empty(self) {
        self.markup.0.push_str("/>");
    }

    pub(super) fn text(self, text: &str) {
        self.inside(|markup| markup.text(text));
    }

    pub(super) fn inside(self, write: impl FnOnce(&mut Markup)) {
        self.markup.0.push('>');
        write(self.markup);
        self.markup.0.push_str("</");
        self.markup.0.push_str(self.name);
        self.markup.0.push('>');
    }
}

/// A value of an attribute.
pub(super) trait Value {
    fn write(self, to: &mut String);
}

impl Value for &str {
    fn write(self, to: &mut String) {
        escape(to, self);
    }
}

impl Value for &String {
    fn write(self, to: &mut String) {
        escape(to, self);
    }
}

impl Value for f64 {
    fn write(self, to: &mut String) {
        put(to, format_args!("{}", Rounded(self)));
    }
}

/// The data of a path, step by step.
#[derive(Default)]
pub(super) struct Path(String);

impl Path {
    /// A command with its numbers.
    pub(super) fn step(&mut self, command: char, numbers: &[f64]) {
        self.0.push(command);
        for (index, number) in numbers.iter().enumerate() {
            put(&mut self.0, format_args!("{}{}", if index == 0 { "" } else { " " }, Rounded(*number)));
        }
    }

    /// A straight line.
    pub(super) fn line(from: (f64, f64), to: (f64, f64)) -> Path {
        let mut path = Path::default();
        path.step('M', &[from.0, from.1]);
        path.step('L', &[to.0, to.1]);
        path
    }
}

impl Value for &Path {
    fn write(self, to: &mut String) {
        to.push_str(&self.0);
    }
}

/// A place or a width as a share of the whole.
#[derive(Clone, Copy)]
pub(super) struct Percent(pub(super) f64);

impl Value for Percent {
    fn write(self, to: &mut String) {
        let hundredths = if self.0.is_finite() { (self.0 * 10_000.0).round() as i64 } else { 0 };
        put(to, format_args!("{}%", Trimmed { whole: hundredths, digits: 2 }));
    }
}

/// A coordinate, rounded to a tenth of a pixel. Not-a-number becomes zero.
pub(super) struct Rounded(pub(super) f64);

impl std::fmt::Display for Rounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() as i64 } else { 0 };
        Trimmed { whole: tenths, digits: 1 }.fmt(f)
    }
}

/// A decimal fraction without zeros at its end.
struct Trimmed {
    whole: i64,
    digits: u32,
}

impl std::fmt::Display for Trimmed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut whole, mut digits) = (self.whole.unsigned_abs(), self.digits);
        while digits > 0 && whole.is_multiple_of(10) {
            (whole, digits) = (whole / 10, digits - 1);
        }
        let unit = 10_u64.pow(digits);
        let sign = if self.whole < 0 { "-" } else { "" };
        match digits {
            0 => write!(f, "{sign}{whole}"),
            _ => write!(f, "{sign}{}.{:0width$}", whole / unit, whole % unit, width = digits as usize),
        }
    }
}

/// A count or a time as a coordinate. What is shown is far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "a picture has a few thousand pixels")]
pub(super) fn real(whole: i64) -> f64 {
    whole as f64
}

/// Text is text, in an attribute too. Characters that no document may have, and those that turn the direction of the
/// text around them, become visible.
fn escape(to: &mut String, text: &str) {
    for character in text.chars() {
        let shown = match character {
            '\t' | '\n' => ' ',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            other if other.is_control() => '\u{fffd}',
            other => other,
        };
        push_escaped(to, shown);
    }
}

/// Writing into a text cannot fail.
fn put(to: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = to.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(value: impl Value) -> String {
        let mut to = String::new();
        value.write(&mut to);
        to
    }

    #[test]
    fn numbers_are_short_and_always_numbers() {
        for (value, written) in [
            (0.0, "0"),
            (-0.04, "0"),
            (12.0, "12"),
            (12.34, "12.3"),
            (-1.25, "-1.3"),
            (100.0, "100"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(attribute(value), written);
        }
        assert_eq!([attribute(Percent(0.033_333)), attribute(Percent(1.0))], ["3.33%", "100%"]);
        assert_eq!([attribute(Percent(0.5)), attribute(Percent(f64::NAN))], ["50%", "0%"]);
        assert_eq!(attribute(Percent(0.0001)), "0.01%");
    }

    #[test]
    fn a_path_is_commands_and_numbers() {
        let mut path = Path::line((1.0, 2.25), (f64::NAN, -3.0));
        path.step('h', &[0.5]);
        path.step('z', &[]);
        assert_eq!(attribute(&path), "M1 2.3L0 -3h0.5z");
    }

    #[test]
    fn text_is_text() {
        let mut markup = Markup::default();
        markup.element("a").attr("href", "/?a=1&b=\"'").text("<script>\u{0}\u{202e}x\n</script> 🛎 שלום");
        assert_eq!(
            markup.finish(),
            "<a href=\"/?a=1&amp;b=&quot;&#39;\">&lt;script&gt;\u{fffd}\u{fffd}x &lt;/script&gt; 🛎 שלום</a>"
        );
    }

    #[test]
    fn a_mark_says_what_it_is_and_leads_there() {
        let drawn = |href, tab| {
            let mut markup = Markup::default();
            markup.mark(Mark { title: "a \"b\"", href, tab }, |markup| markup.element("path").empty());
            markup.finish()
        };
        assert_eq!(drawn(None, false), "<g><title>a &quot;b&quot;</title><path/></g>");
        let rest = "><title>a &quot;b&quot;</title><path/></a>";
        assert_eq!(drawn(Some("/x"), true), format!("<a href=\"/x\" aria-label=\"a &quot;b&quot;\"{rest}"));
        assert_eq!(drawn(Some("/x"), false), format!("<a href=\"/x\" tabindex=\"-1\"{rest}"));
    }

    #[test]
    fn a_picture_has_a_name_and_a_summary() {
        let drawn = |linked, size| {
            let mut markup = Markup::default();
            let picture = Picture { id: "p", class: "c-p", title: "T", summary: "S", linked, size };
            picture.draw(&mut markup, |_| ());
            markup.finish()
        };
        let rest = "<title id=\"p-t\">T</title><desc id=\"p-d\">S</desc></svg>";
        let start =
            |role| format!("<svg class=\"c-p\" role=\"{role}\" aria-labelledby=\"p-t\" aria-describedby=\"p-d\"");
        assert_eq!(drawn(true, Size::Fluid(28.0)), format!("{} width=\"100%\" height=\"28\">{rest}", start("group")));
        assert_eq!(
            drawn(false, Size::Scaled(460.0, 96.5)),
            format!("{} viewBox=\"0 0 460 96.5\" width=\"460\" height=\"96.5\">{rest}", start("img"))
        );
    }
}
