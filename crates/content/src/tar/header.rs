//! The 512-byte tar header and the pax records: pure parsing, no reading.

pub(super) const BLOCK: usize = 512;

/// A header block whose checksum is right.
pub(super) struct Header<'a>(&'a [u8; BLOCK]);

impl<'a> Header<'a> {
    /// `None` when the checksum is wrong. It is the sum of all bytes with its own field taken as spaces;
    /// old programs summed signed bytes.
    pub(super) fn parse(block: &'a [u8; BLOCK]) -> Option<Self> {
        let stored = octal(&block[148..156])?;
        let (mut unsigned, mut signed) = (0u64, 0i64);
        for (at, &byte) in block.iter().enumerate() {
            let byte = if (148..156).contains(&at) { b' ' } else { byte };
            unsigned += u64::from(byte);
            signed += i64::from(byte as i8);
        }
        (stored == unsigned || i64::try_from(stored) == Ok(signed)).then_some(Header(block))
    }

    pub(super) fn typeflag(&self) -> u8 {
        self.0[156]
    }

    /// Octal digits, or (marked by the highest bit) a big-endian number.
    pub(super) fn size(&self) -> Option<u64> {
        let field = &self.0[124..136];
        match field[0] {
            0x80 if field[1..4] == [0; 3] => {
                Some(field[4..].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
            }
            mark if mark & 0x80 != 0 => None,
            _ if field.iter().all(|&byte| byte == 0 || byte == b' ') => Some(0),
            _ => octal(field),
        }
    }

    /// Name, with the prefix that ustar has for long ones. GNU keeps times in the prefix's place.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = until_nul(&self.0[..100]);
        let prefix = if self.0[257..263] == *b"ustar\0" { until_nul(&self.0[345..500]) } else { &[] };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    /// Whether an old GNU sparse map goes on in blocks after this header.
    pub(super) fn sparse_continues(&self) -> bool {
        self.0[482] != 0
    }

    /// Whether the numbers that every header has are numbers: for headers without a magic word.
    fn plausible(&self) -> bool {
        let number = |field: &[u8]| {
            field[0] & 0x80 != 0 || field.iter().all(|byte| matches!(byte, b'0'..=b'7' | b' ' | 0))
        };
        let typeflag = self.typeflag();
        self.0[0] != 0
            && [100..108, 108..116, 116..124, 124..136, 136..148]
                .into_iter()
                .all(|field| number(&self.0[field]))
            && (typeflag == 0 || typeflag.is_ascii_alphanumeric())
    }
}

/// Whether these bytes begin with a tar header.
pub(super) fn is_header(head: &[u8]) -> bool {
    head.first_chunk().and_then(Header::parse).is_some_and(|header| header.plausible())
}

pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or(field)
}

/// Octal digits with spaces before and a space or zero after them.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.trim_ascii_start();
    let len = digits.iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let (digits, rest) = digits.split_at(len);
    if digits.is_empty() || !rest.iter().all(|byte| matches!(byte, b' ' | 0)) {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| sum.checked_mul(8)?.checked_add(u64::from(byte - b'0')))
}

/// What pax records say of the entry that follows them.
#[derive(Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

impl Pax {
    /// Records are `<length> <key>=<value>\n`, the length counting all of it. `None` when they are not.
    pub(super) fn parse(mut records: &[u8]) -> Option<Pax> {
        let mut pax = Pax::default();
        let mut sparse_name = None;
        while !until_nul(records).is_empty() {
            let space = records.iter().position(|&byte| byte == b' ')?;
            let len: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
            let record = records.get(space + 1..len)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|&byte| byte == b'=')?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => pax.path = Some(value.to_vec()),
                b"size" => pax.size = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
                b"GNU.sparse.name" => sparse_name = Some(value.to_vec()),
                _ => {}
            }
            records = &records[len..];
        }
        pax.path = sparse_name.or(pax.path);
        Some(pax)
    }
}
