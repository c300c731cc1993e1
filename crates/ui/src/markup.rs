//! [`Markup`]: HTML that was made here, and the one way to make text into it.

use std::fmt;

use everbell_wire::percent;

pub(crate) use everbell_wire::markup::{escaped, push_escaped};

/// HTML that needs no more escaping. Made only of texts that went through [`escaped`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

impl Markup {
    /// Takes what is HTML already.
    pub(crate) fn from_html(html: impl Into<String>) -> Markup {
        Markup(html.into())
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

/// A sentence of the API as HTML: what it has between backticks is code. Everything is escaped, and an end that is
/// missing leaves the sign as it is.
pub(crate) fn render_inline_code(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, code, behind)) = rest.split_once('`').and_then(|(before, behind)| {
        let (code, behind) = behind.split_once('`')?;
        Some((before, code, behind))
    }) {
        html.push_str(&escaped(before));
        if code.is_empty() {
            html.push_str("``");
        } else {
            html.extend(["<code dir=\"auto\">", escaped(code).as_str(), "</code>"]);
        }
        rest = behind;
    }
    html.push_str(&escaped(rest));
    Markup(html)
}

/// A text as a part of a path or a query.
pub(crate) fn url_part(text: &str) -> String {
    percent::encode(text, percent::RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
        let code = |text: &str| format!("<code dir=\"auto\">{text}</code>");
        assert_eq!(render_inline_code("a `b` <c> `d`").as_str(), format!("a {} &lt;c&gt; {}", code("b"), code("d")));
        assert_eq!(render_inline_code("`<script>\"'&`").as_str(), code("&lt;script&gt;&quot;&#39;&amp;"));
        assert_eq!(render_inline_code("<b>`</b>`<i>`").as_str(), format!("&lt;b&gt;{}&lt;i&gt;`", code("&lt;/b&gt;")));
        assert_eq!(
            [render_inline_code("`"), render_inline_code("``"), render_inline_code("")].map(|html| html.to_string()),
            ["`", "``", ""]
        );
        assert_eq!(url_part("a/b?c&d=é"), "a%2Fb%3Fc%26d%3D%C3%A9");
    }
}
