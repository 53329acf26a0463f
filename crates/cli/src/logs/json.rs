//! One JSON object a line: the event's own fields, and those of the spans around it. So every line that is written while
//! a task is worked on has its `job_id`, `task_id`, `worker_id` and `session_id`, whoever writes it.
//!
//! A name that is there twice has the innermost value.

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats events. Fields of spans must be formatted as JSON.
pub struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let about = event.metadata();
        let mut line = Line(vec![
            ("timestamp".into(), time.into()),
            ("level".into(), about.level().as_str().into()),
            ("target".into(), about.target().into()),
        ]);
        event.record(&mut line);
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<N>>() else { continue };
            let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
            fields.into_iter().for_each(|(name, value)| line.add(&name, value));
        }
        line.write(&mut writer)
    }
}

/// The fields of a line, in order.
struct Line(Vec<(String, Value)>);

impl Line {
    fn add(&mut self, name: &str, value: Value) {
        // As the names of raw identifiers are written.
        let name = name.strip_prefix("r#").unwrap_or(name);
        if self.0.iter().all(|(known, _)| known != name) {
            self.0.push((name.to_owned(), value));
        }
    }

    fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            write!(writer, "{before}{}:{value}", Value::from(name.as_str()))?;
        }
        writeln!(writer, "}}")
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Sender, channel};

    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;

    /// A log that is sent line by line.
    struct Log(Sender<Vec<u8>>);

    impl io::Write for Log {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(line.to_vec()).unwrap();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged by `log`, line by line.
    fn logged(log: impl FnOnce()) -> Vec<Value> {
        let (sender, lines) = channel();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || Log(sender.clone()))
            .event_format(Json)
            .fmt_fields(JsonFields::new())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        lines.try_iter().map(|line| serde_json::from_slice(&line).unwrap()).collect()
    }

    #[test]
    fn a_line_has_the_ids_of_the_spans_around_it_and_its_own_first() {
        let lines = logged(|| {
            let _task = tracing::info_span!("task", job_id = %3, task_id = %7, r#type = "classify").entered();
            let _batch = tracing::info_span!("batch", records = 12, open = true).entered();
            tracing::warn!(task_id = 8, why = "a \"quote\"\n", "said {}", 1);
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        for (name, value) in [
            ("level", Value::from("WARN")),
            ("target", module_path!().into()),
            ("message", "said 1".into()),
            ("why", "a \"quote\"\n".into()),
            ("job_id", "3".into()),
            ("task_id", 8.into()),
            ("type", "classify".into()),
            ("records", 12.into()),
            ("open", true.into()),
        ] {
            assert_eq!(line[name], value, "{name}");
        }
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn outside_of_spans_there_are_the_events_own_fields() {
        let lines = logged(|| tracing::info!(host = ?Some("x"), "begun"));
        assert_eq!(lines[0].as_object().unwrap().len(), 5, "{lines:?}");
        assert_eq!(lines[0]["host"], "Some(\"x\")");
    }
}
