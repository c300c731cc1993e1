//! Users of the browser.

use super::browser::Browser;
use crate::server::Server;

impl Browser {
    /// A browser whose person has signed in as the first admin.
    #[track_caller]
    pub(crate) fn admin(server: &Server) -> Browser {
        Browser::with_token(server, &server.token)
    }

    /// A browser whose person has signed in with this token.
    #[track_caller]
    pub(crate) fn with_token(server: &Server, token: &str) -> Browser {
        let browser = Browser::start();
        browser.sign_in(server, token);
        browser
    }

    /// Signs in, and comes to the overview.
    #[track_caller]
    pub(crate) fn sign_in(&self, server: &Server, token: &str) {
        self.visit(&server.url("/sign-in"));
        self.fill("Token", token);
        self.click("Sign in");
        self.see("Next runs");
    }
}
