//! The examples of request bodies are what their routes accept.

use everbell_core::Zone;
use everbell_wire::{Example, Job, Preview};

use super::{compat, orgs};
use crate::examples::request;
use crate::route::Shape;
use crate::{compat_routes, mounted_routes};
use everbell_wire::body::{definition, job};
use everbell_wire::form::{Form, Kind, Naming};
use serde_json::json;

/// The fields of a route, and the times in them, which are read where a zone is known.
#[test]
fn every_body_has_an_example_that_its_fields_accept() {
    let routes = [mounted_routes(), compat_routes()].concat();
    let mut checked = 0;
    for route in routes.iter().filter(|route| route.body.is_some()) {
        let (fields, example) = (route.body.unwrap_or_default(), request(route.body_name));
        let mut form = Form::read(&example, fields, Naming::Camel);
        for field in fields.iter().filter(|field| matches!(field.kind, Kind::Time)) {
            job::time(&mut form, field.name, &Zone::utc());
        }
        assert_eq!(form.faults(), [], "{}", route.body_name);
        checked += 1;
    }
    assert_eq!(checked, 42);
}

#[test]
fn examples_of_jobs_are_jobs() {
    let mut whole = request("JobCreate");
    assert_eq!(job::read(&whole, None, Naming::Camel).faults, []);
    // The document of the created job shows the same values.
    let created = serde_json::to_value(Job::example()).unwrap();
    for (name, value) in whole.as_object().unwrap().iter().filter(|(name, _)| *name != "policies") {
        assert_eq!(created[name], *value, "{name}");
    }
    let mut patch = request("JobPatch");
    patch.as_object_mut().unwrap().remove("reason");
    definition::merge(&mut whole, &patch);
    assert_eq!(job::read(&whole, None, Naming::Camel).faults, []);
}

#[test]
fn examples_of_other_bodies_are_read_by_their_handlers() {
    let lines = request("OrgLine").to_string();
    assert_eq!(orgs::read_lines(&lines).unwrap().len(), 1);
    assert_eq!(compat::faults_of(&request("ScheduleCreate"), true, None), []);
    assert_eq!(compat::faults_of(&request("SchedulePatch"), false, None), []);
    let preview = Preview::example();
    let asked = request("CronPreviewRequest");
    assert_eq!((&asked["cronExpression"], &asked["timezone"]), (&json!(preview.expression), &json!(preview.timezone)));
    assert_eq!(asked["count"], json!(preview.next.len()));
}

#[test]
fn lines_are_the_only_body_that_is_not_json() {
    let lines: Vec<_> = mounted_routes().into_iter().filter(|route| route.shape == Shape::Lines).collect();
    assert_eq!(lines.iter().map(|route| route.id).collect::<Vec<_>>(), ["importOrgs"]);
}
