//! Dates inside identifiers. There is no clock here: a verdict must not change from one day to the next,
//! so a date is plausible when the calendar has it.

/// Whether the calendar has this date. `year` may be of two digits: centuries without a leap day are then
/// accepted, because the century is not known.
pub(super) fn exists(year: u64, month: u64, day: u64) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn two(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, &d| n * 10 + u64::from(d))
}

/// Digits `yymmdd`.
pub(super) fn yymmdd(d: &[u8]) -> bool {
    d.len() >= 6 && exists(two(&d[..2]), two(&d[2..4]), two(&d[4..6]))
}

/// Digits `ddmmyy`.
pub(super) fn ddmmyy(d: &[u8]) -> bool {
    d.len() >= 6 && exists(two(&d[4..6]), two(&d[2..4]), two(&d[..2]))
}

/// Digits `yyyymmdd`, of people and devices that can be alive: 1850 to 2099.
pub(super) fn yyyymmdd(d: &[u8]) -> bool {
    d.len() >= 8 && (1850..2100).contains(&two(&d[..4])) && exists(two(&d[..4]), two(&d[4..6]), two(&d[6..8]))
}

/// Digits `ddmmyyy`, the year without its first digit: 1800 to 2099.
pub(super) fn ddmmyyy(d: &[u8]) -> bool {
    d.len() >= 7 && matches!(d[4], 0 | 8 | 9) && exists(two(&d[5..7]), two(&d[2..4]), two(&d[..2]))
}
