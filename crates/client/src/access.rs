//! Tokens, browser sessions and the audit trail.

use everbell_wire as wire;

use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::path::segment;
use crate::query::AuditQuery;
use crate::request::TokenCreate;

/// Operations on tokens.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a>(&'a Client);

/// Operations on browser sessions.
#[derive(Clone, Copy, Debug)]
pub struct Sessions<'a>(&'a Client);

/// Operations on the audit trail.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a>(&'a Client);

impl Client {
    /// Operations on tokens.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens(self)
    }

    /// Operations on browser sessions.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(self)
    }

    /// Operations on the audit trail.
    pub fn audit(&self) -> Audit<'_> {
        Audit(self)
    }
}

impl Tokens<'_> {
    /// Lists tokens, without their secrets.
    pub fn list(self) -> Call<wire::Items<wire::Token>> {
        self.0.get("/tokens")
    }

    /// Creates a token. Its secret is returned once.
    pub fn create(self, token: &TokenCreate) -> Call<wire::NewToken> {
        self.0.post("/tokens").json(token)
    }

    /// Revokes a token. The last one of an admin is revoked only by force.
    pub fn revoke(self, name: &str, force: bool) -> Call<()> {
        self.0.delete(&format!("/tokens/{}", segment(name))).parameter("force", &force.to_string())
    }
}

impl Sessions<'_> {
    /// Lists your own sessions, newest first.
    pub fn list(self) -> Call<wire::Items<wire::Session>> {
        self.0.get("/sessions")
    }

    /// Lists the sessions of all actors. Only for admins.
    pub fn list_all(self) -> Call<wire::Items<wire::Session>> {
        self.list().parameter("all", "true")
    }

    /// Ends a session.
    pub fn end(self, id: &str) -> Call<()> {
        self.0.delete(&format!("/sessions/{}", segment(id)))
    }

    /// Ends all sessions of an actor such as `token:ops`; your own if absent.
    pub fn end_all(self, actor: Option<&str>) -> Call<wire::EndedSessions> {
        actor.into_iter().fold(self.0.delete("/sessions"), |call, actor| call.parameter("actor", actor))
    }
}

impl Audit<'_> {
    /// Lists audit entries, newest first.
    pub fn list(self, query: &AuditQuery) -> Pages<wire::AuditEntry> {
        Pages::new(self.0, "/audit", query)
    }
}
