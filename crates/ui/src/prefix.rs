//! [`Prefix`]: where the pages are mounted.
//!
//! Pages, redirects and scripts spell addresses from the root of the pages: `/jobs`. In another program the root is
//! somewhere else, so the prefix is put before every address on the way out, here and nowhere else.

use axum::http::request::Parts;
use everbell_http::pipeline::outer_prefix;

/// The attributes that hold addresses of pages.
const ATTRIBUTES: [&str; 5] = [" href", " src", " action", " formaction", " data-preview"];

/// The path in front of every page: `/admin/cron` in another program, and nothing in the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// The prefix of a request, which only its original address knows.
    pub(crate) fn from_request(parts: &Parts) -> Prefix {
        Prefix(outer_prefix(&parts.extensions, parts.uri.path()).to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of a page for a browser.
    pub(crate) fn address(&self, page: &str) -> String {
        // Routers lead a prefix that ends with a slash to nothing.
        match page.strip_prefix('/') {
            Some(rest) if !self.0.is_empty() && (rest.is_empty() || rest.starts_with(['?', '#'])) => {
                format!("{}{rest}", self.0)
            }
            _ => format!("{}{page}", self.0),
        }
    }

    /// Returns the page of an address that a browser names.
    pub(crate) fn page_of<'a>(&self, address: &'a str) -> &'a str {
        let page = address.strip_prefix(self.0.as_str()).unwrap_or(address);
        if page.is_empty() { "/" } else { page }
    }

    /// Puts the prefix before the addresses of a page.
    ///
    /// Quotes of texts are escaped on pages, so an attribute cannot be inside a text.
    pub(crate) fn html(&self, html: String) -> String {
        if self.0.is_empty() {
            return html;
        }
        let mut written = String::with_capacity(html.len() + html.len() / 8);
        let mut rest = html.as_str();
        while let Some(at) = rest.find("=\"/") {
            let (before, address) = rest.split_at(at + 2);
            written.push_str(before);
            rest = address;
            let attribute = &before[..at];
            if ATTRIBUTES.iter().any(|own| attribute.ends_with(own)) && !address.starts_with("//") {
                let end = address.find('"').unwrap_or(address.len());
                written.push_str(&self.address(&address[..end]));
                rest = &address[end..];
            }
        }
        written.push_str(rest);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_prefix_and_lose_it_again() {
        let prefix = Prefix("/admin".to_owned());
        for (page, address) in [("/", "/admin"), ("/?a=/", "/admin?a=/"), ("/#x", "/admin#x"), ("/jobs", "/admin/jobs")]
        {
            assert_eq!(prefix.address(page), address);
        }
        assert_eq!((prefix.page_of("/admin"), prefix.page_of("/admin/jobs?q=1")), ("/", "/jobs?q=1"));
        let none = Prefix::default();
        assert_eq!(
            (none.address("/"), none.address("/jobs"), none.page_of("/jobs")),
            ("/".into(), "/jobs".into(), "/jobs")
        );
    }

    #[test]
    fn only_addresses_of_pages_get_the_prefix() {
        let prefix = Prefix("/p".to_owned());
        let page = r##"<a class="x" href="/jobs?a=&quot;/b">/jobs</a><a href="#main"><a href="/"><form action="/new">
            <input name="back" value="/jobs"><button formaction="/bulk/pause"><form data-preview="/new/preview">
            <script src="/ui/a.js"></script><a href="//other"><a href="https://x/"><p>href=&quot;/jobs&quot;</p>"##;
        let expected = r##"<a class="x" href="/p/jobs?a=&quot;/b">/jobs</a><a href="#main"><a href="/p"><form action="/p/new">
            <input name="back" value="/jobs"><button formaction="/p/bulk/pause"><form data-preview="/p/new/preview">
            <script src="/p/ui/a.js"></script><a href="//other"><a href="https://x/"><p>href=&quot;/jobs&quot;</p>"##;
        assert_eq!(prefix.html(page.to_owned()), expected);
        assert_eq!(Prefix::default().html(page.to_owned()), page);
    }
}
