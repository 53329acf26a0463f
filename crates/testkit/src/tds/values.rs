//! Types and values of the scripted server, and how they go over the wire.
//!
//! Written from the protocol's public description (MS-TDS 2.2.5.4 and 2.2.5.5): the type's description in column
//! metadata, and the value in rows. Knows nothing of SQL.

use super::wire::Out;

/// Bytes of one piece of a value that is sent in pieces: few, so that values of tests have several.
const PIECE: usize = 1_000;
/// Latin1_General_CI_AS, as SQL Server sends it: its locale, its flags, and no sort order of the old kind.
pub const COLLATION: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Float,
    /// Precision and scale.
    Decimal(u8, u8),
    SmallMoney,
    Money,
    Char(u16),
    /// Without a length: `(max)`.
    VarChar(Option<u16>),
    NChar(u16),
    NVarChar(Option<u16>),
    Text,
    NText,
    Image,
    Binary(u16),
    VarBinary(Option<u16>),
    RowVersion,
    Date,
    Time(u8),
    SmallDateTime,
    DateTime,
    DateTime2(u8),
    DateTimeOffset(u8),
    UniqueIdentifier,
    Xml,
    SqlVariant,
    /// A type of the server's runtime: `geometry`, `geography`, `hierarchyid`, or a user's own. Its values are
    /// [`Value::Clr`].
    Clr(&'static str),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    /// Also bits, and money in its ten thousandths.
    Int(i64),
    Float(f64),
    /// Unscaled.
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
    /// In the order in which it is written.
    Guid([u8; 16]),
    /// Days since 0001-01-01, units of 100 ns since midnight, minutes east of Greenwich. Day and time are local.
    Moment {
        days: i64,
        ticks: i64,
        offset: i16,
    },
    Variant(Box<(Type, Value)>),
    /// What it is on the wire, and what `.ToString()` makes of it.
    Clr(Vec<u8>, String),
}

/// Units of 100 ns in a second.
pub const TICKS_PER_SECOND: i64 = 10_000_000;
/// Days from 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i64 = 693_595;

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// A moment by its calendar date and local time of day, with a fraction in units of 100 ns.
    pub fn moment(date: (i64, i64, i64), time: (i64, i64, i64), fraction: i64, offset: i16) -> Value {
        let (year, month, day) = date;
        let (hour, minute, second) = time;
        let ticks = (hour * 3_600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
        Value::Moment { days: days_of(year, month, day), ticks, offset }
    }
}

/// Days since 0001-01-01 of a date of the Gregorian calendar.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let months = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let in_year = months[(month - 1) as usize] + i64::from(leap && month > 2) + day - 1;
    before * 365 + before / 4 - before / 100 + before / 400 + in_year
}

/// Year, month and day of so many days since 0001-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = days / 366 + 1;
    while days_of(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| days_of(year, *month, 1) <= days).unwrap_or(1);
    (year, month, days - days_of(year, month, 1) + 1)
}

