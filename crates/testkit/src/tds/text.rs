//! Conversions to and from text, as the server makes them (`CONVERT` with its styles).

use super::ServerError;
use super::values::{TICKS_PER_SECOND, Type, Value, date_of, days_of};

/// The style that writes and reads dates in the international way.
const ISO: i64 = 126;
/// The style that writes and reads binary as hexadecimal digits after `0x`.
const HEXADECIMAL: i64 = 1;

/// The type with this name and these arguments; `None` among them is `max`.
pub fn type_named(name: &str, arguments: &[Option<u16>]) -> Option<Type> {
    let first = arguments.first().copied();
    let length = || first.unwrap_or(Some(30));
    let scale = || first.flatten().unwrap_or(7) as u8;
    Some(match name {
        "bit" => Type::Bit,
        "tinyint" => Type::TinyInt,
        "smallint" => Type::SmallInt,
        "int" => Type::Int,
        "bigint" => Type::BigInt,
        "real" => Type::Real,
        "float" => Type::Float,
        "decimal" | "numeric" => {
            let argument = |place: usize| arguments.get(place).copied().flatten().map(|n| n as u8);
            Type::Decimal(argument(0).unwrap_or(18), argument(1).unwrap_or(0))
        }
        "smallmoney" => Type::SmallMoney,
        "money" => Type::Money,
        "char" => Type::Char(length()?),
        "varchar" => Type::VarChar(length()),
        "nchar" => Type::NChar(length()?),
        "nvarchar" => Type::NVarChar(length()),
        "binary" => Type::Binary(length()?),
        "varbinary" => Type::VarBinary(length()),
        "date" => Type::Date,
        "time" => Type::Time(scale()),
        "smalldatetime" => Type::SmallDateTime,
        "datetime" => Type::DateTime,
        "datetime2" => Type::DateTime2(scale()),
        "datetimeoffset" => Type::DateTimeOffset(scale()),
        "uniqueidentifier" => Type::UniqueIdentifier,
        "hierarchyid" => Type::Clr("hierarchyid"),
        _ => return None,
    })
}

pub fn convert(from: &Type, value: &Value, to: &Type, style: i64) -> Result<Value, ServerError> {
    let failed = || {
        let message =
            format!("Conversion failed when converting {from:?} {value:?} to {to:?} in style {style}.");
        ServerError::new(245, 16, &message)
    };
    if *value == Value::Null {
        return Ok(Value::Null);
    }
    match to {
        Type::Char(_) | Type::VarChar(_) | Type::NChar(_) | Type::NVarChar(_) => {
            Ok(cut(write(from, value, style).ok_or_else(failed)?, to))
        }
        Type::Binary(_) | Type::VarBinary(_) => match value {
            Value::Bytes(bytes) | Value::Clr(bytes, _) => Ok(Value::Bytes(bytes.clone())),
            Value::Text(text) if style == HEXADECIMAL => hexadecimal(text).ok_or_else(failed),
            _ => Err(failed()),
        },
        _ => match value {
            Value::Text(text) => read(text, to, style).ok_or_else(failed),
            other if from == to => Ok(other.clone()),
            _ => Err(failed()),
        },
    }
}

/// Text that is too long for a type is cut without a word.
fn cut(text: String, to: &Type) -> Value {
    match to {
        Type::Char(n) | Type::VarChar(Some(n)) | Type::NChar(n) | Type::NVarChar(Some(n)) => {
            let units: Vec<u16> = text.encode_utf16().take(usize::from(*n)).collect();
            Value::Text(String::from_utf16_lossy(&units))
        }
        _ => Value::Text(text),
    }
}

fn write(of: &Type, value: &Value, style: i64) -> Option<String> {
    Some(match value {
        Value::Text(text) => text.clone(),
        Value::Int(n) if matches!(of, Type::Money | Type::SmallMoney) => {
            // Without a style, money loses two of its digits.
            if style != 2 {
                return None;
            }
            scaled(i128::from(*n), 4)
        }
        Value::Int(n) => n.to_string(),
        Value::Decimal(n) => {
            let Type::Decimal(_, scale) = of else { return None };
            scaled(*n, *scale)
        }
        // Seventeen digits, which read back as the same number; other styles lose some.
        Value::Float(x) if style == 3 => format!("{x:.16e}"),
        Value::Bytes(bytes) if style == HEXADECIMAL => {
            let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
            format!("0x{}", digits.collect::<String>())
        }
        Value::Guid(guid) => {
            let digits: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
            let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            groups.join("-")
        }
        Value::Moment { days, ticks, offset } if style == ISO => moment(of, *days, *ticks, *offset),
        _ => return None,
    })
}

