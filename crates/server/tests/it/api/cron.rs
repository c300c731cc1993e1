//! Previews and templates.

use serde_json::json;

use crate::server::Server;

#[test]
fn an_expression_is_explained_before_it_is_a_job() {
    let server = Server::start();
    let body = json!({ "cronExpression": "30 2 * * *", "timezone": "America/New_York", "count": 3, "from": "2027-03-13T00:00:00Z" });
    let preview = server.post("/cron/preview", &body).expect(200);
    assert_eq!((&preview["valid"], &preview["description"]), (&json!(true), &json!("Every day at 02:30")));
    assert_eq!(
        preview["next"],
        json!([
            {"at": "2027-03-13T07:30:00Z", "local": "2027-03-13T02:30:00-05:00[America/New_York]"},
            {"at": "2027-03-14T07:00:00Z", "local": "2027-03-14T03:00:00-04:00[America/New_York]", "note": "shifted: 02:30 does not exist"},
            {"at": "2027-03-15T06:30:00Z", "local": "2027-03-15T02:30:00-04:00[America/New_York]"},
        ])
    );
    assert!(preview["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "dst_gap"));
    let bad =
        json!({ "cronExpression": "61 * * * *", "timezone": "Mars", "from": "soon", "count": 0, "dst": {"gap": "x"} });
    assert_eq!(server.post("/cron/preview", &bad).faults(), ["#/count", "#/dst/gap"]);
    let bad = json!({ "cronExpression": "61 * * * *", "timezone": "Mars", "from": "soon" });
    let reply = server.post("/cron/preview", &bad);
    assert_eq!(reply.faults(), ["#/cronExpression", "#/from", "#/timezone"]);
    assert!(reply.text.contains("out_of_range"), "{}", reply.text);
}

#[test]
fn templates_are_expressions() {
    let own = "[[template]]\nname = \"Payday\"\ncron_expression = \"0 10 LW * *\"\n";
    let server = Server::with(&format!("{}\n{own}", crate::server::TARGETS));
    let templates = server.get("/templates").expect(200);
    let names: Vec<&str> = templates["items"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"Hourly") && names.contains(&"Weekly Monday 8 AM") && names.ends_with(&["Payday"]),
        "{names:?}"
    );
    for template in templates["items"].as_array().unwrap() {
        server.post("/cron/preview", &json!({ "cronExpression": template["cronExpression"] })).expect(200);
    }
}