impl Type {
    /// The type's own name, and its length, precision and scale, as the server's catalogue has them.
    pub fn catalogue(&self) -> (&'static str, i64, u8, u8) {
        let length = |length: Option<u16>, unit: i64| length.map_or(-1, |length| i64::from(length) * unit);
        match *self {
            Type::Bit => ("bit", 1, 1, 0),
            Type::TinyInt => ("tinyint", 1, 3, 0),
            Type::SmallInt => ("smallint", 2, 5, 0),
            Type::Int => ("int", 4, 10, 0),
            Type::BigInt => ("bigint", 8, 19, 0),
            Type::Real => ("real", 4, 24, 0),
            Type::Float => ("float", 8, 53, 0),
            Type::Decimal(precision, scale) => {
                ("decimal", decimal_bytes(precision) as i64 + 1, precision, scale)
            }
            Type::SmallMoney => ("smallmoney", 4, 10, 4),
            Type::Money => ("money", 8, 19, 4),
            Type::Char(n) => ("char", i64::from(n), 0, 0),
            Type::VarChar(n) => ("varchar", length(n, 1), 0, 0),
            Type::NChar(n) => ("nchar", i64::from(n) * 2, 0, 0),
            Type::NVarChar(n) => ("nvarchar", length(n, 2), 0, 0),
            Type::Text => ("text", 16, 0, 0),
            Type::NText => ("ntext", 16, 0, 0),
            Type::Image => ("image", 16, 0, 0),
            Type::Binary(n) => ("binary", i64::from(n), 0, 0),
            Type::VarBinary(n) => ("varbinary", length(n, 1), 0, 0),
            Type::RowVersion => ("timestamp", 8, 0, 0),
            Type::Date => ("date", 3, 10, 0),
            Type::Time(scale) => ("time", time_bytes(scale) as i64, 9 + scale, scale),
            Type::SmallDateTime => ("smalldatetime", 4, 16, 0),
            Type::DateTime => ("datetime", 8, 23, 3),
            Type::DateTime2(scale) => ("datetime2", time_bytes(scale) as i64 + 3, 20 + scale, scale),
            Type::DateTimeOffset(scale) => {
                ("datetimeoffset", time_bytes(scale) as i64 + 5, 27 + scale, scale)
            }
            Type::UniqueIdentifier => ("uniqueidentifier", 16, 0, 0),
            Type::Xml => ("xml", -1, 0, 0),
            Type::SqlVariant => ("sql_variant", 8_016, 0, 0),
            Type::Clr(name) => (name, if name == "hierarchyid" { 892 } else { -1 }, 0, 0),
        }
    }

    /// The description of a column that may be null.
    pub fn describe(&self, out: &mut Out) {
        match self {
            Type::Bit => out.bytes(&[0x68, 1]),
            Type::TinyInt => out.bytes(&[0x26, 1]),
            Type::SmallInt => out.bytes(&[0x26, 2]),
            Type::Int => out.bytes(&[0x26, 4]),
            Type::BigInt => out.bytes(&[0x26, 8]),
            Type::Real => out.bytes(&[0x6d, 4]),
            Type::Float => out.bytes(&[0x6d, 8]),
            Type::Decimal(precision, scale) => {
                out.bytes(&[0x6a, decimal_bytes(*precision) as u8 + 1, *precision, *scale]);
            }
            Type::SmallMoney => out.bytes(&[0x6e, 4]),
            Type::Money => out.bytes(&[0x6e, 8]),
            Type::SmallDateTime => out.bytes(&[0x6f, 4]),
            Type::DateTime => out.bytes(&[0x6f, 8]),
            Type::Date => out.bytes(&[0x28]),
            Type::Time(scale) => out.bytes(&[0x29, *scale]),
            Type::DateTime2(scale) => out.bytes(&[0x2a, *scale]),
            Type::DateTimeOffset(scale) => out.bytes(&[0x2b, *scale]),
            Type::UniqueIdentifier => out.bytes(&[0x24, 16]),
            Type::Char(n) => sized(out, 0xaf, *n, true),
            Type::VarChar(n) => sized(out, 0xa7, n.unwrap_or(u16::MAX), true),
            Type::NChar(n) => sized(out, 0xef, *n * 2, true),
            Type::NVarChar(n) => sized(out, 0xe7, n.map_or(u16::MAX, |n| n * 2), true),
            Type::Binary(n) => sized(out, 0xad, *n, false),
            Type::RowVersion => sized(out, 0xad, 8, false),
            Type::VarBinary(n) => sized(out, 0xa5, n.unwrap_or(u16::MAX), false),
            Type::Text => old_long(out, 0x23, true),
            Type::NText => old_long(out, 0x63, true),
            Type::Image => old_long(out, 0x22, false),
            Type::Xml => out.bytes(&[0xf1, 0]),
            Type::SqlVariant => {
                out.u8(0x62);
                out.u32(8_009);
            }
            Type::Clr(name) => {
                out.u8(0xf0);
                out.u16(u16::MAX);
                out.short_text("master");
                out.short_text("sys");
                out.short_text(name);
                out.text(&format!("{name}, Microsoft.SqlServer.Types"));
            }
        }
    }

