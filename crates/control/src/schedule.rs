//! When a schedule is due: cron expressions in a time zone.
//!
//! The time zone database is part of the program, so that every orchestrator has the same, also in a
//! container without one. A time that daylight saving leaves out fires at the first instant after the gap; one
//! that comes twice fires the first time.

mod cron;
#[cfg(test)]
mod tests;

use domesday_model::Schedule;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use cron::Cron;

/// What is wrong with a schedule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("schedule.{field}: {detail}")]
pub struct ScheduleError {
    pub field: &'static str,
    pub detail: String,
}

impl ScheduleError {
    fn cron(detail: String) -> ScheduleError {
        ScheduleError { field: "cron", detail }
    }
}

/// The first time after `after_ms` (milliseconds since 1970) that the schedule is due; `None` when there is
/// none within the years it looks ahead.
pub fn next_firing(schedule: &Schedule, after_ms: i64) -> Result<Option<i64>, ScheduleError> {
    Timetable::read(schedule)?.next(after_ms)
}

/// The last time from `from_ms` to `until_ms`, both included, that the schedule was due.
pub fn last_firing(schedule: &Schedule, from_ms: i64, until_ms: i64) -> Result<Option<i64>, ScheduleError> {
    let timetable = Timetable::read(schedule)?;
    // Back in steps that double, until one has a firing in it; from its beginning on there are few.
    let mut back = MINUTE_MS;
    loop {
        let begin = until_ms.saturating_sub(back).max(from_ms.saturating_sub(1));
        let mut last = None;
        let mut at = begin;
        while let Some(next) = timetable.next(at)?.filter(|next| *next <= until_ms) {
            last = Some(next);
            at = next;
        }
        if last.is_some() || begin < from_ms {
            return Ok(last);
        }
        back = back.saturating_mul(2);
    }
}

const MINUTE_MS: i64 = 60_000;

/// A schedule that was read.
struct Timetable {
    cron: Cron,
    zone: TimeZone,
}

impl Timetable {
    fn read(schedule: &Schedule) -> Result<Timetable, ScheduleError> {
        let cron = Cron::parse(&schedule.cron).map_err(ScheduleError::cron)?;
        let zone = TimeZone::get(&schedule.time_zone).map_err(|_| ScheduleError {
            field: "time_zone",
            detail: format!(
                "`{}` is not a time zone: write a name such as Europe/Berlin or UTC",
                schedule.time_zone
            ),
        })?;
        Ok(Timetable { cron, zone })
    }

    fn next(&self, after_ms: i64) -> Result<Option<i64>, ScheduleError> {
        let beyond = |_| ScheduleError::cron("the time is beyond the calendar".into());
        let after = Timestamp::from_millisecond(after_ms).map_err(beyond)?;
        // No earlier local time has a later instant: those of a gap are at its end, and of those that come
        // twice the first counts.
        let local = self.zone.to_datetime(after);
        let mut from = local.date().at(local.hour(), local.minute(), 0, 0);
        while let Some(due) = self.cron.next(from) {
            let instant = self.instant(due).map_err(beyond)?;
            if instant > after {
                return Ok(Some(instant.as_millisecond()));
            }
            from = match due.checked_add(jiff::Span::new().minutes(1)) {
                Ok(next) => next,
                Err(_) => return Ok(None),
            };
        }
        Ok(None)
    }

    /// The instant of a local time.
    fn instant(&self, local: DateTime) -> Result<Timestamp, jiff::Error> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { .. } => {
                // By the clock as it was before the gap, this is at its end or behind it.
                let behind = ambiguous.later()?.checked_add(jiff::Span::new().seconds(1))?;
                let transition = self.zone.preceding(behind).next();
                Ok(transition.map_or(behind, |transition| transition.timestamp()))
            }
            _ => ambiguous.earlier(),
        }
    }
}
