//! Schedules against times worked out by hand, and what holds for all of them.

use domesday_model::{MissedFirings, Schedule};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

fn schedule(cron: &str, zone: &str) -> Schedule {
    Schedule { cron: cron.into(), time_zone: zone.into(), missed: MissedFirings::default() }
}

fn ms(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_millisecond()
}

/// The firings after a time, as long as there is one more expected.
#[track_caller]
fn check(cron: &str, zone: &str, after: &str, expect: &[&str]) {
    let mut at = ms(after);
    for expected in expect {
        let next = next_firing(&schedule(cron, zone), at).unwrap();
        let shown = next.map(|next| Timestamp::from_millisecond(next).unwrap().to_string());
        assert_eq!(shown.as_deref(), Some(*expected), "{cron} in {zone}");
        at = next.unwrap();
    }
}

#[test]
fn times_of_day() {
    check("30 2 * * *", "UTC", "2026-01-01T02:29:59Z", &["2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"]);
    check("30 2 * * *", "UTC", "2026-01-01T02:30:00Z", &["2026-01-02T02:30:00Z"]);
    check(
        "*/20 9-10 * * *",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-01-01T09:00:00Z", "2026-01-01T09:20:00Z", "2026-01-01T09:40:00Z", "2026-01-01T10:00:00Z"],
    );
    check(
        "5,50/5 23 * * *",
        "UTC",
        "2026-12-31T23:05:00Z",
        &["2026-12-31T23:50:00Z", "2026-12-31T23:55:00Z"],
    );
    check("@hourly", "UTC", "2026-12-31T23:00:00Z", &["2027-01-01T00:00:00Z"]);
    check("@daily", "Asia/Kolkata", "2026-03-01T00:00:00Z", &["2026-03-01T18:30:00Z"]);
}

#[test]
fn days() {
    // 2026-11-15 is a Sunday.
    for sunday in ["0", "7", "sun", "SUN"] {
        check(
            &format!("0 6 * * {sunday}"),
            "UTC",
            "2026-11-14T00:00:00Z",
            &["2026-11-15T06:00:00Z", "2026-11-22T06:00:00Z"],
        );
    }
    check("0 6 * * mon-fri", "UTC", "2026-11-13T07:00:00Z", &["2026-11-16T06:00:00Z"]);
    check("0 6 * * 5-7", "UTC", "2026-11-14T07:00:00Z", &["2026-11-15T06:00:00Z", "2026-11-20T06:00:00Z"]);
    // Either of both days, when both are restricted.
    check(
        "0 0 13 * fri",
        "UTC",
        "2026-11-01T00:00:00Z",
        &["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"],
    );
    check(
        "0 0 31 jan,mar-apr *",
        "UTC",
        "2026-02-01T00:00:00Z",
        &["2026-03-31T00:00:00Z", "2027-01-31T00:00:00Z"],
    );
    check("@weekly", "UTC", "2026-11-15T00:00:00Z", &["2026-11-22T00:00:00Z"]);
    check("@yearly", "UTC", "2026-11-15T00:00:00Z", &["2027-01-01T00:00:00Z"]);
}

#[test]
fn leap_days_and_days_that_never_come() {
    check("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    check("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    for never in ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"] {
        assert_eq!(next_firing(&schedule(never, "UTC"), ms("2026-01-01T00:00:00Z")), Ok(None), "{never}");
    }
}