    /// A value in a row.
    pub fn write(&self, value: &Value, out: &mut Out) {
        if *value == Value::Null {
            return self.write_null(out);
        }
        let content = self.content(value);
        match self {
            Type::SqlVariant => {
                out.u32(content.len() as u32);
                out.bytes(&content);
            }
            Type::VarChar(None) | Type::NVarChar(None) | Type::VarBinary(None) | Type::Xml | Type::Clr(_) => {
                out.u64(content.len() as u64);
                for piece in content.chunks(PIECE) {
                    out.u32(piece.len() as u32);
                    out.bytes(piece);
                }
                out.u32(0);
            }
            Type::Text | Type::NText | Type::Image => {
                // A pointer and a timestamp, which clients only hand back.
                out.u8(16);
                out.bytes(&[0x2a; 16 + 8]);
                out.u32(content.len() as u32);
                out.bytes(&content);
            }
            Type::Char(_)
            | Type::VarChar(_)
            | Type::NChar(_)
            | Type::NVarChar(_)
            | Type::Binary(_)
            | Type::VarBinary(_)
            | Type::RowVersion => {
                out.u16(content.len() as u16);
                out.bytes(&content);
            }
            _ => {
                out.u8(content.len() as u8);
                out.bytes(&content);
            }
        }
    }

    fn write_null(&self, out: &mut Out) {
        match self {
            Type::SqlVariant => out.u32(0),
            Type::VarChar(None) | Type::NVarChar(None) | Type::VarBinary(None) | Type::Xml | Type::Clr(_) => {
                out.u64(u64::MAX);
            }
            Type::Char(_)
            | Type::VarChar(_)
            | Type::NChar(_)
            | Type::NVarChar(_)
            | Type::Binary(_)
            | Type::VarBinary(_)
            | Type::RowVersion => out.u16(u16::MAX),
            _ => out.u8(0),
        }
    }

    /// The bytes of a value that is not null, without its length.
    fn content(&self, value: &Value) -> Vec<u8> {
        let mut out = Out::default();
        match (self, value) {
            (Type::Bit | Type::TinyInt, Value::Int(n)) => out.u8(*n as u8),
            (Type::SmallInt, Value::Int(n)) => out.u16(*n as u16),
            (Type::Int | Type::SmallMoney, Value::Int(n)) => out.u32(*n as u32),
            (Type::BigInt, Value::Int(n)) => out.u64(*n as u64),
            (Type::Money, Value::Int(n)) => {
                out.u32((*n >> 32) as u32);
                out.u32(*n as u32);
            }
            (Type::Real, Value::Float(x)) => out.bytes(&(*x as f32).to_le_bytes()),
            (Type::Float, Value::Float(x)) => out.bytes(&x.to_le_bytes()),
            (Type::Decimal(precision, _), Value::Decimal(n)) => {
                out.u8(u8::from(*n >= 0));
                out.bytes(&n.unsigned_abs().to_le_bytes()[..decimal_bytes(*precision)]);
            }
            (Type::Char(_) | Type::VarChar(_) | Type::Text, Value::Text(text)) => out.bytes(&narrow(text)),
            (Type::NChar(_) | Type::NVarChar(_) | Type::NText | Type::Xml, Value::Text(text)) => {
                text.encode_utf16().for_each(|unit| out.u16(unit));
            }
            (_, Value::Bytes(bytes) | Value::Clr(bytes, _)) => out.bytes(bytes),
            (Type::UniqueIdentifier, Value::Guid(guid)) => out.bytes(&stored_guid(guid)),
            (_, Value::Moment { days, ticks, offset }) => self.moment(*days, *ticks, *offset, &mut out),
            (Type::SqlVariant, Value::Variant(inner)) => variant(&inner.0, &inner.1, &mut out),
            _ => panic!("a {self:?} cannot be {value:?}"),
        }
        out.into_bytes()
    }

