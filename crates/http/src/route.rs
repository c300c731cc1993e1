//! [`Route`]: one line of the table of routes, with everything that the pipeline and the documentation must know.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::Method;
use everbell_wire::{Example, Items, Page};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::access::Role;
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, schema};

type ResponseFuture = Pin<Box<dyn Future<Output = Result<ApiResponse, Problem>> + Send>>;

/// The handler of a route.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(ApiRequest) -> ResponseFuture + Send + Sync>);

impl Handler {
    pub(crate) fn call(&self, request: ApiRequest) -> ResponseFuture {
        (self.0)(request)
    }
}

/// The access rule of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No authentication.
    Open,
    /// Callers with at least this role.
    Role(Role),
    /// Programs that read regularly, such as calendars, with at least this role. Of these, many only know a name and a
    /// password: a token is taken as the password of any name, too.
    Feed(Role),
    /// Callers who may read runs, as configured.
    RunHistory,
    /// The remote side of a run, with its run token, and operators.
    RunToken,
    /// Programs on this machine, or callers with the metrics token.
    Metrics,
}

/// How a body is held against its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Before the handler is called.
    Checked,
    /// By the handler: its members have their own rules.
    Own,
    /// By the handler, line by line.
    Lines,
}

/// A method of a path.
#[derive(Clone)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path below the mount, with its parameters in braces.
    pub path: &'static str,
    pub(crate) access: Access,
    /// The operation id: a verb and its object in camel case, which clients use as the name of a method.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// More than the summary says; may be empty.
    pub(crate) details: &'static str,
    /// The operation id of the route that clients should use instead of this one.
    pub(crate) replaced_by: Option<&'static str>,
    pub(crate) query: &'static [Field],
    pub(crate) body: Option<&'static [Field]>,
    /// The name of the body in the OpenAPI document.
    pub(crate) body_name: &'static str,
    pub(crate) shape: Shape,
    /// Changes something that has a revision.
    pub revised: bool,
    /// Whether responses are stored for idempotency.
    pub remembered: bool,
    pub(crate) handler: Handler,
    responses: Vec<Description>,
    pub(crate) problems: Vec<Kind>,
}

/// Describes a response when the documentation is made: every process has the routes, and few are asked for their schemas.
type Description = Arc<dyn Fn() -> DocumentedResponse + Send + Sync>;

/// A response in the documentation.
pub struct DocumentedResponse {
    /// The HTTP status.
    pub status: u16,
    pub(crate) about: &'static str,
    pub(crate) media: &'static str,
    /// `null` for an answer without content.
    pub schema: Value,
    /// The schemas that it refers to.
    pub(crate) parts: Vec<(String, Value)>,
    /// `null` for none.
    pub(crate) example: Value,
}

/// A document that an answer can hold.
pub(crate) trait Document: ToSchema + PartialSchema + Serialize + Example + 'static {}

impl<T: ToSchema + PartialSchema + Serialize + Example + 'static> Document for T {}

/// The schema of an answer.
enum Shaped {
    Inline(Value),
    /// A component of the OpenAPI document.
    Named(String, Value),
}