/// In Berlin, 2026: 02:00 becomes 03:00 on March 29 at 01:00Z; 03:00 becomes 02:00 on October 25 at 01:00Z.
#[test]
fn daylight_saving_in_berlin() {
    let zone = "Europe/Berlin";
    check(
        "30 2 * * *",
        zone,
        "2026-03-28T00:00:00Z",
        &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    check("0 2 * * *", zone, "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    // 02:00, 02:30 and 03:00 are one instant.
    check(
        "*/30 * * * *",
        zone,
        "2026-03-29T00:00:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
    );
    check("30 2 * * *", zone, "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    // Asked in the second half past two, which is not to fire.
    check("30 2 * * *", zone, "2026-10-25T01:15:00Z", &["2026-10-26T01:30:00Z"]);
    check("0 3 * * *", zone, "2026-10-25T00:00:00Z", &["2026-10-25T02:00:00Z"]);
}

/// In New York, 2026: 02:00 becomes 03:00 on March 8 at 07:00Z; 02:00 becomes 01:00 on November 1 at 06:00Z.
#[test]
fn daylight_saving_in_new_york() {
    let zone = "America/New_York";
    check("30 2 * * *", zone, "2026-03-07T12:00:00Z", &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
    check("30 1 * * *", zone, "2026-10-31T12:00:00Z", &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
}

#[test]
fn a_date_on_a_day_of_the_week_is_found_however_far_it_is() {
    // The 1st, 8th, 15th, 22nd and 29th of a November that are Tuesdays.
    check("0 0 */7 11 2", "UTC", "2024-01-01T00:00:00Z", &["2033-11-01T00:00:00Z", "2033-11-08T00:00:00Z"]);
}

#[test]
fn errors_name_the_field() {
    for (cron, zone, message) in [
        ("60 * * * *", "UTC", "schedule.cron: minute: `60` is not a number from 0 to 59"),
        ("* 24 * * *", "UTC", "schedule.cron: hour: `24` is"),
        ("* * 0 * *", "UTC", "schedule.cron: day of month: `0` is"),
        ("* * * foo *", "UTC", "schedule.cron: month: `foo` is not a number from 1 to 12, or a name"),
        ("* * * * 8", "UTC", "schedule.cron: day of week: `8` is"),
        ("5-1 * * * *", "UTC", "schedule.cron: minute: `5-1` runs backwards"),
        ("*/0 * * * *", "UTC", "schedule.cron: minute: `0` is not a step"),
        ("+5 * * * *", "UTC", "schedule.cron: minute: `+5` is not"),
        (",5 * * * *", "UTC", "schedule.cron: minute: `` is not"),
        (
            "* * * *",
            "UTC",
            "schedule.cron: expected five fields (minute, hour, day of month, month, day of week), found 4",
        ),
        ("@reboot", "UTC", "schedule.cron: `@reboot` is unknown; known: @yearly"),
        ("* * * * *", "Mars/Olympus", "schedule.time_zone: `Mars/Olympus` is not a time zone"),
    ] {
        let error = next_firing(&schedule(cron, zone), 0).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn the_last_firing_is_found_without_walking_through_all() {
    let hourly = schedule("0 * * * *", "UTC");
    let (from, until) = (ms("2020-01-01T00:00:00Z"), ms("2026-01-01T00:30:00Z"));
    assert_eq!(last_firing(&hourly, from, until), Ok(Some(ms("2026-01-01T00:00:00Z"))));
    assert_eq!(last_firing(&hourly, until, until), Ok(None));
    let minutely = schedule("* * * * *", "UTC");
    assert_eq!(last_firing(&minutely, from, until), Ok(Some(until)));
    let yearly = schedule("@yearly", "UTC");
    assert_eq!(last_firing(&yearly, from, ms("2025-12-31T00:00:00Z")), Ok(Some(ms("2025-01-01T00:00:00Z"))));
    assert_eq!(last_firing(&yearly, from, from), Ok(Some(from)), "both ends are included");
}

fn part(least: u8, most: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (least..=most).prop_map(|number| number.to_string()),
        (least..=most, least..=most).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (1u8..=most).prop_map(|step| format!("*/{step}")),
        (least..=most, least..=most).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

proptest! {
    #[test]
    fn a_firing_comes_after_matches_and_none_is_between(
        (minute, hour, day) in (part(0, 59), part(0, 23), part(1, 28)),
        (month, weekday) in (part(1, 12), part(0, 7)),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
        after in ms("2024-01-01T00:00:00Z")..ms("2027-01-01T00:00:00Z"),
        gap in 0i64..40 * 24 * 3_600_000,
    ) {
        let schedule = schedule(&format!("{minute} {hour} {day} {month} {weekday}"), zone);
        let cron = Cron::parse(&schedule.cron).unwrap();
        let next = next_firing(&schedule, after).unwrap();
        prop_assert!(next.is_some(), "every day up to the 28th comes");
        let next = next.unwrap();
        prop_assert!(next > after);
        let zoned = TimeZone::get(zone).unwrap();
        let local = zoned.to_datetime(Timestamp::from_millisecond(next).unwrap());
        let before = zoned.to_datetime(Timestamp::from_millisecond(next - 1).unwrap());
        // Behind a gap the local time is that of the gap's end, not its own.
        let in_gap = local.duration_since(before).as_secs() > 1;
        prop_assert!(in_gap || cron.next(local) == Some(local), "{local}");
        let later = next_firing(&schedule, after.saturating_add(gap)).unwrap().unwrap();
        prop_assert!(later >= next, "later questions have later answers");
        if after + gap < next {
            prop_assert_eq!(later, next, "nothing is between");
        }
        prop_assert_eq!(last_firing(&schedule, after + 1, next).unwrap(), Some(next));
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}", after in any::<i64>()) {
        let _ = next_firing(&schedule(&text, "Europe/Berlin"), after);
        let _ = next_firing(&schedule("0 0 29 2 *", "UTC"), after);
    }
}
