//! Traces over OTLP: the spans of tasks and of their writes, as JSON over HTTP, to a collector that the operator names.
//! Only with the feature `otlp`; tests have it always.
//!
//! A span is what `tracing` has as one; a task's is the root of its trace. Spans are handed to a thread of their own
//! through a bounded queue: whoever works never waits for a collector, and what finds no room is dropped and counted.
//! The form is that of the public specification (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding").

mod layer;
mod send;

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub use layer::Spans;
use send::Sender;

/// Spans that wait to be sent, at most.
const WAITING_MAX: usize = 8_192;
/// How long the end of the process waits for what is left to be sent.
const END_MAX: Duration = Duration::from_secs(5);

/// A span that has ended.
#[derive(Clone, PartialEq, Debug)]
struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'static str,
    /// Nanoseconds since 1970.
    begun: u64,
    ended: u64,
    fields: Vec<(&'static str, Value)>,
}

impl Span {
    /// As the specification has it: ids in hex, 64-bit numbers as strings.
    fn json(&self) -> Value {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        json!({
            "traceId": hex(&self.trace),
            "spanId": hex(&self.id),
            "parentSpanId": self.parent.map_or(String::new(), |id| hex(&id)),
            "name": self.name,
            "kind": 1,
            "startTimeUnixNano": self.begun.to_string(),
            "endTimeUnixNano": self.ended.to_string(),
            "attributes": self.fields.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>(),
        })
    }
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": name, "value": value })
}

enum Message {
    Span(Span),
    /// Send what there is, and say so.
    Finish(SyncSender<()>),
}

/// What sends spans.
pub struct Traces {
    queue: SyncSender<Message>,
    _thread: JoinHandle<()>,
}

impl Traces {
    /// Begins to send to the collector at `endpoint`, such as `http://127.0.0.1:4318`; the layer that spans come from.
    pub fn begin(endpoint: &str) -> Result<(Traces, Spans)> {
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let spans = Spans::new(queue.clone());
        let sender = Sender::new(endpoint, spans.dropped()).context("--otlp-endpoint")?;
        let thread = std::thread::Builder::new().name("otlp".into());
        let thread =
            thread.spawn(move || sender.run(&waiting)).context("cannot start a thread for traces")?;
        Ok((Traces { queue, _thread: thread }, spans))
    }

    /// Sends what is left, as far as the collector takes it in time.
    pub fn finish(self) {
        let (sent, done) = sync_channel(1);
        // No room means that the collector does not take what there is.
        if self.queue.try_send(Message::Finish(sent)).is_ok() {
            let _ = done.recv_timeout(END_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use domesday_testkit::fleet::PATIENCE;
    use domesday_testkit::http::{Response, Server};
    use domesday_testkit::wait;
    use tracing::Level;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn sent(server: &Server) -> Vec<Value> {
        let mut spans = Vec::new();
        for request in server.requests() {
            assert_eq!((request.method.as_str(), request.path()), ("POST", "/v1/traces"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let resource = &body["resourceSpans"][0];
            assert_eq!(
                resource["resource"]["attributes"][0],
                json!({ "key": "service.name", "value": { "stringValue": "domesday" } })
            );
            spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().clone());
        }
        spans
    }

    /// A task with a write in it, and what is no span of a fleet's.
    fn work(secret: &str) {
        let task = tracing::info_span!("task", job_id = %3, task_id = 7, open = true, url = secret, later = tracing::field::Empty);
        task.in_scope(|| {
            task.record("later", 2.5);
            tracing::debug_span!("detail").in_scope(|| ());
            tracing::info_span!(target: "library", "request").in_scope(|| ());
            tracing::info_span!("batch", records = 12u64).in_scope(|| ());
        });
    }

    #[test]
    fn spans_arrive_at_a_collector_with_their_fields_and_their_parents() {
        let server = Server::start(|_| Response::ok("{}"));
        let (traces, spans) = Traces::begin(&server.url("")).unwrap();
        let subscriber = tracing_subscriber::registry().with(spans.layer());
        tracing::subscriber::with_default(subscriber, || work("https://h/x?token=abc"));
        traces.finish();
        let spans = sent(&server);
        let [batch, task] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((&batch["name"], &task["name"]), (&json!("batch"), &json!("task")));
        assert_eq!(batch["traceId"], task["traceId"]);
        assert_eq!((&batch["parentSpanId"], &task["parentSpanId"]), (&task["spanId"], &json!("")));
        assert_eq!(task["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(task["spanId"].as_str().unwrap().len(), 16);
        let time = |name: &str| task[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        assert_eq!(
            task["attributes"],
            json!([
                { "key": "job_id", "value": { "stringValue": "3" } },
                { "key": "task_id", "value": { "intValue": "7" } },
                { "key": "open", "value": { "boolValue": true } },
                { "key": "url", "value": { "stringValue": "https://h/x?token=****" } },
                { "key": "later", "value": { "doubleValue": 2.5 } },
            ])
        );
        assert_eq!(batch["attributes"], json!([{ "key": "records", "value": { "intValue": "12" } }]));
    }

    #[test]
    fn a_collector_that_fails_holds_up_nobody() {
        let server = Server::start(|_| Response::status(503));
        let (traces, spans) = Traces::begin(&server.url("/")).unwrap();
        let subscriber = tracing_subscriber::registry().with(spans.layer());
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2 * WAITING_MAX {
                tracing::span!(Level::INFO, "task").in_scope(|| ());
            }
        });
        traces.finish();
        // What waits at the end may be too much for it; what was tried is not tried again.
        let asked = wait::until(PATIENCE, || (!server.requests().is_empty()).then_some(()));
        assert!(asked.is_some() && sent(&server).len() <= 2 * WAITING_MAX);
        assert!(Traces::begin("no address").is_err());
    }
}
