//! What a replayed protocol asks of a request, and answers with.

use domesday_testkit::http::{Request, Response};
use percent_encoding::percent_decode_str;

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

pub(super) fn path(asked: &Request) -> String {
    decoded(asked.path())
}

/// The value of a query parameter; nothing if it is not there.
pub(super) fn query(asked: &Request, name: &str) -> String {
    asked.query(name).map(decoded).unwrap_or_default()
}

pub(super) fn error(status: u16, code: &str) -> Response {
    Response::status(status).body(format!("<Error><Code>{code}</Code></Error>"))
}

/// The range of an object that was asked for, if its version is the one asked for.
pub(super) fn range_of(asked: &Request, bytes: &[u8], tag: &str) -> Response {
    if asked.header("if-match").is_some_and(|wanted| wanted != tag) {
        return error(412, "ConditionNotMet");
    }
    let range = asked.header("range").unwrap().strip_prefix("bytes=").unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    if first >= bytes.len() {
        return error(416, "InvalidRange");
    }
    let last = last.min(bytes.len() - 1);
    Response::status(206)
        .header("Content-Range", format!("bytes {first}-{last}/{}", bytes.len()))
        .header("ETag", tag)
        .body(&bytes[first..=last])
}
