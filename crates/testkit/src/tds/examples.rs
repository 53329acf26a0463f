//! A table with a column of every type, and what its values are as text: the same for every client that reads it.

use super::model::Table;
use super::values::{Type, Value};

/// A column: its name, its type, a value, and the value as text.
pub type Example = (&'static str, Type, Value, &'static str);

const GUID: [u8; 16] =
    [0x6f, 0x96, 0x19, 0xff, 0x8b, 0x86, 0xd0, 0x11, 0xb4, 0x2d, 0x00, 0xc0, 0x4f, 0xc9, 0x64, 0xff];

/// Every type with a value that is hard to get right.
pub fn every_type() -> Vec<Example> {
    let moment = |fraction| Value::moment((2024, 2, 29), (23, 59, 58), fraction, 0);
    let text = Value::text;
    vec![
        ("id", Type::Int, Value::Int(-2_147_483_648), "-2147483648"),
        ("bit", Type::Bit, Value::Int(1), "1"),
        ("tiny", Type::TinyInt, Value::Int(255), "255"),
        ("small", Type::SmallInt, Value::Int(-32_768), "-32768"),
        ("big", Type::BigInt, Value::Int(i64::MIN), "-9223372036854775808"),
        ("real", Type::Real, Value::Float(0.1), "0.1"),
        ("float", Type::Float, Value::Float(-1.5e300), "-1.5e300"),
        ("decimal", Type::Decimal(38, 10), Value::Decimal(-50_000_000), "-0.0050000000"),
        ("card", Type::Decimal(16, 0), Value::Decimal(4_111_111_111_111_111), "4111111111111111"),
        ("money", Type::Money, Value::Int(i64::MAX), "922337203685477.5807"),
        ("small_money", Type::SmallMoney, Value::Int(-12_345), "-1.2345"),
        ("char", Type::Char(5), text("ä    "), "ä    "),
        ("varchar", Type::VarChar(Some(50)), text("café ©"), "café ©"),
        ("varchar_wide", Type::VarChar(Some(8_000)), text("ann@example.org"), "ann@example.org"),
        ("varchar_max", Type::VarChar(None), text("ÿ and more"), "ÿ and more"),
        ("nchar", Type::NChar(4), text("日本  "), "日本  "),
        ("nvarchar", Type::NVarChar(Some(20)), text("🔑 'key' ]"), "🔑 'key' ]"),
        ("nvarchar_max", Type::NVarChar(None), text(""), ""),
        ("text", Type::Text, text("old text"), "old text"),
        ("ntext", Type::NText, text("altes 日"), "altes 日"),
        ("binary", Type::Binary(3), Value::Bytes(b"\0a\x7f".to_vec()), "\0a\x7f"),
        ("varbinary", Type::VarBinary(Some(9)), Value::Bytes(b"bytes".to_vec()), "bytes"),
        ("varbinary_max", Type::VarBinary(None), Value::Bytes(b"PK more".to_vec()), "PK more"),
        ("image", Type::Image, Value::Bytes(b"GIF89a".to_vec()), "GIF89a"),
        ("version", Type::RowVersion, Value::Bytes(vec![0, 0, 0, 0, 0, 0, 7, 0xd1]), "0x00000000000007D1"),
        ("date", Type::Date, Value::moment((1, 1, 1), (0, 0, 0), 0, 0), "0001-01-01"),
        ("time", Type::Time(7), moment(1_234_567), "23:59:58.1234567"),
        ("time0", Type::Time(0), moment(0), "23:59:58"),
        (
            "smalldatetime",
            Type::SmallDateTime,
            Value::moment((2079, 6, 6), (23, 59, 0), 0, 0),
            "2079-06-06 23:59:00",
        ),
        ("datetime", Type::DateTime, moment(9_970_000), "2024-02-29 23:59:58.997"),
        (
            "datetime_early",
            Type::DateTime,
            Value::moment((1753, 1, 1), (0, 0, 0), 30_000, 0),
            "1753-01-01 00:00:00.003",
        ),
        (
            "datetime2",
            Type::DateTime2(7),
            Value::moment((9999, 12, 31), (23, 59, 59), 9_999_999, 0),
            "9999-12-31 23:59:59.9999999",
        ),
        ("datetime2_3", Type::DateTime2(3), moment(1_230_000), "2024-02-29 23:59:58.123"),
        (
            "offset",
            Type::DateTimeOffset(2),
            Value::moment((2024, 3, 1), (0, 30, 0), 1_200_000, 345),
            "2024-03-01 00:30:00.12 +05:45",
        ),
        ("guid", Type::UniqueIdentifier, Value::Guid(GUID), "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        ("xml", Type::Xml, text("<a b=\"c\">ä</a>"), "<a b=\"c\">ä</a>"),
        (
            "variant",
            Type::SqlVariant,
            Value::Variant(Box::new((Type::NVarChar(Some(20)), text("bob@example.org")))),
            "bob@example.org",
        ),
        (
            "variant_number",
            Type::SqlVariant,
            Value::Variant(Box::new((Type::Decimal(10, 2), Value::Decimal(-1_250)))),
            "-12.50",
        ),
        ("place", Type::Clr("geometry"), Value::Clr(vec![1, 2, 3], "POINT (1 2)".to_owned()), "POINT (1 2)"),
        ("node", Type::Clr("hierarchyid"), Value::Clr(vec![0x58], "/1/".to_owned()), "/1/"),
        ("own", Type::Clr("[dbo thing]"), Value::Clr(b"raw".to_vec(), "never".to_owned()), "raw"),
    ]
}

/// A table of [`every_type`]: the values, nulls, and the values again, so that rows of both forms are sent.
pub fn table_of_every_type(name: &str) -> Table {
    let examples = every_type();
    let columns: Vec<_> = examples.iter().map(|(name, of, ..)| (*name, of.clone())).collect();
    let values: Vec<Value> = examples.into_iter().map(|(_, _, value, _)| value).collect();
    let nulls = vec![Value::Null; values.len()];
    Table::new(name, &columns, &[], vec![values.clone(), nulls, values])
}
