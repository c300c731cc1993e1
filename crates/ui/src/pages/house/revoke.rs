//! Revoking a token: whose it is, and that nobody can undo it.

use askama::Template;
use axum::http::Method;

use super::Place;
use crate::equivalent::Equivalent;
use crate::markup::{Markup, url_part};
use crate::pages::action::Refusal;
use crate::{Frame, Reply, Section, Visit};
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "house/revoke.html")]
struct RevokePage {
    frame: Frame,
    subject: Place,
    refusal: Refusal,
    name: String,
    role: String,
    used: Option<Markup>,
    /// It is the token of who is here.
    own: bool,
    same: Equivalent,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_role(&visit.actor, Role::Admin)?;
    let tokens = visit.app.bell.store().list_tokens().await?;
    let name = visit.part("name");
    let found = tokens.iter().find(|token| token.name == name && token.revoked_at.is_none());
    let token = found.ok_or_else(|| Problem::new(Kind::NotFound, format!("There is no token `{name}` to revoke.")))?;
    let page = RevokePage {
        frame: visit.frame(Section::Settings, format!("Revoke {name}")).await,
        subject: Place("/settings"),
        refusal: Refusal::default(),
        name: name.to_owned(),
        role: token.role.clone(),
        used: token.last_used_at.map(|at| visit.clock().away(at)),
        own: visit.actor.name == format!("token:{name}"),
        same: Equivalent::new(
            &visit.api_base(),
            "DELETE",
            &format!("/tokens/{}", url_part(name)),
            &["tokens", "revoke", name],
        ),
    };
    Reply::page(&page)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    let name = visit.part("name").to_owned();
    visit.perform::<()>(Method::DELETE, "/tokens/{name}", &[("name", &name)], &()).await?;
    Ok(Reply::done("/settings", format!("The token {name} is revoked.")))
}
