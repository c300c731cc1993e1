//! How often a token may write.

use serde_json::json;

use crate::server::{Server, TARGETS};

#[test]
fn writes_of_a_token_are_limited() {
    let mut server = Server::with(&format!("{TARGETS}\n[api]\nwrite_rate = 1\nwrite_burst = 30\n"));
    let other = server.token_of("operator");
    let preview = json!({ "cronExpression": "0 8 * * *" });
    let first = server.post("/cron/preview", &preview);
    first.expect(200);
    assert_eq!(first.headers["ratelimit-policy"], "\"writes\";q=30;w=30");
    assert!(first.headers["ratelimit"].starts_with("\"writes\";r="), "{first:?}");
    // The bucket fills again while a slow machine answers, so it is drained and not counted.
    let refused = (0..2_000).map(|_| server.post("/cron/preview", &preview)).find(|reply| reply.status != 200);
    let refused = refused.expect("writes are not limited");
    let problem = refused.problem(429, "RateLimited");
    assert!(problem["detail"].as_str().unwrap().contains("token:admin"), "{problem}");
    assert!(refused.headers["retry-after"].parse::<u64>().unwrap() >= 1, "{refused:?}");
    assert!(refused.headers["ratelimit"].contains(";r=0;"), "{refused:?}");
    // Reading is not writing, and others are not in the way.
    let read = server.get("/jobs");
    read.expect(200);
    assert!(!read.headers.contains_key("ratelimit"), "{read:?}");
    server.token = other;
    server.post("/cron/preview", &preview).expect(200);
}
