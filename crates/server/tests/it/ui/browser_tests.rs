//! The words for tests, on a page that has everything which they can name.

use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers};

use super::browser::Browser;
use crate::server::Folder;

const PAGE: &str = "<!doctype html><html lang=en><head><title>Walk</title><link rel=icon href='data:,'>
    <style>#dark { display: none } @media (prefers-color-scheme: dark) { #dark { display: block } }
    #still { display: none } @media (prefers-reduced-motion: reduce) { #still { display: block } }
    #narrow { display: none } @media (max-width: 400px) { #narrow { display: block } }</style></head><body>
    <p id=dark>It is dark.</p><p id=still>It stands still.</p><p id=narrow>It is narrow.</p>
    <noscript>No scripts here.</noscript><p hidden>Never seen.</p>
    <a href='/second'>Second page</a> <a href='/second' class=icon aria-label='Go on'>&gt;</a>
    <button id=late data-kind=slow>Load <span aria-hidden=true>&#x21bb;</span></button> <button>Twice</button> <button>Twice</button>
    <details><summary>More</summary><p>Was folded.</p></details>
    <form action='/sent'><label>Key <input name=key value=old></label> <label for=when>When</label>
    <input id=when name=when type=datetime-local> <label>Note <textarea name=note></textarea></label>
    <label>Zone <select name=zone><option>UTC<option>Europe/Paris</select></label>
    <fieldset><legend>Missed slots</legend><label><input type=radio name=missed value=skip checked>Skip them</label>
    <label><input type=radio name=missed value=all>Run all</label></fieldset>
    <label><input type=checkbox name=sure>I am sure</label> <button>Send it</button></form>
    <dialog><p>Really?</p><button id=yes>Twice</button></dialog><output></output>
    <script>
    const out = document.querySelector('output');
    late.onclick = () => setTimeout(() => { out.textContent = 'Loaded at last'; late.remove() }, 200);
    document.onkeydown = event => { out.textContent += ` ${event.shiftKey ? 'S-' : ''}${event.key}`;
        if (event.key === 'd') document.querySelector('dialog').showModal() };
    yes.onclick = () => { out.textContent = 'Confirmed'; document.querySelector('dialog').close() };
    </script></body></html>";

async fn pages() -> MockServer {
    let pages = MockServer::start().await;
    let html = |body: &str| ResponseTemplate::new(200).set_body_raw(body, "text/html; charset=utf-8");
    let other = "<!doctype html><title>Other</title><link rel=icon href='data:,'><p id=query></p>\
        <script>query.textContent = decodeURIComponent(location.pathname + location.search)</script>";
    Mock::given(matchers::path("/")).respond_with(html(PAGE)).mount(&pages).await;
    Mock::given(matchers::path("/second")).respond_with(html(other)).mount(&pages).await;
    Mock::given(matchers::path("/sent")).respond_with(html(other)).mount(&pages).await;
    let gone = ResponseTemplate::new(404).set_body_raw("<link rel=icon href='data:,'><p>No such page", "text/html");
    Mock::given(matchers::path("/gone")).respond_with(gone).mount(&pages).await;
    pages
}

