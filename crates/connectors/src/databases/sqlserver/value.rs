//! Values as text that rules understand: what the server itself would write, exactly.

use std::io::Write;

use chrono::NaiveDate;
use domesday_model::{ColumnValues, RowBatch};
use tiberius::ColumnData;
use tiberius::numeric::Numeric;
use tiberius::time::{Date, DateTime, SmallDateTime, Time};

/// Days from 0001-01-01 to 1900-01-01, from which the older types count.
const DAYS_TO_1900: i64 = 693_595;
const SECONDS_PER_DAY: i64 = 86_400;

/// Puts a value into its column.
pub(super) fn push(values: &mut ColumnValues, data: &ColumnData<'_>, is_row_version: bool) {
    match data {
        ColumnData::String(Some(text)) => push_text(values, text),
        ColumnData::Xml(Some(xml)) => push_text(values, &xml.to_string()),
        ColumnData::Binary(Some(bytes)) if is_row_version => values.push_with(|out| {
            out.extend_from_slice(b"0x");
            for byte in bytes.iter() {
                put(out, format_args!("{byte:02X}"));
            }
        }),
        ColumnData::Binary(Some(bytes)) => match bytes.get(..RowBatch::VALUE_MAX) {
            Some(kept) if bytes.len() > RowBatch::VALUE_MAX => values.push_cut(kept),
            _ => values.push(bytes),
        },
        ColumnData::U8(Some(n)) => values.push_with(|out| put(out, format_args!("{n}"))),
        ColumnData::I16(Some(n)) => values.push_with(|out| put(out, format_args!("{n}"))),
        ColumnData::I32(Some(n)) => values.push_with(|out| put(out, format_args!("{n}"))),
        ColumnData::I64(Some(n)) => values.push_with(|out| put(out, format_args!("{n}"))),
        ColumnData::F32(Some(x)) => values.push_with(|out| float(out, f64::from(*x).abs(), x)),
        ColumnData::F64(Some(x)) => values.push_with(|out| float(out, x.abs(), x)),
        ColumnData::Bit(Some(bit)) => values.push(if *bit { b"1" } else { b"0" }),
        ColumnData::Guid(Some(guid)) => values.push_with(|out| put(out, format_args!("{guid:X}"))),
        ColumnData::Numeric(Some(n)) => values.push_with(|out| numeric(out, *n)),
        ColumnData::Date(Some(of)) => values.push_with(|out| date(out, days(*of))),
        ColumnData::Time(Some(of)) => values.push_with(|out| time(out, *of)),
        ColumnData::DateTime(Some(of)) => values.push_with(|out| date_time(out, *of)),
        ColumnData::SmallDateTime(Some(of)) => values.push_with(|out| small_date_time(out, *of)),
        ColumnData::DateTime2(Some(of)) => values.push_with(|out| {
            date(out, days(of.date()));
            out.push(b' ');
            time(out, of.time());
        }),
        ColumnData::DateTimeOffset(Some(of)) => values.push_with(|out| {
            let (moment, offset) = (of.datetime2(), i64::from(of.offset()));
            let scale = moment.time().scale();
            let unit = 10_i64.pow(u32::from(scale.min(7)));
            // What comes is universal time; what is written is local.
            let units = moment.time().increments() as i64 + offset * 60 * unit;
            let day = SECONDS_PER_DAY * unit;
            date(out, days(moment.date()) + units.div_euclid(day));
            out.push(b' ');
            time(out, Time::new(units.rem_euclid(day) as u64, scale));
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            put(out, format_args!(" {sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }),
        _ => values.push_null(),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory can be written to");
}

fn push_text(values: &mut ColumnValues, text: &str) {
    if text.len() <= RowBatch::VALUE_MAX {
        return values.push(text.as_bytes());
    }
    let end = text.floor_char_boundary(RowBatch::VALUE_MAX);
    values.push_cut(&text.as_bytes()[..end]);
}

/// The shortest digits that mean this number, with an exponent where there would be many zeros.
fn float(out: &mut Vec<u8>, size: f64, x: &(impl std::fmt::Display + std::fmt::LowerExp)) {
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        put(out, format_args!("{x}"));
    } else {
        put(out, format_args!("{x:e}"));
    }
}

fn numeric(out: &mut Vec<u8>, n: Numeric) {
    let (sign, scale) = (if n.value() < 0 { "-" } else { "" }, usize::from(n.scale()));
    let digits = format!("{:0width$}", n.value().unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    put(out, format_args!("{sign}{whole}{}{fraction}", if scale > 0 { "." } else { "" }));
}

fn days(of: Date) -> i64 {
    i64::from(of.days())
}

/// A date by its days since 0001-01-01.
fn date(out: &mut Vec<u8>, days: i64) {
    let date = i32::try_from(days + 1).ok().and_then(NaiveDate::from_num_days_from_ce_opt);
    match date {
        Some(date) => put(out, format_args!("{}", date.format("%Y-%m-%d"))),
        // No date that the server can hold.
        None => put(out, format_args!("day {days}")),
    }
}

fn clock(out: &mut Vec<u8>, seconds: u64) {
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
}

fn time(out: &mut Vec<u8>, of: Time) {
    let scale = u32::from(of.scale().min(7));
    let unit = 10_u64.pow(scale);
    clock(out, of.increments() / unit);
    if scale > 0 {
        put(out, format_args!(".{:0width$}", of.increments() % unit, width = scale as usize));
    }
}

/// The old type counts in 300ths of a second, which it writes as thousandths: .000, .003, .007 and so on.
fn date_time(out: &mut Vec<u8>, of: DateTime) {
    let thousandths = (u64::from(of.seconds_fragments()) * 1_000 + 150) / 300;
    date(out, i64::from(of.days()) + DAYS_TO_1900);
    out.push(b' ');
    clock(out, thousandths / 1_000);
    put(out, format_args!(".{:03}", thousandths % 1_000));
}

/// Days and minutes.
fn small_date_time(out: &mut Vec<u8>, of: SmallDateTime) {
    date(out, i64::from(of.days()) + DAYS_TO_1900);
    out.push(b' ');
    clock(out, u64::from(of.seconds_fragments()) * 60);
}
