//! Numbers for people: sizes, counts, durations, times. One spelling each, everywhere.

use std::time::Duration;

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// From here on one decimal would round up to 1024.0 of a unit.
const NEXT_UNIT_FROM: f64 = 1023.95;

/// `812 B`, `12.4 MiB`.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let (mut value, mut unit) = (n as f64 / 1024.0, 0);
    while value >= NEXT_UNIT_FROM && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 object`, `2,000 objects`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `340 ms`, `3.2 s`, `4 min 05 s`, `2 h 05 min`, `3 d 04 h`.
pub fn duration(d: Duration) -> String {
    let tenths = (d.as_millis() + 50) / 100;
    let seconds = d.as_secs();
    if d.as_millis() < 1000 {
        format!("{} ms", d.as_millis())
    } else if tenths < 600 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 3600 {
        format!("{} min {:02} s", seconds.max(60) / 60, if seconds < 60 { 0 } else { seconds % 60 })
    } else if seconds < 86_400 {
        format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60)
    } else {
        format!("{} d {:02} h", seconds / 86_400, seconds % 86_400 / 3600)
    }
}

/// `2026-02-28T23:59:59Z` from milliseconds since 1970.
pub fn timestamp(ms: i64) -> String {
    let (days, second) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1000);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so that
/// the leap day is the last day of one; 146,097 days are the 400 years after which the calendar repeats.
fn civil(days: i64) -> (i64, i64, i64) {
    const FROM_YEAR_0: i64 = 719_468;
    let shifted = days + FROM_YEAR_0;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_never_reach_1024() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (13_002_342, "12.4 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (n, expected) in cases {
            assert_eq!(bytes(n), expected);
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (n, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), expected);
        }
        assert_eq!(
            (counted(1, "object"), counted(2000, "object")),
            ("1 object".into(), "2,000 objects".into())
        );
    }

    #[test]
    fn durations_keep_two_units() {
        let cases = [
            (340, "340 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_949, "59.9 s"),
            (59_970, "1 min 00 s"),
            (245_000, "4 min 05 s"),
            (7_500_000, "2 h 05 min"),
            (273_600_000, "3 d 04 h"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration(Duration::from_millis(ms)), expected);
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"),
            (1_772_323_199_999, "2026-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ];
        for (ms, expected) in cases {
            assert_eq!(timestamp(ms), expected);
        }
        assert!(!timestamp(i64::MAX).is_empty() && !timestamp(i64::MIN).is_empty());
    }
}
