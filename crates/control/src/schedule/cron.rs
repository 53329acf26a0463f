//! Five-field cron expressions: minute, hour, day of month, month, day of week.
//!
//! Each field is `*`, a number, a range `a-b`, either with a step `/n`, or a list of these; months and days have
//! their English names, and Sunday is 0 or 7. When both days are restricted, either will do, as cron has always
//! had it; a field that begins with `*` restricts nothing here.

use jiff::civil::{Date, DateTime};

/// How far ahead a day is looked for. A date is on each day of the week again and again: within 12 years, and the 29th of
/// February within 40, where a century without one is between.
const HORIZON_DAYS: i64 = 366 * 41;
/// Letters of an expression, at most.
const LEN_MAX: usize = 1_024;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// What one field may hold.
struct Domain {
    name: &'static str,
    least: u8,
    most: u8,
    /// Names of the numbers from `least` on.
    names: &'static [&'static str],
}

const MINUTE: Domain = Domain { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Domain = Domain { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Domain = Domain { name: "day of month", least: 1, most: 31, names: &[] };
const MONTH: Domain = Domain { name: "month", least: 1, most: 12, names: &MONTHS };
const WEEKDAY: Domain = Domain { name: "day of week", least: 0, most: 7, names: &DAYS };

/// The numbers of a field, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    bits: u64,
    begins_with_star: bool,
}

impl Field {
    fn has(self, number: i8) -> bool {
        u8::try_from(number).is_ok_and(|number| self.bits >> number & 1 == 1)
    }

    /// The first number from `from` on.
    fn first_from(self, from: i8) -> Option<i8> {
        (from.max(0)..64).find(|number| self.has(*number))
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cron {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Cron {
    pub fn parse(text: &str) -> Result<Cron, String> {
        let text = text.trim();
        if text.len() > LEN_MAX {
            return Err(format!("longer than {LEN_MAX} letters"));
        }
        let text = match text.strip_prefix('@') {
            None => text,
            Some(_) => {
                let nickname = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                nickname.map(|(_, meaning)| *meaning).ok_or_else(|| {
                    let known: Vec<&str> = NICKNAMES.iter().map(|(name, _)| *name).collect();
                    format!("`{text}` is unknown; known: {}", known.join(", "))
                })?
            }
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!(
                "expected five fields (minute, hour, day of month, month, day of week), found {}",
                fields.len()
            ));
        };
        let mut weekday = WEEKDAY.read(weekday)?;
        weekday.bits |= weekday.bits >> 7 & 1;
        Ok(Cron {
            minute: MINUTE.read(minute)?,
            hour: HOUR.read(hour)?,
            day: DAY.read(day)?,
            month: MONTH.read(month)?,
            weekday,
        })
    }

    /// The first minute from `from` on that matches, by the calendar alone.
    pub fn next(&self, from: DateTime) -> Option<DateTime> {
        if let Some(time) = self.on_day(from.date(), (from.hour(), from.minute())) {
            return Some(time);
        }
        let mut date = from.date();
        for _ in 0..HORIZON_DAYS {
            date = date.tomorrow().ok()?;
            if let Some(time) = self.on_day(date, (0, 0)) {
                return Some(time);
            }
        }
        None
    }

    fn on_day(&self, date: Date, (hour, minute): (i8, i8)) -> Option<DateTime> {
        if !self.has_day(date) {
            return None;
        }
        let first = self.hour.first_from(hour)?;
        if first == hour
            && let Some(minute) = self.minute.first_from(minute)
        {
            return Some(date.at(hour, minute, 0, 0));
        }
        let hour = if first == hour { self.hour.first_from(hour + 1)? } else { first };
        Some(date.at(hour, self.minute.first_from(0)?, 0, 0))
    }

    pub fn has_day(&self, date: Date) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset());
        let either = !self.day.begins_with_star && !self.weekday.begins_with_star;
        self.month.has(date.month()) && if either { day || weekday } else { day && weekday }
    }
}

impl Domain {
    fn read(&self, text: &str) -> Result<Field, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= self.part(part).map_err(|detail| format!("{}: {detail}", self.name))?;
        }
        Ok(Field { bits, begins_with_star: text.starts_with('*') })
    }

    fn part(&self, text: &str) -> Result<u64, String> {
        let (range, step) = match text.split_once('/') {
            None => (text, None),
            Some((range, step)) => match step.parse::<u8>() {
                Ok(step) if step > 0 => (range, Some(step)),
                _ => return Err(format!("`{step}` is not a step: write a number from 1 on")),
            },
        };
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (self.least, self.most),
            (_, Some((first, last))) => (self.number(first)?, self.number(last)?),
            (number, None) => {
                let first = self.number(number)?;
                (first, if step.is_some() { self.most } else { first })
            }
        };
        if first > last {
            return Err(format!("`{range}` runs backwards"));
        }
        let step = usize::from(step.unwrap_or(1));
        Ok((first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number))
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(index) => u8::try_from(index).ok().map(|index| self.least + index),
            None => text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())),
        };
        number.filter(|number| (self.least..=self.most).contains(number)).ok_or_else(|| {
            let names = if self.names.is_empty() { "" } else { ", or a name of three letters" };
            format!("`{text}` is not a number from {} to {}{names}", self.least, self.most)
        })
    }
}
