//! `[[template]]` blocks: named expressions for new jobs, besides the built-in ones.

use everbell_core::cron::Expression;

use super::fields::TEMPLATE;
use super::layers::Layers;
use super::targets::refuse_all;
use everbell_wire::FaultCode;
use everbell_wire::Template;
use everbell_wire::body::job::expression_fault;
use everbell_wire::form::{Form, Naming};

/// Returns the built-in ones, and those of the blocks.
pub(super) fn read(layers: &mut Layers) -> Vec<Template> {
    let mut templates = Template::built_in();
    for (n, block) in layers.blocks("template").iter().enumerate() {
        let mut form = Form::read(block, TEMPLATE, Naming::Snake);
        let name = form.text("name").unwrap_or_default().to_owned();
        if templates.iter().any(|known| known.name == name) {
            form.fault("name", FaultCode::Invalid, "is already used; template names must be unique");
        }
        let cron_expression = form.text("cronExpression").unwrap_or_default().to_owned();
        if let Err(error) = Expression::parse(&cron_expression) {
            form.fault("cronExpression", FaultCode::from(&error), expression_fault(&error));
        }
        let mut template = Template::new(name, cron_expression);
        if let Some(text) = form.text("description") {
            text.clone_into(&mut template.description);
        }
        templates.push(template);
        refuse_all(layers, &format!("/template/{n}"), form.faults());
    }
    templates
}
