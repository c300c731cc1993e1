//! The pictures of the README, taken by `scripts/pictures`. Without it these are tests like the others.

use super::browser::Browser;
use crate::server::Server;

#[test]
fn documentation() {
    let server = Server::start();
    let browser = Browser::start();
    browser.visit(&server.url("/docs/api"));
    browser.see("everbell API");
    browser.pictures("docs-api");
    browser.finish();
}
