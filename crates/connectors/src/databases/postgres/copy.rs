//! The binary format of `COPY … TO STDOUT`.

/// How every copy begins.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// The signature, flags, and the length of what else the header has.
const HEADER_LEN: usize = SIGNATURE.len() + 8;

/// The bytes are not what the format says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadCopy;

/// What some bytes begin with.
#[derive(Debug)]
pub(super) enum Begins<'a> {
    Header {
        len: usize,
    },
    Row {
        fields: Fields<'a>,
        len: usize,
    },
    /// The copy ends here.
    End,
    /// More bytes are needed to tell.
    Short,
}

/// The values of a row, all of them there.
#[derive(Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (value, rest) = field(self.0)?;
        self.0 = rest;
        Some(value)
    }
}

/// The first value, and what comes after it; `None` when it is not all there.
fn field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    // Null has no length, and is written as a negative one.
    let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else { return Some((None, rest)) };
    let (value, rest) = rest.split_at_checked(len)?;
    Some((Some(value), rest))
}

/// The header, which comes once.
pub(super) fn header(bytes: &[u8]) -> Result<Begins<'_>, BadCopy> {
    let Some((head, rest)) = bytes.split_at_checked(HEADER_LEN) else { return Ok(Begins::Short) };
    let (_, &extension) = head.split_last_chunk::<4>().ok_or(BadCopy)?;
    let extension = usize::try_from(i32::from_be_bytes(extension)).map_err(|_| BadCopy)?;
    match head.starts_with(SIGNATURE) {
        true if rest.len() < extension => Ok(Begins::Short),
        true => Ok(Begins::Header { len: HEADER_LEN + extension }),
        false => Err(BadCopy),
    }
}

/// A row of so many columns, or the end.
pub(super) fn row(bytes: &[u8], columns: usize) -> Result<Begins<'_>, BadCopy> {
    let Some((count, fields)) = bytes.split_first_chunk::<2>() else { return Ok(Begins::Short) };
    let count = i16::from_be_bytes(*count);
    if count == -1 {
        return Ok(Begins::End);
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(BadCopy);
    }
    let mut rest = fields;
    for _ in 0..columns {
        match field(rest) {
            Some((_, after)) => rest = after,
            None => return Ok(Begins::Short),
        }
    }
    let len = fields.len() - rest.len();
    Ok(Begins::Row { fields: Fields(&fields[..len]), len: len + 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 2, 9, 9]);
        for row in rows {
            bytes.extend((row.len() as i16).to_be_bytes());
            for value in *row {
                bytes.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
                bytes.extend(value.unwrap_or_default());
            }
        }
        bytes.extend((-1_i16).to_be_bytes());
        bytes
    }

    #[test]
    fn rows_are_told_apart_and_every_cut_is_noticed() {
        let bytes = copy(&[&[Some(b"a"), None], &[Some(b""), Some(b"\0bc")]]);
        let Begins::Header { len } = header(&bytes).unwrap() else { panic!() };
        assert_eq!(len, HEADER_LEN + 2);
        for cut in 0..len {
            assert!(matches!(header(&bytes[..cut]), Ok(Begins::Short)));
        }
        let mut rest = &bytes[len..];
        let mut rows = Vec::new();
        while let Begins::Row { fields, len } = row(rest, 2).unwrap() {
            rows.push(fields.map(|value| value.map(<[u8]>::to_vec)).collect::<Vec<_>>());
            for cut in 0..len {
                assert!(matches!(row(&rest[..cut], 2), Ok(Begins::Short)));
            }
            rest = &rest[len..];
        }
        assert!(matches!(row(rest, 2), Ok(Begins::End)));
        let value = |bytes: &[u8]| Some(bytes.to_vec());
        assert_eq!(rows, [[value(b"a"), None], [value(b""), value(b"\0bc")]]);
    }

    #[test]
    fn what_is_no_copy_is_refused() {
        assert!(matches!(header(&[0; HEADER_LEN]), Err(BadCopy)));
        assert!(matches!(row(&[0, 3], 2), Err(BadCopy)));
        assert!(matches!(row(&[0x80, 0], 2), Err(BadCopy)));
    }
}
