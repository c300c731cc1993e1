//! [`Refusal`]: what is wrong with a form that was sent.

use crate::markup::{Markup, render_inline_code};
use everbell_http::problem::{Kind, Problem};

/// The errors of a submitted form: by field, and about the form as a whole.
#[derive(Default)]
pub(crate) struct Refusal {
    pub(crate) faults: Vec<(String, String)>,
    pub(crate) whole: Option<String>,
}

impl Refusal {
    /// Assigns the errors of a problem to these fields. All other errors are about the form as a whole.
    pub(crate) fn from_problem(problem: Option<&Problem>, fields: &[&str]) -> Refusal {
        let Some(problem) = problem else { return Refusal::default() };
        // A job that lives, but of which the form knew another version, is retired to the API.
        if matches!(problem.kind, Kind::RevisionMismatch | Kind::JobRetired) {
            let text = "The job has changed in the meantime, and nothing was done. This is its current state: check it, then try again.";
            return Refusal { faults: Vec::new(), whole: Some(text.to_owned()) };
        }
        let (mut faults, mut others) = (Vec::new(), Vec::new());
        for (place, text) in problem.faults() {
            let place = place.trim_start_matches("#/");
            // What is inside of a field is shown at the field.
            match fields.iter().find(|name| place == **name || place.starts_with(&format!("{name}/"))) {
                Some(name) => faults.push(((*name).to_owned(), text)),
                None => others.push((place.to_owned(), text)),
            }
        }
        let whole = match others.as_slice() {
            [] => faults.is_empty().then(|| problem.detail.clone()),
            others => {
                Some(others.iter().map(|(place, text)| format!("{place}: {text}")).collect::<Vec<_>>().join("; "))
            }
        };
        Refusal { faults, whole }
    }

    /// One fault of one field.
    pub(crate) fn at_field(name: &str, text: impl Into<String>) -> Refusal {
        Refusal { faults: vec![(name.to_owned(), text.into())], whole: None }
    }

    /// Returns the error of a field.
    pub(crate) fn at(&self, name: &str) -> Option<&str> {
        self.faults.iter().find(|(place, _)| place == name).map(|(_, text)| text.as_str())
    }

    /// The attributes of a field: what stands below it is about it, and whether that is a fault.
    pub(crate) fn mark(&self, name: &str) -> Markup {
        let invalid = if self.at(name).is_some() { " aria-invalid=\"true\"" } else { "" };
        Markup::from_html(format!(" aria-describedby=\"{name}-note\"{invalid}"))
    }

    /// Renders the text below a field: its error, or else a note.
    pub(crate) fn below(&self, name: &str, about: &str) -> Markup {
        let (class, text) = self.at(name).map_or(("note", about), |fault| ("fault", fault));
        Markup::from_html(format!(
            "<p class=\"{class}\" id=\"{name}-note\" dir=\"auto\">{}</p>",
            render_inline_code(text)
        ))
    }

    /// Renders the text below a time field, with the time zone that applies.
    pub(crate) fn below_in(&self, name: &str, zone: &str, about: &str) -> Markup {
        self.below(name, format!("In {zone}. {about}").trim_end())
    }
}

#[cfg(test)]
mod tests {
    use everbell_wire::FaultCode;

    use super::*;
    use everbell_wire::form::Fault;

    #[test]
    fn a_fault_stands_at_its_field_or_above_all() {
        let faults = vec![
            Fault::new("/reason", FaultCode::Required, "is <required>"),
            Fault::new("/schedule", FaultCode::Invalid, "broken"),
        ];
        let refusal = Refusal::from_problem(Some(&Problem::body(faults)), &["reason", "until"]);
        assert_eq!((refusal.at("reason"), refusal.at("until")), (Some("is <required>"), None));
        assert_eq!(refusal.whole.as_deref(), Some("schedule: broken"));
        assert!(refusal.below("reason", "why").as_str().contains("class=\"fault\" id=\"reason-note\""));
        assert!(refusal.below("reason", "why").as_str().contains("is &lt;required&gt;"));
        assert!(refusal.below("until", "when").as_str().contains(">when<"));
        assert!(refusal.mark("reason").as_str().contains("aria-invalid"));
        let whole = Refusal::from_problem(Some(&Problem::new(Kind::Conflict, "the job is not paused")), &["reason"]);
        assert_eq!(whole.whole.as_deref(), Some("the job is not paused"));
        assert!(Refusal::from_problem(None, &[]).whole.is_none());
    }
}
