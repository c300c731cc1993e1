//! The documentation of the API as a page.

use serde_json::json;

use super::browser::Browser;
use crate::server::Server;

#[test]
fn everybody_can_read_the_documentation_of_the_api() {
    let server = Server::start();
    let browser = Browser::start();
    browser.visit(&server.url("/docs/api"));
    browser.see("everbell API");
    browser.flawless();

    // The first stop of the keyboard leads past the navigation.
    browser.press("Tab");
    browser.see("Skip to content");
    browser.press("Enter");
    browser.until("return location.hash === '#content'");
    browser.not_see("List every check");
    browser.click("/readyz Check whether");
    browser.see("List every check");

    browser.execute("document.querySelectorAll('details').forEach(part => { part.open = true })", &json!([]));
    browser.flawless();
    browser.finish();
}