#[tokio::test]
async fn a_user_walks_through_a_page() {
    let pages = pages().await;
    let browser = Browser::start();
    browser.visit(&pages.uri());
    browser.not_see("Never seen.");
    browser.not_see("Was folded.");
    browser.click("More");
    browser.see("Was folded.");
    assert_eq!(browser.attribute("#late", "data-kind").as_deref(), Some("slow"));
    assert_eq!(browser.attribute("#late", "title"), None);
    browser.click("Load");
    browser.see("Loaded at last");
    browser.see_count("#late", 0);
    assert_eq!((browser.text_of("output").as_str(), browser.count("button")), ("Loaded at last", 4));

    browser.press("g Shift+Tab ? d");
    browser.see("Really?");
    assert!(browser.text_of("output").ends_with("g S-Shift S-Tab S-? d"), "{}", browser.text_of("output"));
    // One of three, but the only one that can be reached.
    browser.click("Twice");
    browser.see("Confirmed");
    browser.not_see("Really?");

    browser.fill("Key", "a-b c");
    browser.fill("When", "2026-11-16T09:00");
    browser.fill("Note", "two\nlines");
    browser.choose("Zone", "Europe/Paris");
    browser.choose("Missed slots", "Run all");
    browser.click("I am sure");
    assert_eq!([browser.value_of("Key"), browser.value_of("Zone")], ["a-b c", "Europe/Paris"]);
    browser.click("Send it");
    browser.see("/sent?key=a-b+c&when=2026-11-16T09:00&note=two lines&zone=Europe/Paris&missed=all&sure=on");
    browser.visit(&pages.uri());
    browser.click("a.icon");
    browser.see("/second");
    browser.visit(&pages.uri());
    browser.click("Go on");
    assert_eq!(browser.url(), format!("{}/second", pages.uri()));
    browser.finish();
}

#[tokio::test]
async fn a_page_is_seen_as_its_user_prefers_it() {
    let pages = pages().await;
    let browser = Browser::start();
    browser.visit(&pages.uri());
    assert_eq!(browser.execute("return [innerWidth, innerHeight]", &json!([])), json!([1280, 800]));
    browser.not_see("It is");
    browser.dark();
    browser.see("It is dark.");
    browser.reduced_motion();
    browser.see("It stands still.");
    browser.resize(390, 800);
    browser.see("It is narrow.");
    browser.light();
    browser.not_see("It is dark.");
    browser.see("It stands still.");
    browser.execute("document.body.style.height = '3000px'", &json!([]));
    let (width, height) = size(&browser.screenshot("walked"));
    assert!(width == 390 && height >= 3000, "{width} x {height}");
    let folder = Folder::new();
    browser.pictures_into(folder.path(), "walk");
    for width in [1280, 1600, 390] {
        for colours in ["light", "dark"] {
            assert_eq!(size(&folder.path().join(format!("walk-{width}-{colours}.png"))).0, width);
        }
    }
    browser.without_javascript();
    browser.visit(&pages.uri());
    browser.see("No scripts here.");
    browser.finish();
}

/// Returns the size of a picture from its header.
fn size(picture: &Path) -> (u32, u32) {
    let bytes = std::fs::read(picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"), "{}", picture.display());
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[tokio::test]
async fn what_was_expected_of_the_browser_is_no_fault() {
    let pages = pages().await;
    let browser = Browser::start();
    browser.visit(&format!("{}/gone", pages.uri()));
    browser.see("No such page");
    browser.expect_console("404 (Not Found)");
    browser.visit(&pages.uri());
    browser.execute("console.info('for people')", &json!([]));
    assert!(browser.console().iter().any(|said| said.level == "INFO" && said.text.contains("for people")));
    browser.finish();
}

#[tokio::test]
async fn who_waits_in_vain_is_told_what_is_there_and_nothing_stays_behind() {
    let pages = pages().await;
    let mut browser = Browser::start();
    browser.patience = Duration::from_millis(200);
    browser.visit(&pages.uri());
    let (address, folder) = (browser.driver.address().to_owned(), browser.driver.folder().to_owned());
    assert!(TcpStream::connect(&address).is_ok() && folder.exists());
    let panic = catch_unwind(AssertUnwindSafe(move || browser.click("Twice"))).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("cannot click on `Twice`: there are 2\n"), "{message}");
    assert!(message.contains(&pages.uri()) && message.contains("Second page") && message.contains(".png"), "{message}");
    assert!(TcpStream::connect(&address).is_err() && !folder.exists());
}

#[test]
fn a_browser_that_nobody_heard_out_fails_the_test() {
    let panic = catch_unwind(|| drop(Browser::start())).unwrap_err();
    assert!(panic.downcast_ref::<&str>().unwrap().starts_with("a test must end with `browser.finish()`"));
}
