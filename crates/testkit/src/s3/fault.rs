//! Answers that fail: at places drawn from a seed, so that a run can be repeated.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use s3s::service::S3Service;

use super::Shared;

/// How often requests fail, each of a thousand, and what with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    pub seed: u64,
    /// 500 InternalError.
    pub errors: u64,
    /// 503 SlowDown.
    pub slow_downs: u64,
    /// A body that ends in its middle.
    pub truncations: u64,
    /// A connection that ends without an answer.
    pub resets: u64,
    /// An answer that takes its time, and how long.
    pub delays: u64,
    pub delay: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Error,
    SlowDown,
    Truncate,
    Reset,
    Delay(Duration),
}

impl Faults {
    /// Some of everything.
    pub fn some(seed: u64) -> Faults {
        Faults {
            seed,
            errors: 60,
            slow_downs: 60,
            truncations: 80,
            resets: 60,
            delays: 40,
            delay: Duration::from_millis(20),
        }
    }

    /// Draws what happens to the next request.
    fn draw(&mut self) -> Option<Fault> {
        // SplitMix64: small, and the same everywhere.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut drawn = (mixed ^ (mixed >> 31)) % 1_000;
        for (share, fault) in [
            (self.errors, Fault::Error),
            (self.slow_downs, Fault::SlowDown),
            (self.truncations, Fault::Truncate),
            (self.resets, Fault::Reset),
            (self.delays, Fault::Delay(self.delay)),
        ] {
            match drawn.checked_sub(share) {
                Some(rest) => drawn = rest,
                None => return Some(fault),
            }
        }
        None
    }
}

pub(super) async fn answer(
    service: &S3Service,
    shared: &Shared,
    request: Request<Incoming>,
) -> io::Result<Response<Part>> {
    let fault = shared.faults.lock().draw();
    if fault.is_some() {
        shared.counts.lock().faults += 1;
    }
    match fault {
        Some(Fault::Error) => return Ok(error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
        Some(Fault::SlowDown) => return Ok(error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
        Some(Fault::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::Truncate) | None => {}
    }
    let request = request.map(s3s::Body::from);
    let answer = service.call(request).await.map_err(|_| io::ErrorKind::ConnectionReset)?;
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let sent = if fault == Some(Fault::Truncate) { bytes.slice(..bytes.len() / 2) } else { bytes.clone() };
    let missing = (bytes.len() - sent.len()) as u64;
    Ok(Response::from_parts(head, Part { sent: Some(sent), missing }))
}

fn error(status: StatusCode, code: &str) -> Response<Part> {
    let text =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>injected</Message></Error>");
    let mut response = Response::new(Part { sent: Some(text.into()), missing: 0 });
    *response.status_mut() = status;
    response
}

/// A body, or the beginning of one: what is announced and missing ends the connection.
pub(super) struct Part {
    sent: Option<Bytes>,
    missing: u64,
}

impl Body for Part {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(match self.sent.take() {
            Some(sent) if !sent.is_empty() => Some(Ok(Frame::data(sent))),
            _ if self.missing > 0 => Some(Err(io::ErrorKind::ConnectionReset.into())),
            _ => None,
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.sent.as_ref().map_or(0, |sent| sent.len() as u64) + self.missing)
    }
}