fn scaled(n: i128, scale: u8) -> String {
    let digits = format!("{:0width$}", n.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let point = if scale > 0 { "." } else { "" };
    format!("{}{whole}{point}{fraction}", if n < 0 { "-" } else { "" })
}

fn moment(of: &Type, days: i64, ticks: i64, offset: i16) -> String {
    let (year, month, day) = date_of(days);
    let date = format!("{year:04}-{month:02}-{day:02}");
    let seconds = ticks / TICKS_PER_SECOND;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = format!("{:07}", ticks % TICKS_PER_SECOND);
    let digits = |scale: u8| match scale {
        0 => String::new(),
        scale => format!(".{}", &fraction[..usize::from(scale)]),
    };
    match of {
        Type::Date => date,
        Type::Time(scale) => format!("{time}{}", digits(*scale)),
        Type::SmallDateTime => format!("{date}T{time}"),
        Type::DateTime if ticks % TICKS_PER_SECOND == 0 => format!("{date}T{time}"),
        Type::DateTime => format!("{date}T{time}{}", digits(3)),
        Type::DateTimeOffset(scale) => {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            format!("{date}T{time}{}{sign}{:02}:{:02}", digits(*scale), minutes / 60, minutes % 60)
        }
        Type::DateTime2(scale) => format!("{date}T{time}{}", digits(*scale)),
        other => panic!("{other:?} is no moment"),
    }
}

fn read(text: &str, to: &Type, style: i64) -> Option<Value> {
    Some(match to {
        Type::Bit | Type::TinyInt | Type::SmallInt | Type::Int | Type::BigInt => {
            Value::Int(text.parse().ok()?)
        }
        Type::Real | Type::Float => Value::Float(text.parse().ok()?),
        Type::Money | Type::SmallMoney => Value::Int(unscaled(text, 4)? as i64),
        Type::Decimal(_, scale) => Value::Decimal(unscaled(text, *scale)?),
        Type::UniqueIdentifier => {
            let Value::Bytes(bytes) = hexadecimal(&format!("0x{}", text.replace('-', "")))? else {
                return None;
            };
            Value::Guid(bytes.try_into().ok()?)
        }
        Type::Clr(_) => Value::Clr(Vec::new(), text.to_owned()),
        _ if style == ISO => read_moment(text, to)?,
        _ => return None,
    })
}

fn unscaled(text: &str, scale: u8) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<width$}", width = usize::from(scale)).parse().ok()
}

fn hexadecimal(text: &str) -> Option<Value> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let pairs = digits.as_chunks::<2>().0.iter();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Some(Value::Bytes(pairs.map(byte).collect::<Option<_>>()?))
}

fn read_moment(text: &str, to: &Type) -> Option<Value> {
    let (text, offset) = match to {
        Type::DateTimeOffset(_) => {
            let (text, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
            let minutes = zone.get(1..3)?.parse::<i16>().ok()? * 60 + zone.get(4..)?.parse::<i16>().ok()?;
            (text, if zone.starts_with('-') { -minutes } else { minutes })
        }
        _ => (text, 0),
    };
    let (date, time) = match to {
        Type::Date => (text, "00:00:00"),
        Type::Time(_) => ("0001-01-01", text),
        _ => text.split_once('T')?,
    };
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let days = days_of(date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.split(':').map(|part| part.parse::<i64>().ok());
    let seconds = time.next()?? * 3_600 + time.next()?? * 60 + time.next()??;
    let ticks = seconds * TICKS_PER_SECOND + format!("{fraction:0<7}").parse::<i64>().ok()?;
    Some(Value::Moment { days, ticks, offset })
}
