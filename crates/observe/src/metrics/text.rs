//! The text format 0.0.4 of Prometheus.

use std::fmt::Write;

use super::catalog::Description;

/// A page of metrics as it grows.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a metric: every sample that follows is one of its.
    pub(super) fn begin(&mut self, what: &Description) {
        self.0.push_str("# HELP ");
        self.0.push_str(what.name);
        self.0.push(' ');
        // Help is ours: it has neither line ends nor backslashes.
        self.0.push_str(what.help);
        self.0.push_str("\n# TYPE ");
        self.0.push_str(what.name);
        self.0.push(' ');
        self.0.push_str(what.kind.as_str());
        self.0.push('\n');
    }

    /// A line: a name, written labels, a value.
    pub(super) fn sample(&mut self, name: &str, labels: &str, value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            self.0.push('{');
            self.0.push_str(labels);
            self.0.push('}');
        }
        self.0.push(' ');
        write_number(&mut self.0, value);
        self.0.push('\n');
    }

    /// A whole metric: one line for each of these labels. Without any it is left out.
    pub(super) fn gauges<const N: usize>(
        &mut self,
        what: &Description,
        values: impl IntoIterator<Item = ([String; N], f64)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.begin(what);
        }
        let mut labels = String::new();
        for (words, value) in values {
            labels.clear();
            write_labels(&mut labels, what.labels, &words.each_ref().map(String::as_str));
            self.sample(what.name, &labels, value);
        }
    }

    /// A metric without labels.
    pub(super) fn gauge(&mut self, what: &Description, value: f64) {
        self.gauges(what, [([], value)]);
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// `status="ok",target="log"`, in the order of the names.
pub(super) fn write_labels(text: &mut String, names: &[&str], values: &[&str]) {
    debug_assert_eq!(names.len(), values.len(), "a value for each of {names:?}");
    for (place, (name, value)) in names.iter().zip(values).enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        write_escaped(text, value);
        text.push('"');
    }
}

fn write_escaped(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            letter => text.push(letter),
        }
    }
}

/// As Go reads it.
pub(super) fn write_number(text: &mut String, value: f64) {
    if value.is_nan() {
        text.push_str("NaN");
    } else if value.is_infinite() {
        text.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    } else {
        // Writing to a string does not fail.
        let _ = write!(text, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalog::{BUILD_INFO, DATABASE_UP};

    #[test]
    fn metrics_are_written_with_help_type_and_escaped_labels() {
        let mut text = Text::default();
        let odd = "a\\b\"c\nd{e}=,ü".to_owned();
        text.gauges(&BUILD_INFO, [([odd, String::new()], 1.0)]);
        text.gauge(&DATABASE_UP, 0.0);
        let expected = "# HELP everbell_build_info Always 1; the labels identify the build.\n\
                        # TYPE everbell_build_info gauge\n\
                        everbell_build_info{version=\"a\\\\b\\\"c\\nd{e}=,ü\",commit=\"\"} 1\n";
        let text = text.into_string();
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("\neverbell_database_up 0\n"), "{text}");
    }

    #[test]
    fn a_metric_without_values_is_left_out() {
        let mut text = Text::default();
        text.gauges::<2>(&BUILD_INFO, []);
        assert_eq!(text.into_string(), "");
    }

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let written = |value| {
            let mut text = String::new();
            write_number(&mut text, value);
            text
        };
        let numbers = [0.0, -1.5, 1_794_812_400.123, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-7];
        assert_eq!(numbers.map(written), ["0", "-1.5", "1794812400.123", "+Inf", "-Inf", "NaN", "0.0000001"]);
    }
}
