//! The key of a row as text: SQLite compares by what a value is before it compares what it says, so the text has
//! both.

use std::fmt::Write;

use rusqlite::types::Value;

use super::error::SqliteError;

/// The text of a key's values.
pub(super) fn encode(key: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Null => "n".to_owned(),
        Value::Integer(number) => format!("i{number}"),
        // By its bits: the text of a number with a fraction is not always read as the same number.
        Value::Real(number) => format!("r{:016x}", number.to_bits()),
        Value::Text(text) => format!("t{text}"),
        Value::Blob(bytes) => bytes.iter().fold("b".to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    key.iter().map(text).collect()
}

/// The reverse of [`encode`].
pub(super) fn decode(key: &[String]) -> Result<Vec<Value>, SqliteError> {
    let value = |text: &String| {
        let rest = text.get(1..)?;
        Some(match text.as_bytes().first()? {
            b'n' => Value::Null,
            b'i' => Value::Integer(rest.parse().ok()?),
            b'r' => Value::Real(f64::from_bits(u64::from_str_radix(rest, 16).ok()?)),
            b't' => Value::Text(rest.to_owned()),
            b'b' => Value::Blob(
                rest.as_bytes()
                    .chunks(2)
                    .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                    .collect::<Option<_>>()?,
            ),
            _ => return None,
        })
    };
    let parsed: Option<_> = key.iter().map(value).collect();
    parsed.ok_or_else(|| SqliteError::Refused("the key of a row cannot be read; list the table again".into()))
}

/// A key whose text is in no encoding that could be asked for.
pub(super) fn no_text() -> SqliteError {
    SqliteError::Refused("the key of a row is no text".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = vec![
            Value::Integer(i64::MIN),
            Value::Real(0.1),
            Value::Real(-0.0),
            Value::Text("é, 'x'".into()),
            Value::Blob(vec![0, 255]),
            Value::Null,
        ];
        assert_eq!(decode(&encode(&key)).unwrap(), key);
        for wrong in ["", "x1", "i", "rzz", "b0g", "bé", "é"] {
            assert!(decode(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
