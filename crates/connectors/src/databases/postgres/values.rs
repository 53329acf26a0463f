//! Values on their way from their types to text: what is selected for a column, and what its bytes mean.

use std::borrow::Cow;
use std::error::Error;
use std::io::Write as _;

use domesday_model::{Reason, RowBatch};
use tokio_postgres::types::{FromSql, Type};

/// Characters of a long text that the server gives: one more than the bytes that are kept, so that what was cut
/// can be told from what was not.
const CHARS_MAX: usize = RowBatch::VALUE_MAX + 1;
/// Stored bytes of a value of a composed type above which its text is cut by the server: 32 KiB. They may be
/// compressed, and the text is longer.
const STORED_MAX: usize = 32 << 10;
/// Bytes of one character in UTF-8, at most.
pub(super) const CHAR_LEN_MAX: usize = 4;
/// What a type's modifier has beyond the length it declares.
const MODIFIER_HEADER: i32 = 4;

/// A text of the catalogue. In a database without an encoding it need not be UTF-8.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Text {
    pub text: String,
    /// Whether that is exactly what it is.
    pub is_whole: bool,
}

impl Text {
    /// Why what has this name cannot be read: it cannot be asked for by it.
    pub fn refusal(&self) -> Option<Reason> {
        (!self.is_whole).then_some(Reason::ReadError)
    }
}

impl<'a> FromSql<'a> for Text {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Text, Box<dyn Error + Sync + Send>> {
        let text = String::from_utf8_lossy(raw);
        Ok(Text { is_whole: matches!(text, Cow::Borrowed(_)), text: text.into_owned() })
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TEXT
    }
}

/// What a column's type is made of.
pub(super) struct ColumnType<'a> {
    pub oid: u32,
    pub modifier: i32,
    /// Negative where it varies.
    pub len: i32,
    pub name: &'a str,
    /// The function that writes shapes on the earth as text, quoted, where its schema has one.
    pub as_text: Option<&'a str>,
}

/// How the bytes of a value become text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// They are the text, or bytes that are scanned as they are.
    Bytes,
    Bool,
    /// Signed, of this value's own length.
    Integer,
    Oid,
    Uuid,
}

/// What is selected for a column, given by its quoted name, and what arrives.
pub(super) fn select(column: &str, of: &ColumnType<'_>) -> (String, Form) {
    let cut = format!("left({column}::text, {CHARS_MAX})");
    let form = match Type::from_oid(of.oid) {
        Some(Type::BOOL) => Form::Bool,
        Some(Type::INT2 | Type::INT4 | Type::INT8) => Form::Integer,
        Some(Type::OID) => Form::Oid,
        Some(Type::UUID) => Form::Uuid,
        Some(Type::NAME) => Form::Bytes,
        Some(Type::TEXT | Type::VARCHAR) => {
            let declared = usize::try_from(of.modifier - MODIFIER_HEADER).unwrap_or(usize::MAX);
            if declared > RowBatch::VALUE_MAX / CHAR_LEN_MAX {
                let max = RowBatch::VALUE_MAX;
                return (
                    format!("CASE WHEN octet_length({column}) > {max} THEN {cut} ELSE {column} END"),
                    Form::Bytes,
                );
            }
            Form::Bytes
        }
        Some(Type::BYTEA) => {
            let max = RowBatch::VALUE_MAX;
            let cut = format!("substring({column} FROM 1 FOR {})", max + 1);
            return (
                format!("CASE WHEN octet_length({column}) > {max} THEN {cut} ELSE {column} END"),
                Form::Bytes,
            );
        }
        // Shapes on the earth, whose own text is only bytes in hexadecimal.
        None if of.len < 0
            && matches!(of.name, "geometry" | "geography")
            && let Some(as_text) = of.as_text =>
        {
            return (format!("left({as_text}({column})::text, {CHARS_MAX})"), Form::Bytes);
        }
        _ if of.len >= 0 => return (format!("{column}::text"), Form::Bytes),
        Some(Type::NUMERIC) => return (format!("{column}::text"), Form::Bytes),
        _ => {
            let whole = format!("{column}::text");
            let long = format!("pg_column_size({column}) > {STORED_MAX}");
            return (format!("CASE WHEN {long} THEN {cut} ELSE {whole} END"), Form::Bytes);
        }
    };
    (column.to_owned(), form)
}

impl Form {
    /// Appends a value as text, or says that it is not what the server promised.
    pub fn write(self, value: &[u8], out: &mut Vec<u8>) -> bool {
        match self {
            Form::Bytes => out.extend_from_slice(value),
            Form::Bool => match value {
                [0] => out.extend_from_slice(b"false"),
                [1] => out.extend_from_slice(b"true"),
                _ => return false,
            },
            Form::Integer => {
                let number = match *value {
                    [a, b] => i64::from(i16::from_be_bytes([a, b])),
                    [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
                    [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                    _ => return false,
                };
                write_number(number.unsigned_abs(), number < 0, out);
            }
            Form::Oid => match *value {
                [a, b, c, d] => write_number(u64::from(u32::from_be_bytes([a, b, c, d])), false, out),
                _ => return false,
            },
            Form::Uuid => {
                let Ok(value) = <[u8; 16]>::try_from(value) else { return false };
                let number = u128::from_be_bytes(value);
                let part = |from: u32, digits: u32| (number >> (from * 4)) & ((1 << (digits * 4)) - 1);
                let written = write!(
                    out,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    part(24, 8),
                    part(20, 4),
                    part(16, 4),
                    part(12, 4),
                    part(0, 12)
                );
                return written.is_ok();
            }
        }
        true
    }
}

/// Decimal digits, without what formatting costs: numbers are the most frequent values there are.
fn write_number(mut number: u64, is_negative: bool, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if is_negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_become_the_servers_text() {
        let uuid = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
        for (form, value, text) in [
            (Form::Bool, &[1][..], "true"),
            (Form::Bool, &[0], "false"),
            (Form::Integer, &i16::MIN.to_be_bytes(), "-32768"),
            (Form::Integer, &0_i32.to_be_bytes(), "0"),
            (Form::Integer, &i64::MIN.to_be_bytes(), "-9223372036854775808"),
            (Form::Integer, &i64::MAX.to_be_bytes(), "9223372036854775807"),
            (Form::Oid, &u32::MAX.to_be_bytes(), "4294967295"),
            (Form::Uuid, &uuid, "00112233-4455-6677-8899-aabbccddeeff"),
            (Form::Bytes, b"a\0b", "a\0b"),
        ] {
            let mut out = Vec::new();
            assert!(form.write(value, &mut out));
            assert_eq!(out, text.as_bytes());
        }
        for form in [Form::Bool, Form::Integer, Form::Oid, Form::Uuid] {
            assert!(!form.write(&[7, 7, 7], &mut Vec::new()));
        }
    }
}
