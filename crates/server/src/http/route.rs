//! [`Route`]: one line of the table of routes, with everything that the pipeline and the documentation must know.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::access::Role;
use super::call::{Answer, Call};
use super::problem::{Kind, Problem};
use crate::form::Field;

type Answering = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// What answers a request.
#[derive(Clone)]
pub(crate) struct Handler(Arc<dyn Fn(Call) -> Answering + Send + Sync>);

impl Handler {
    pub(crate) fn call(&self, call: Call) -> Answering {
        (self.0)(call)
    }
}

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Open,
    /// Who has this role.
    Role(Role),
    /// Who may read runs, which the configuration says.
    RunHistory,
    /// Who is on this machine, or has the token for it.
    Metrics,
}

/// How a body is held against its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Before the handler is called.
    Checked,
    /// By the handler: its members have their own rules.
    Own,
    /// By the handler, line by line.
    Lines,
}

/// What one method of one path does.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) summary: &'static str,
    pub(crate) query: &'static [Field],
    pub(crate) body: Option<&'static [Field]>,
    pub(crate) shape: Shape,
    /// Changes something that has a revision.
    pub(crate) revised: bool,
    /// Its answer may be kept for who sends the same again.
    pub(crate) remembered: bool,
    pub(crate) handler: Handler,
    pub(crate) answers: Vec<Told>,
    pub(crate) problems: Vec<Kind>,
}

/// An answer, for the documentation.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) about: &'static str,
    pub(crate) media: &'static str,
    /// `null` for an answer without content.
    pub(crate) schema: Value,
    /// The schemas that it refers to.
    pub(crate) parts: Vec<(String, RefOr<Schema>)>,
}

/// A line of the table.
pub(crate) fn route<F, A>(method: Method, path: &'static str, access: Access, handler: F) -> Route
where
    F: Fn(Call) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, Problem>> + Send + 'static,
{
    let handler = Handler(Arc::new(move |call| Box::pin(handler(call))));
    Route {
        method,
        path,
        access,
        summary: "",
        query: &[],
        body: None,
        shape: Shape::Checked,
        revised: false,
        remembered: true,
        handler,
        answers: Vec::new(),
        problems: Vec::new(),
    }
}

impl Route {
    pub(crate) fn does(self, summary: &'static str) -> Route {
        Route { summary, ..self }
    }

    pub(crate) fn query(self, query: &'static [Field]) -> Route {
        Route { query, ..self }
    }

    pub(crate) fn body(self, body: &'static [Field]) -> Route {
        Route { body: Some(body), ..self }
    }

    /// A body whose members the handler reads itself, because more than their shape is to be told at once.
    pub(crate) fn own_body(self, body: &'static [Field]) -> Route {
        Route { body: Some(body), shape: Shape::Own, ..self }
    }

    /// A body of many lines, each of them a JSON object that the handler reads itself.
    pub(crate) fn lines(self, line: &'static [Field]) -> Route {
        Route { body: Some(line), shape: Shape::Lines, ..self }
    }

    /// Honours `If-Match`.
    pub(crate) fn revised(self) -> Route {
        Route { revised: true, ..self }
    }

    /// Answers with a secret, which nothing keeps.
    pub(crate) fn secret(self) -> Route {
        Route { remembered: false, ..self }
    }

    /// Answers with a document of this shape.
    pub(crate) fn answers<T: ToSchema + PartialSchema>(self, status: u16, about: &'static str) -> Route {
        self.answers_with::<T>(status, about, |schema| schema)
    }

    /// Answers with a page of documents of this shape.
    pub(crate) fn answers_page<T: ToSchema + PartialSchema>(self, about: &'static str) -> Route {
        self.answers_with::<T>(200, about, |schema| {
            json!({
                "type": "object",
                "required": ["items", "nextCursor"],
                "properties": {
                    "items": { "type": "array", "items": schema },
                    "nextCursor": {
                        "type": ["string", "null"],
                        "description": "Where the next page begins; null at the end.",
                    },
                    "unreadable": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "Ids of rows that could not be read and were left out.",
                    },
                },
            })
        })
    }

    /// Answers with all documents of this shape.
    pub(crate) fn answers_items<T: ToSchema + PartialSchema>(self, about: &'static str) -> Route {
        self.answers_with::<T>(200, about, |schema| {
            let items = json!({ "type": "array", "items": schema });
            json!({ "type": "object", "required": ["items"], "properties": { "items": items } })
        })
    }

    /// Answers with a bare list of documents of this shape.
    pub(crate) fn answers_array<T: ToSchema + PartialSchema>(self, about: &'static str) -> Route {
        self.answers_with::<T>(200, about, |schema| json!({ "type": "array", "items": schema }))
    }

    fn answers_with<T: ToSchema + PartialSchema>(
        mut self,
        status: u16,
        about: &'static str,
        shape: impl Fn(Value) -> Value,
    ) -> Route {
        let mut parts = Vec::new();
        T::schemas(&mut parts);
        let name = T::name().into_owned();
        parts.push((name.clone(), T::schema()));
        let schema = shape(json!({ "$ref": format!("#/components/schemas/{name}") }));
        self.answers.push(Told { status, about, media: "application/json", schema, parts });
        self
    }

    /// Answers with a text of this kind.
    pub(crate) fn answers_text(mut self, status: u16, about: &'static str, media: &'static str) -> Route {
        self.answers.push(Told { status, about, media, schema: json!({ "type": "string" }), parts: Vec::new() });
        self
    }

    /// Answers without content.
    pub(crate) fn answers_nothing(mut self, status: u16, about: &'static str) -> Route {
        self.answers.push(Told { status, about, media: "", schema: Value::Null, parts: Vec::new() });
        self
    }

    /// Problems besides those that every route can have.
    pub(crate) fn problems(mut self, kinds: &[Kind]) -> Route {
        self.problems.extend(kinds);
        self
    }

    /// Whether something may change.
    pub(crate) fn writes(&self) -> bool {
        self.method != Method::GET
    }
}
