//! What clients ask: a batch of text, or `sp_executesql` with its parameters (MS-TDS 2.2.6.6 and 2.2.6.7).

use std::io;

use super::evaluate::Variables;
use super::values::Value;
use super::wire::{In, utf16};

/// The number of `sp_executesql` among the procedures that are called by number.
const EXECUTE_SQL: u16 = 10;
/// The number that says that a number follows instead of a name.
const BY_NUMBER: u16 = 0xffff;

/// A statement and the values of its variables.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    pub sql: String,
    pub variables: Variables,
}

impl Request {
    pub fn batch(message: &[u8]) -> io::Result<Request> {
        let text = after_headers(message)?.rest();
        Ok(Request { sql: utf16(text), variables: Variables::new() })
    }

    pub fn call(message: &[u8]) -> io::Result<Request> {
        let mut call = after_headers(message)?;
        let is_known = match call.u16()? {
            BY_NUMBER => call.u16()? == EXECUTE_SQL,
            length => utf16(call.take(usize::from(length) * 2)?).eq_ignore_ascii_case("sp_executesql"),
        };
        if !is_known {
            return Err(io::Error::other("only sp_executesql is known"));
        }
        let _options = call.u16()?;
        let mut parameters = Vec::new();
        while !call.is_empty() {
            let length = usize::from(call.u8()?) * 2;
            let name = utf16(call.take(length)?);
            let _status = call.u8()?;
            parameters.push((name, value(&mut call)?));
        }
        // The statement, the declaration of its variables, and their values.
        let mut parameters = parameters.into_iter();
        let Some((_, Value::Text(sql))) = parameters.next() else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let declared = match parameters.next() {
            Some((_, Value::Text(declared))) => declared,
            _ => String::new(),
        };
        let names =
            declared.split(',').filter_map(|one| one.trim().strip_prefix('@')?.split_whitespace().next());
        // Without names, values are in the order of the declaration.
        let named = names.map(str::to_owned).zip(parameters).map(|(declared, (name, value))| {
            let name = name.strip_prefix('@').map_or(declared, str::to_owned);
            (name, value)
        });
        Ok(Request { sql, variables: named.collect() })
    }
}

/// Messages begin with headers of transactions and the like.
fn after_headers(message: &[u8]) -> io::Result<In<'_>> {
    let mut message = In::new(message);
    let length = message.u32()? as usize;
    message.take(length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?)?;
    Ok(message)
}

fn value(call: &mut In<'_>) -> io::Result<Value> {
    let number = call.u8()?;
    Ok(match number {
        // Nothing, of whatever type is declared.
        0x1f => Value::Null,
        // An integer or a bit that may be null.
        0x26 | 0x68 => {
            let _max = call.u8()?;
            let length = usize::from(call.u8()?);
            let bytes = call.take(length)?;
            let mut wide =
                [if bytes.last().is_some_and(|last| *last >= 0x80 && length > 1) { 0xff } else { 0 }; 8];
            wide[..length].copy_from_slice(bytes);
            if length == 0 { Value::Null } else { Value::Int(i64::from_le_bytes(wide)) }
        }
        // Text, of limited length or in pieces.
        0xe7 | 0xef => {
            let max = call.u16()?;
            let _collation = call.take(5)?;
            match long_or_short(call, max)? {
                Some(bytes) => Value::Text(utf16(&bytes)),
                None => Value::Null,
            }
        }
        other => return Err(io::Error::other(format!("a parameter of type {other:#x}"))),
    })
}

fn long_or_short(call: &mut In<'_>, max: u16) -> io::Result<Option<Vec<u8>>> {
    if max != u16::MAX {
        return Ok(match call.u16()? {
            u16::MAX => None,
            length => Some(call.take(usize::from(length))?.to_vec()),
        });
    }
    if call.u64()? == u64::MAX {
        return Ok(None);
    }
    let mut whole = Vec::new();
    loop {
        match call.u32()? as usize {
            0 => return Ok(Some(whole)),
            length => whole.extend_from_slice(call.take(length)?),
        }
    }
}
