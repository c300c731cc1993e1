//! What somebody chooses for their browser: theme, zone, whether pages follow what happens.

use crate::http::problem::Problem;
use crate::ui::session::Cookie;
use crate::ui::visit::{Reply, Visit, safe_place};

pub(crate) async fn choose(visit: Visit) -> Result<Reply, Problem> {
    let chosen = visit.sent.iter().fold(visit.choices.clone(), |choices, (name, value)| choices.with(name, value));
    let back = safe_place(visit.sent("back").unwrap_or("/")).to_owned();
    Ok(Reply::go(back).header("set-cookie", visit.cookies.set(Cookie::Choices, &chosen.text())))
}
