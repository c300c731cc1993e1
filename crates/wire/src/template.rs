//! Cron expressions with a name, for people to begin with.

use everbell_core::cron::Expression;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Example;

/// A named cron expression to start from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// A name for people.
    pub name: String,
    /// The expression.
    pub cron_expression: String,
    /// The expression in words.
    pub description: String,
}

impl Example for Template {
    fn example() -> Template {
        Template::new("Weekdays 9 AM", "0 9 * * mon-fri")
    }
}

impl Template {
    /// A template whose description is the expression in words.
    pub fn new(name: impl Into<String>, cron_expression: impl Into<String>) -> Template {
        let cron_expression = cron_expression.into();
        let parsed = Expression::parse(&cron_expression);
        let description = parsed.map(|expression| expression.describe()).unwrap_or_default();
        Template { name: name.into(), cron_expression, description }
    }

    /// The templates that every server has.
    pub fn built_in() -> Vec<Template> {
        BUILT_IN.into_iter().map(|(name, expression)| Template::new(name, expression)).collect()
    }
}

const BUILT_IN: [(&str, &str); 6] = [
    ("Hourly", "0 * * * *"),
    ("Daily midnight", "0 0 * * *"),
    ("Daily 9 AM", "0 9 * * *"),
    ("Weekdays 9 AM", "0 9 * * mon-fri"),
    ("Weekly Monday 8 AM", "0 8 * * mon"),
    ("Monthly, on the first", "0 0 1 * *"),
];
