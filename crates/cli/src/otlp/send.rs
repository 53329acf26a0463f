//! Sends spans in batches, from a thread and a runtime of its own. What a collector does not take is lost: a trace is no
//! result.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domesday_connector::http::client_builder;
use serde_json::json;

use super::{Message, Span};

/// Where collectors take traces.
const PATH: &str = "/v1/traces";
/// Spans of one request, at most.
const BATCH_MAX: usize = 512;
/// How long a span waits for others to go with it, at most.
const BATCH_DELAY: Duration = Duration::from_secs(2);
/// How long a collector may take for a batch.
const REQUEST_MAX: Duration = Duration::from_secs(10);

type Post = dyn Fn(Vec<u8>) -> Pin<Box<dyn Future<Output = Result<()>>>> + Send;

pub(super) struct Sender {
    post: Box<Post>,
    runtime: tokio::runtime::Runtime,
    dropped: Arc<AtomicU64>,
    /// Spans that were dropped or not taken, as far as the log says so.
    told: u64,
    lost: u64,
}

impl Sender {
    pub fn new(endpoint: &str, dropped: Arc<AtomicU64>) -> Result<Sender> {
        let url = format!("{}{PATH}", endpoint.trim_end_matches('/'));
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("name the collector as http://HOST:PORT or https://HOST:PORT");
        }
        let client = client_builder().timeout(REQUEST_MAX).build().context("cannot speak HTTP")?;
        let post = move |body: Vec<u8>| -> Pin<Box<dyn Future<Output = Result<()>>>> {
            let request = client.post(&url).header("content-type", "application/json").body(body);
            Box::pin(async move {
                request.send().await?.error_for_status()?;
                Ok(())
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime of traces")?;
        Ok(Sender { post: Box::new(post), runtime, dropped, told: 0, lost: 0 })
    }

    /// Until nobody is left who could hand over spans.
    pub fn run(mut self, waiting: &Receiver<Message>) {
        let mut batch: Vec<Span> = Vec::new();
        let mut since = Instant::now();
        loop {
            let message = match batch.is_empty() {
                true => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => waiting.recv_timeout(BATCH_DELAY.saturating_sub(since.elapsed())),
            };
            match message {
                Ok(Message::Span(span)) => {
                    if batch.is_empty() {
                        since = Instant::now();
                    }
                    batch.push(span);
                    if batch.len() >= BATCH_MAX {
                        self.send(&mut batch);
                    }
                }
                Ok(Message::Finish(sent)) => {
                    self.send(&mut batch);
                    // Whoever waited may be gone.
                    let _ = sent.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.send(&mut batch),
                Err(RecvTimeoutError::Disconnected) => return self.send(&mut batch),
            }
        }
    }

    fn send(&mut self, batch: &mut Vec<Span>) {
        if batch.is_empty() {
            return;
        }
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [super::attribute("service.name", &"domesday".into())] },
            "scopeSpans": [{
                "scope": { "name": "domesday", "version": env!("CARGO_PKG_VERSION") },
                "spans": batch.iter().map(Span::json).collect::<Vec<_>>(),
            }],
        }] });
        let sent = self.runtime.block_on((self.post)(body.to_string().into_bytes()));
        if let Err(error) = &sent {
            self.lost += batch.len() as u64;
            tracing::debug!(error = format!("{error:#}"), "spans were not taken");
        }
        batch.clear();
        let lost = self.lost + self.dropped.load(Ordering::Relaxed);
        // Twice as many each time: an outage of the collector does not fill the log.
        if lost > self.told * 2 {
            self.told = lost;
            tracing::warn!(lost, "spans were lost: look at the collector of traces");
        }
    }
}