/// A line of the table.
pub fn route<F, A>(method: Method, path: &'static str, access: Access, handler: F) -> Route
where
    F: Fn(ApiRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<ApiResponse, Problem>> + Send + 'static,
{
    let handler = Handler(Arc::new(move |request| Box::pin(handler(request))));
    Route {
        method,
        path,
        access,
        id: "",
        summary: "",
        details: "",
        replaced_by: None,
        query: &[],
        body: None,
        body_name: "",
        shape: Shape::Checked,
        revised: false,
        remembered: true,
        handler,
        responses: Vec::new(),
        problems: Vec::new(),
    }
}

impl Route {
    pub(crate) fn does(self, id: &'static str, summary: &'static str) -> Route {
        Route { id, summary, ..self }
    }

    pub(crate) fn details(self, details: &'static str) -> Route {
        Route { details, ..self }
    }

    /// Marks the route as deprecated in favor of the one with this operation id.
    pub(crate) fn replaced_by(self, id: &'static str) -> Route {
        Route { replaced_by: Some(id), ..self }
    }

    pub(crate) fn query(self, query: &'static [Field]) -> Route {
        Route { query, ..self }
    }

    /// Sets the fields of the body.
    pub(crate) fn body(self, name: &'static str, body: &'static [Field]) -> Route {
        Route { body: Some(body), body_name: name, ..self }
    }

    /// Sets a body that the handler checks itself, so that all faults are reported at once.
    pub(crate) fn own_body(self, name: &'static str, body: &'static [Field]) -> Route {
        Route { shape: Shape::Own, ..self.body(name, body) }
    }

    /// A body of many lines, each of them a JSON object that the handler reads itself.
    pub(crate) fn lines(self, name: &'static str, line: &'static [Field]) -> Route {
        Route { shape: Shape::Lines, ..self.body(name, line) }
    }

    /// Honours `If-Match`.
    pub(crate) fn revised(self) -> Route {
        Route { revised: true, ..self }
    }

    /// Marks the response as secret, so that it is never stored.
    pub(crate) fn secret(self) -> Route {
        Route { remembered: false, ..self }
    }

    /// Answers with a document of this shape.
    pub(crate) fn returns<T: Document>(self, status: u16, about: &'static str) -> Route {
        self.returns_example::<T>(status, about, T::example)
    }

    /// Answers with a document of this shape, in the state of this example.
    pub(crate) fn returns_example<T: Document>(self, status: u16, about: &'static str, example: fn() -> T) -> Route {
        self.returns_with::<T, T>(status, about, example, |_, schema| Shaped::Inline(schema))
    }

    /// Answers with a page of documents of this shape.
    pub(crate) fn returns_page<T: Document>(self, about: &'static str) -> Route {
        self.returns_with::<T, _>(200, about, Page::<T>::example, |name, item| {
            let page = json!({
                "type": "object",
                "required": ["items", "nextCursor"],
                "properties": {
                    "items": { "type": "array", "items": item, "description": "The items of this page." },
                    "nextCursor": {
                        "type": ["string", "null"],
                        "description": "The `cursor` of the next page; null at the end.",
                    },
                    "unreadable": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "Ids of rows that cannot be read and are left out.",
                    },
                },
            });
            Shaped::Named(format!("{name}Page"), page)
        })
    }

    /// Answers with all documents of this shape.
    pub(crate) fn returns_items<T: Document>(self, about: &'static str) -> Route {
        self.returns_with::<T, _>(200, about, Items::<T>::example, |name, item| {
            let items = json!({ "type": "array", "items": item, "description": "All items." });
            let list = json!({ "type": "object", "required": ["items"], "properties": { "items": items } });
            Shaped::Named(format!("{name}List"), list)
        })
    }

    /// Answers with a bare list of documents of this shape.
    pub(crate) fn returns_array<T: Document>(self, about: &'static str) -> Route {
        let array = |_: &str, item| Shaped::Inline(json!({ "type": "array", "items": item }));
        self.returns_with::<T, _>(200, about, Vec::<T>::example, array)
    }

    fn returns_with<T: Document, E: Serialize + 'static>(
        self,
        status: u16,
        about: &'static str,
        example: fn() -> E,
        shape: fn(&str, Value) -> Shaped,
    ) -> Route {
        self.add_response(move || {
            let mut parts = Vec::new();
            T::schemas(&mut parts);
            let name = T::name().into_owned();
            parts.push((name.clone(), T::schema()));
            let plain = |(name, part)| (name, serde_json::to_value(part).unwrap_or_default());
            let mut parts: Vec<(String, Value)> = parts.into_iter().map(plain).collect();
            let schema = match shape(&name, schema::reference(&name)) {
                Shaped::Inline(schema) => schema,
                Shaped::Named(name, whole) => {
                    let reference = schema::reference(&name);
                    parts.push((name, whole));
                    reference
                }
            };
            let example = serde_json::to_value(example()).unwrap_or_default();
            DocumentedResponse { status, about, media: "application/json", schema, parts, example }
        })
    }

    /// Answers with a text of this kind.
    pub(crate) fn returns_text(
        self,
        status: u16,
        about: &'static str,
        media: &'static str,
        example: &'static str,
    ) -> Route {
        self.add_response(move || DocumentedResponse {
            status,
            about,
            media,
            schema: json!({ "type": "string" }),
            parts: Vec::new(),
            example: json!(example),
        })
    }

    /// Answers with a JSON object whose members are not described here.
    pub(crate) fn returns_object(self, status: u16, about: &'static str, example: fn() -> Value) -> Route {
        self.add_response(move || DocumentedResponse {
            status,
            about,
            media: "application/json",
            schema: json!({ "type": "object" }),
            parts: Vec::new(),
            example: example(),
        })
    }

    /// Answers without content.
    pub(crate) fn returns_nothing(self, status: u16, about: &'static str) -> Route {
        self.add_response(move || DocumentedResponse {
            status,
            about,
            media: "",
            schema: Value::Null,
            parts: Vec::new(),
            example: Value::Null,
        })
    }

    fn add_response(mut self, describe: impl Fn() -> DocumentedResponse + Send + Sync + 'static) -> Route {
        self.responses.push(Arc::new(describe));
        self
    }

    /// Returns what the documentation says of its responses.
    pub fn documented_responses(&self) -> impl Iterator<Item = DocumentedResponse> {
        self.responses.iter().map(|describe| describe())
    }

    /// Problems besides those that every route can have.
    pub(crate) fn problems(mut self, kinds: &[Kind]) -> Route {
        self.problems.extend(kinds);
        self
    }

    /// Whether something may change.
    pub fn writes(&self) -> bool {
        self.method != Method::GET
    }
}
