//! `[[template]]` blocks: named expressions to begin with, besides those that everybody has.

use everbell_core::cron::Expression;

use super::fields::TEMPLATE;
use super::layers::Layers;
use super::targets::refuse_all;
use crate::form::job::expression_fault;
use crate::form::{Form, Naming};

/// A named expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) cron_expression: String,
    pub(crate) description: String,
}

/// The templates that everybody has.
const USUAL: [(&str, &str); 6] = [
    ("Hourly", "0 * * * *"),
    ("Daily midnight", "0 0 * * *"),
    ("Daily 9 AM", "0 9 * * *"),
    ("Weekdays 9 AM", "0 9 * * mon-fri"),
    ("Weekly Monday 8 AM", "0 8 * * mon"),
    ("Monthly, on the first", "0 0 1 * *"),
];

pub(crate) fn usual_templates() -> Vec<Template> {
    let usual = |(name, text): (&str, &str)| Template {
        name: name.to_owned(),
        cron_expression: text.to_owned(),
        description: describe(text),
    };
    USUAL.into_iter().map(usual).collect()
}

fn describe(text: &str) -> String {
    Expression::parse(text).map(|expression| expression.describe()).unwrap_or_default()
}

/// Those that everybody has, and those of the blocks.
pub(super) fn read(layers: &mut Layers) -> Vec<Template> {
    let mut templates = usual_templates();
    for (n, block) in layers.blocks("template").iter().enumerate() {
        let mut form = Form::read(block, TEMPLATE, Naming::Snake);
        let name = form.text("name").unwrap_or_default().to_owned();
        if templates.iter().any(|known| known.name == name) {
            form.fault("name", "invalid", "is there already; every template has a name of its own");
        }
        let cron_expression = form.text("cronExpression").unwrap_or_default().to_owned();
        if let Err(error) = Expression::parse(&cron_expression) {
            form.fault("cronExpression", error.code(), expression_fault(&error));
        }
        let description = form.text("description").map_or_else(|| describe(&cron_expression), str::to_owned);
        templates.push(Template { name, cron_expression, description });
        refuse_all(layers, &format!("/template/{n}"), form.faults());
    }
    templates
}
