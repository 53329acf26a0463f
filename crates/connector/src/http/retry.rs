//! When to ask again, as a server says it.
//!
//! Points in time are told by the answer's own `Date`, so that no clock of ours, nor its being wrong, is in it.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

const SECONDS_PER_DAY: i64 = 86_400;

/// The wait that an answer's `Retry-After` asks for, in seconds or until a point in time.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => until(headers, parse_date(text)?),
    }
}

/// The time from an answer's own `Date` until this second since 1970; none when that is past.
pub fn until(headers: &HeaderMap, second: i64) -> Option<Duration> {
    let now = parse_date(header_text(headers, &DATE)?)?;
    Some(Duration::from_secs(second.saturating_sub(now).max(0).cast_unsigned()))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The second since 1970 that a date of HTTP means, in the one form that may still be sent:
/// `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let [day, month, year, time, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let [hours, minutes, seconds] = time.split(':').collect::<Vec<_>>()[..] else { return None };
    let number = |text: &str, max: i64| text.parse().ok().filter(|number| (0..=max).contains(number));
    let (day, year) = (number(day, 31)?, number(year, 9_999)?);
    let time = (number(hours, 23)? * 60 + number(minutes, 59)?) * 60 + number(seconds, 60)?;
    Some(days_since_1970(year, month, day) * SECONDS_PER_DAY + time)
}

/// Days in the Gregorian calendar, counted in years that begin in March, so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_or_refused() {
        for (text, second) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Now 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_date(text), second, "{text}");
        }
    }

    #[test]
    fn a_server_says_when_to_come_back() {
        let headers = |retry: &str, date: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, retry.parse().unwrap());
            headers.insert(DATE, date.parse().unwrap());
            headers
        };
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (retry, seconds) in [
            ("7", Some(7)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("later", None),
        ] {
            assert_eq!(retry_after(&headers(retry, date)), seconds.map(Duration::from_secs), "{retry}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
        assert_eq!(retry_after(&headers("Sun, 06 Nov 1994 08:50:07 GMT", "now")), None);
    }
}
