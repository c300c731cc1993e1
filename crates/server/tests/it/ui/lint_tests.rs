//! The judge is judged: pages with one fault each, and each must be found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::browser::Browser;

/// A page without a fault.
const GOOD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8>
    <meta name=viewport content='width=device-width'><title>A page</title><link rel=icon href='data:,'>
    <style>button { min-height: 24px; min-width: 24px }</style></head>
    <body><a href='#content'>Skip to the content</a><header><nav><a href='/'>Home</a></nav></header>
    <main id=content><h1>A page</h1><h2>Part</h2>
    <form><label for=key>Key</label> <input id=key placeholder=any style='color:black'>
    <label>Kind <select><option>one</select></label> <button>Send</button> <button disabled>Not now</button></form>
    <table><tr><th scope=col>Name<tr><td>a</table>
    <img alt='' src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>
    <svg role=img width=60 height=20><title>A bar</title><rect width=60 height=20 fill='#333'></rect>
    <text x=5 y=15 fill=white font-size=12>37 %</text></svg>
    <p style='color:#fff;background:#0009'>Light on dark</p><p>More at <a href='/'>Home</a></p></main></body></html>";

/// Each entry replaces a part of the good page and names the expected complaint.
const BAD: [(&str, &str, &str); 30] = [
    (" lang=en", "", "lang: html: the page does not tell its language"),
    ("<title>A page</title>", "", "title: html: the page has no title"),
    ("width=device-width", "width=980", "viewport: html: the page does not fit itself to a phone"),
    ("width=device-width", "width=device-width, user-scalable=no", "viewport: html: the page cannot be magnified"),
    ("<h1>A page</h1><h2>Part</h2>", "", "h1: body: 0 headings of the first level instead of one"),
    ("<h2>Part</h2>", "<h1>B</h1>", "h1: body: 2 headings of the first level instead of one"),
    ("<h2>Part</h2>", "<h3>Part</h3>", "headings: #content > h3: level 3 follows level 1"),
    ("<h2>Part</h2>", "<h2></h2>", "headings: #content > h2: the heading is empty"),
    (
        "<header><nav><a href='/'>Home</a></nav></header>",
        "<nav>Home</nav>",
        "landmarks: body: 0 headers of the page instead of one",
    ),
    ("<nav><a href='/'>Home</a></nav>", "", "landmarks: body: no navigation"),
    (
        "<h2>",
        "<nav aria-label=More></nav><h2>",
        "landmarks: body > header > nav: one of several navigations, without a name",
    ),
    ("<main id=content>", "<div id=content>", "landmarks: body: not exactly one main part"),
    (
        "<a href='#content'>Skip to the content</a>",
        "",
        "skip-link: body > header > nav > a: the first stop of Tab does not lead to the content",
    ),
    ("href='#content'", "href='#nothing'", "skip-link: body > a: nothing has the id of #nothing"),
    ("<label for=key>Key</label>", "Key", "label: #key: the field has no label"),
    (
        "<label>Kind <select>",
        "<label><select>",
        "label: #content > form > label:nth-of-type(2) > select: the field has no label",
    ),
    (
        "<button>Send</button>",
        "<button><span aria-hidden=true>x</span></button>",
        "name: #content > form > button:nth-of-type(1): the link or button has no name",
    ),
    (" alt=''", "", "image: #content > img: the image has no alternative text"),
    (" role=img", "", "image: #content > svg: the drawing has no role, nor is it hidden from screen readers"),
    ("<title>A bar</title>", "", "image: #content > svg: the drawing has no name"),
    (" scope=col", "", "table: #content > table > tbody > tr:nth-of-type(1) > th: the header cell has no scope"),
    ("<th scope=col>", "<td>", "table: #content > table: the table has no header cell"),
    (
        "<td>a",
        "<td id=key>a",
        "id: #content > table > tbody > tr:nth-of-type(2) > td: another element has the id `key`",
    ),
    ("<h2>", "<h2 tabindex=2>", "tabindex: #content > h2: it jumps the queue of Tab"),
    ("<a href='/'>", "<a href='/' target=_blank>", "blank: body > header > nav > a: a new window without rel=noopener"),
    (
        "<h2>Part</h2>",
        "<h2 style='width:2000px'>Part</h2>",
        "overflow: #content > h2: the page is 2008 px wide where 1280 px are",
    ),
    (
        "<p>More at <a href='/'>",
        "<p>More at <a href='/' style='text-decoration:none'>",
        "link: #content > p:nth-of-type(2) > a: a link in a text that only its colour tells",
    ),
    (
        "<button>Send</button>",
        "<button style='min-height:0;height:20px;width:50px'>Send</button>",
        "size: #content > form > button:nth-of-type(1): 50 x 20 px, 24 are needed",
    ),
    (
        "<h2>Part</h2>",
        "<h2>Part</h2><div style='height:20px;overflow:auto'><p>a<p>b</div>",
        "scroll: #content > div: it scrolls, and no key gets there",
    ),
    (
        "<table><tr><th scope=col>Name<tr><td>a</table>",
        "<div tabindex=0 style='width:300px;overflow:auto'><table style='width:400px'><tr><th scope=col>a</table></div>",
        "scroll: #content > div: the table is 400 px wide where 300 px are",
    ),
];

