use super::*;

#[test]
fn kinds_are_told_apart_by_their_words() {
    assert_eq!(CATALOG[20].kind, Kind::Internal);
    for (n, about) in CATALOG.iter().enumerate() {
        assert_eq!(about.kind as usize, n, "{}", about.slug);
        let differs = |other: &About| other.slug != about.slug && other.code != about.code;
        assert!(CATALOG[..n].iter().all(differs), "{}", about.slug);
        assert!(!matches!(about.code, wire::ProblemCode::Other(_)), "{}", about.slug);
        assert!((400..600).contains(&about.status) && about.help.ends_with('.'), "{}", about.slug);
    }
}

#[test]
fn a_problem_says_where_and_why() {
    let problem =
        Problem::body(vec![Fault::new("/reason", FaultCode::Required, "is required: why")]).with("jobId", "1");
    assert_eq!(
        problem.document("r1", "/admin/cron"),
        json!({
            "type": "/admin/cron/docs/problems/invalid-input", "title": "The request is invalid", "status": 400,
            "code": "InvalidInput", "detail": "#/reason: is required: why", "instance": "urn:request:r1",
            "errors": [{"pointer": "#/reason", "code": "required", "detail": "is required: why"}], "jobId": "1",
        })
    );
    let again = Problem::from_document(&problem.document("r2", "")).unwrap();
    assert_eq!((again.kind, again.faults(), &again.detail), (problem.kind, problem.faults(), &problem.detail));
    assert!(Problem::from_document(&json!({"code": "Nothing", "detail": "x"})).is_none());
    let query = Problem::query(vec![Fault::new("/limit", FaultCode::OutOfRange, "must be from 1 to 200, not 0")]);
    assert_eq!(query.document("r1", "")["errors"][0]["parameter"], "limit");
}

#[test]
fn members_of_a_problem_are_typed() {
    let problem = Problem::new(Kind::Conflict, "It has ended.").with("runStatus", "failed");
    assert_eq!(problem.members().unwrap().run_status, Some(wire::run::RunStatus::Failed));
    let broken = Problem::new(Kind::OverlapSkipped, "Skipped.").with("run", "no run");
    assert_eq!(broken.members().unwrap_err().kind, Kind::Internal);
}
