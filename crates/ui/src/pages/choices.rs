//! What somebody chooses for their browser: theme, zone, whether pages follow what happens.

use crate::choices::Choices;
use crate::visit::{Reply, Visit, safe_place};
use everbell_http::problem::Problem;

pub(crate) async fn choose(visit: Visit) -> Result<Reply, Problem> {
    let back = safe_place(visit.sent("back").unwrap_or("/")).to_owned();
    let chosen = Choices::KEPT.into_iter().filter_map(|(name, cookie)| {
        let value = visit.sent(name)?;
        visit.choices.with(name, value).map(|_| visit.cookies.set(cookie, value))
    });
    Ok(chosen.fold(Reply::go(back), |reply, cookie| reply.header("set-cookie", cookie)))
}