/// Colors with their complaint, in the form of the table above.
const PALE: [(&str, &str, &str); 7] = [
    ("<h2>", "<h2 style='color:#999'>", "contrast: #content > h2: 2.85 : 1 where 3 : 1 is needed"),
    (
        "<td>a",
        "<td style='color:#888'>a",
        "contrast: #content > table > tbody > tr:nth-of-type(2) > td: 3.54 : 1 where 4.5 : 1 is needed",
    ),
    (
        "<td>a",
        "<td style='opacity:.5'>a",
        "contrast: #content > table > tbody > tr:nth-of-type(2) > td: 3.98 : 1 where 4.5 : 1 is needed",
    ),
    ("#0009", "#0005", "contrast: #content > p:nth-of-type(1): 2.32 : 1 where 4.5 : 1 is needed"),
    ("style='color:black'", "style='color:#999' value=pale", "contrast: #key: 2.85 : 1 where 4.5 : 1 is needed"),
    ("fill=white", "fill='#666'", "contrast: #content > svg > text: 2.20 : 1 where 4.5 : 1 is needed"),
    (
        "<td>a",
        "<td style='color:oklch(70% 0 0)'>a",
        "contrast: #content > table > tbody > tr:nth-of-type(2) > td: 2.68 : 1 where 4.5 : 1 is needed",
    ),
];

/// Serves a page with a policy that allows nothing from elsewhere.
async fn serve(pages: &MockServer, at: &str, html: &str) -> String {
    let answer = ResponseTemplate::new(200).set_body_raw(html, "text/html; charset=utf-8").insert_header(
        "content-security-policy",
        "default-src 'self' 'unsafe-inline'; img-src data:; form-action 'none'",
    );
    Mock::given(method("GET")).and(path(at)).respond_with(answer).mount(pages).await;
    format!("{}{at}", pages.uri())
}

#[tokio::test]
async fn every_fault_of_a_page_is_found() {
    let pages = MockServer::start().await;
    let browser = Browser::start();
    browser.visit(&serve(&pages, "/good", GOOD).await);
    browser.flawless();
    for (number, (good, bad, complaint)) in BAD.iter().chain(&PALE).enumerate() {
        assert!(GOOD.contains(good), "{good}");
        browser.visit(&serve(&pages, &format!("/{number}"), &GOOD.replacen(good, bad, 1)).await);
        assert_eq!(browser.lint(), [*complaint], "{bad}");
    }
    browser.finish();
}

#[tokio::test]
async fn a_fault_on_a_phone_or_in_the_dark_is_found() {
    let pages = MockServer::start().await;
    let browser = Browser::start();
    for (at, style, complaint) in [
        ("/phone", "h2 { min-width: 500px }", "390-light: overflow: #content > h2"),
        ("/dark", "@media (prefers-color-scheme: dark) { h2 { color: #ddd } }", "1280-dark: contrast: #content > h2"),
    ] {
        let html = GOOD.replace("</head>", &format!("<style>{style}</style></head>"));
        browser.visit(&serve(&pages, at, &html).await);
        let message = complaint_of(|| browser.flawless());
        assert!(message.contains(complaint) && !message.contains("1280-light"), "{message}");
    }
    browser.finish();
}

#[tokio::test]
async fn a_test_fails_if_the_browser_complains() {
    let pages = MockServer::start().await;
    let browser = Browser::start();
    for (number, (body, complaint)) in [
        ("<script>console.error('oh')</script>", "\"oh\""),
        ("<script>console.warn('hm')</script>", "\"hm\""),
        ("<script>nobody()</script>", "Uncaught ReferenceError: nobody is not defined"),
        ("<script>Promise.reject(new Error('lost'))</script>", "Uncaught Error: lost"),
        ("<script>fetch('/nothing')</script>", "/nothing - Failed to load resource: "),
        ("<link rel=stylesheet href='/gone.css'>", "/gone.css - Failed to load resource: "),
        ("<script src='http://cdn.example/a.js'></script>", "Content Security Policy"),
        ("<img alt='' src='/a.png'>", "Content Security Policy"),
    ]
    .iter()
    .enumerate()
    {
        let html = GOOD.replace("</main>", &format!("{body}</main>"));
        browser.visit(&serve(&pages, &format!("/{number}"), &html).await);
        let said = browser.expect_console(complaint);
        assert!(said.is_fault(), "{said}");
    }
    browser.execute("console.warn('at last')", &json!([]));
    let message = complaint_of(|| browser.finish());
    assert!(message.starts_with("the browser complained:") && message.contains("WARNING (console-api): "), "{message}");
    assert_eq!(message.matches("\n  WARNING").count() + message.matches("\n  SEVERE").count(), 1, "{message}");
}

/// Returns the panic message of a failing test.
fn complaint_of(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("it did not fail");
    panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}
