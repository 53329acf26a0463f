//! GitHub's rate limits: how an answer tells that one is reached, which one, and until when.
//!
//! In the order that GitHub asks for: a `retry-after` holds; else, with nothing remaining, the limit's reset;
//! else at least a minute, and longer each time. The primary limit counts requests in an hour, the secondary
//! ones how fast they come.

use std::time::Duration;

use domesday_connector::http::{retry_after, until};
use domesday_model::Backoff;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;

/// The first wait for a limit that does not say how long.
const UNSAID: Duration = Duration::from_secs(60);
/// The longest wait, whatever an answer says: the primary limit's hour, and a little.
const LONGEST: Duration = Duration::from_secs(65 * 60);
/// The waits for one after another that do not say how long. Without jitter: none may be shorter.
const BACKOFF: Backoff = Backoff::new(UNSAID, LONGEST);
/// The shortest: what is over in no time was not a limit.
const SHORTEST: Duration = Duration::from_secs(1);
const SECONDS_PER_DAY: i64 = 86_400;

/// A limit that was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Limit {
    pub after: Duration,
    pub detail: String,
}

/// The limit that an answer tells of, if it does. `earlier` is how many in a row told of one before.
pub(super) fn limit(status: StatusCode, headers: &HeaderMap, body: &[u8], earlier: u32) -> Option<Limit> {
    if !matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        return None;
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = retry_after(headers);
    let said = message(body).to_ascii_lowercase();
    let is_primary = text("x-ratelimit-remaining") == Some("0") && !said.contains("secondary");
    let (after, end) = match asked {
        Some(asked) => (asked, String::new()),
        None if is_primary => {
            let reset: Option<i64> = text("x-ratelimit-reset").and_then(|second| second.parse().ok());
            let after = reset.and_then(|second| until(headers, second)).unwrap_or(UNSAID);
            (after, reset.map_or_else(String::new, |second| format!(" until {}", clock(second))))
        }
        None if status == StatusCode::TOO_MANY_REQUESTS || is_secondary(&said) => {
            (BACKOFF.longest_after(earlier.saturating_add(1)), String::new())
        }
        None => return None,
    };
    let which = match (is_primary, text("x-ratelimit-limit")) {
        (true, Some(limit)) => format!("primary rate limit of {limit} requests an hour is used up"),
        (true, None) => "primary rate limit is used up".to_owned(),
        (false, _) => "secondary rate limit is reached".to_owned(),
    };
    Some(Limit { after: after.clamp(SHORTEST, LONGEST), detail: format!("github's {which}{end}") })
}

fn is_secondary(said: &str) -> bool {
    said.contains("secondary rate limit") || said.contains("abuse detection")
}

/// What an answer says for people, if it says anything.
pub(super) fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Said {
        message: String,
    }
    serde_json::from_slice(body).map_or_else(|_| String::new(), |said: Said| said.message)
}

/// A second since 1970 as a time of its day: no limit lasts longer.
fn clock(second: i64) -> String {
    let second = second.rem_euclid(SECONDS_PER_DAY);
    format!("{:02}:{:02}:{:02} UTC", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn each_limit_is_told_from_the_others_and_from_a_refusal() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let (none, secondary) =
            (b"".as_slice(), br#"{"message":"You have exceeded a secondary rate limit."}"#);
        let primary = [
            date,
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "784113577"),
        ];
        let used_up = "github's primary rate limit of 60 requests an hour is used up until 09:19:37 UTC";
        let reached = "github's secondary rate limit is reached";
        for (status, pairs, body, earlier, expected) in [
            (403, &primary[..], none, 0, Some((1_800, used_up))),
            (429, &primary[..], none, 0, Some((1_800, used_up))),
            (200, &primary[..], none, 0, None),
            (404, &primary[..], none, 0, None),
            (403, &[date, ("retry-after", "7")], none, 0, Some((7, reached))),
            (403, &[("retry-after", "99999999")], none, 0, Some((3_900, reached))),
            (
                403,
                &primary[..3],
                none,
                0,
                Some((60, "github's primary rate limit of 60 requests an hour is used up")),
            ),
            (403, &[], secondary, 0, Some((60, reached))),
            (403, &[], secondary, 2, Some((240, reached))),
            (403, &[], secondary, 40, Some((3_900, reached))),
            (429, &[], none, 1, Some((120, reached))),
            (403, &[("x-ratelimit-remaining", "4999")], br#"{"message":"Must have admin rights"}"#, 0, None),
        ] {
            let found = limit(StatusCode::from_u16(status).unwrap(), &headers(pairs), body, earlier);
            let expected = expected.map(|(after, detail)| Limit {
                after: Duration::from_secs(after),
                detail: detail.to_owned(),
            });
            assert_eq!(found, expected, "{status} {pairs:?}");
        }
    }
}