    fn moment(&self, days: i64, ticks: i64, offset: i16, out: &mut Out) {
        let time = |ticks: i64, scale: u8, out: &mut Out| {
            let units = ticks / 10_i64.pow(7 - u32::from(scale));
            out.bytes(&units.to_le_bytes()[..time_bytes(scale)]);
        };
        let date = |days: i64, out: &mut Out| out.bytes(&days.to_le_bytes()[..3]);
        match self {
            Type::Date => date(days, out),
            Type::Time(scale) => time(ticks, *scale, out),
            Type::DateTime2(scale) => {
                time(ticks, *scale, out);
                date(days, out);
            }
            Type::DateTimeOffset(scale) => {
                let day = 86_400 * TICKS_PER_SECOND;
                let universal = days * day + ticks - i64::from(offset) * 60 * TICKS_PER_SECOND;
                time(universal.rem_euclid(day), *scale, out);
                date(universal.div_euclid(day), out);
                out.u16(offset as u16);
            }
            Type::SmallDateTime => {
                out.u16((days - DAYS_TO_1900) as u16);
                out.u16((ticks / (60 * TICKS_PER_SECOND)) as u16);
            }
            Type::DateTime => {
                out.u32((days - DAYS_TO_1900) as u32);
                // In 300ths of a second, to the nearest.
                out.u32(((ticks * 300 + TICKS_PER_SECOND / 2) / TICKS_PER_SECOND) as u32);
            }
            _ => panic!("a {self:?} is no moment"),
        }
    }
}

/// The type's number, what describes it further, and the value.
fn variant(base: &Type, value: &Value, out: &mut Out) {
    let mut described = Out::default();
    base.describe(&mut described);
    let described = described.into_bytes();
    let properties: Vec<u8> = match base {
        Type::Decimal(precision, scale) => vec![*precision, *scale],
        Type::Time(scale) | Type::DateTime2(scale) | Type::DateTimeOffset(scale) => vec![*scale],
        Type::Char(n) | Type::VarChar(Some(n)) => [&COLLATION[..], &n.to_le_bytes()].concat(),
        Type::NChar(n) | Type::NVarChar(Some(n)) => [&COLLATION[..], &(n * 2).to_le_bytes()].concat(),
        Type::Binary(n) | Type::VarBinary(Some(n)) => n.to_le_bytes().to_vec(),
        _ => Vec::new(),
    };
    // Inside a variant, numbers are of the types that cannot be null.
    let number = match base {
        Type::Bit => 0x32,
        Type::TinyInt => 0x30,
        Type::SmallInt => 0x34,
        Type::Int => 0x38,
        Type::BigInt => 0x7f,
        Type::Real => 0x3b,
        Type::Float => 0x3e,
        Type::SmallMoney => 0x7a,
        Type::Money => 0x3c,
        Type::SmallDateTime => 0x3a,
        Type::DateTime => 0x3d,
        _ => described[0],
    };
    out.u8(number);
    out.u8(properties.len() as u8);
    out.bytes(&properties);
    out.bytes(&base.content(value));
}

fn sized(out: &mut Out, number: u8, bytes: u16, is_text: bool) {
    out.u8(number);
    out.u16(bytes);
    if is_text {
        out.bytes(&COLLATION);
    }
}

/// The old types for long values also name the table they are of.
fn old_long(out: &mut Out, number: u8, is_text: bool) {
    out.u8(number);
    out.u32(i32::MAX as u32);
    if is_text {
        out.bytes(&COLLATION);
    }
    out.u8(1);
    out.text("t");
}

/// Bytes of a decimal's magnitude.
fn decimal_bytes(precision: u8) -> usize {
    match precision {
        0..=9 => 4,
        10..=19 => 8,
        20..=28 => 12,
        _ => 16,
    }
}

/// Bytes of a time of day.
fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

/// The first three groups of a unique identifier are stored lowest byte first.
pub fn stored_guid(guid: &[u8; 16]) -> [u8; 16] {
    let mut stored = *guid;
    stored[..4].reverse();
    stored[4..6].reverse();
    stored[6..8].reverse();
    stored
}

/// Text in the code page of [`COLLATION`], as far as Latin-1 goes.
fn narrow(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}
