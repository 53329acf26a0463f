//! The layer that makes spans of `tracing`'s spans.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{SystemTime, UNIX_EPOCH};

use domesday_model::redact::redacted;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{Filtered, LevelFilter, filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use super::{Message, Span};
use crate::logs::Log;
use crate::state::random_bytes;

/// Spans of the program itself begin with this; libraries have theirs for who looks for an error in them.
const OWN_TARGETS: &str = "domesday";

/// Hands spans over when they end.
pub struct Spans {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Spans {
    pub(super) fn new(queue: SyncSender<Message>) -> Spans {
        Spans { queue, dropped: Arc::default() }
    }

    /// Spans for which the queue had no room.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    /// The layer, of which nothing but its spans is asked, whatever the log is to have.
    pub fn layer(self) -> Log {
        let is_wanted: fn(&Metadata<'_>) -> bool = |about| {
            about.is_span() && *about.level() <= Level::INFO && about.target().starts_with(OWN_TARGETS)
        };
        let filter = filter_fn(is_wanted).with_max_level_hint(LevelFilter::INFO);
        let layer: Filtered<Spans, _, Registry> = self.with_filter(filter);
        layer.boxed()
    }
}

impl<S> Layer<S> for Spans
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Span>().map(|parent| (parent.trace, parent.id))
        });
        let mut fields = Fields(Vec::new());
        attributes.record(&mut fields);
        span.extensions_mut().insert(Span {
            trace: parent.map_or_else(random_bytes, |(trace, _)| trace),
            id: random_bytes(),
            parent: parent.map(|(_, id)| id),
            name: attributes.metadata().name(),
            begun: now(),
            ended: 0,
            fields: fields.0,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(span) = span.extensions_mut().get_mut::<Span>() {
            let mut fields = Fields(std::mem::take(&mut span.fields));
            values.record(&mut fields);
            span.fields = fields.0;
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(mut span) = span.extensions_mut().remove::<Span>() else { return };
        span.ended = now();
        if self.queue.try_send(Message::Span(span)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Nanoseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "a trace is about this machine's time, and nothing follows from it"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.0.push((field.name(), value));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, redacted(value).into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}
