//! X.509 certificates: who for, and until when. They are public; a key beside one is not.

use super::der::{CONTEXT_0, Der, OID, SEQUENCE, SET};

/// Bytes of the longest name that is told.
const NAME_MAX: usize = 64;

/// UTCTime and GeneralizedTime.
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A certificate in words, as far as its head is there: `None` when it does not begin as one.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let mut body = Der::outermost(bytes).expect(SEQUENCE)?.expect(SEQUENCE)?;
    let mut version = 1;
    if body.bytes.first() == Some(&CONTEXT_0) {
        version = body.expect(CONTEXT_0)?.small()?.checked_add(1).filter(|version| *version <= 3)?;
    }
    body.integer()?;
    body.expect(SEQUENCE)?.expect(OID)?;
    let issuer = body.expect(SEQUENCE)?;
    let mut words = format!("X.509 certificate, version {version}");
    let Some(mut validity) = body.expect(SEQUENCE) else { return Some(words) };
    let _ = validity.next();
    let until = date(&mut validity);
    if let Some(subject) = body.expect(SEQUENCE) {
        if let Some(host) = common_name(subject) {
            words += &format!(", of {host}");
        }
        if subject.beyond == 0 && subject.bytes == issuer.bytes {
            words += ", signed by itself";
        }
    }
    if let Some([year, month, day]) = until {
        words += &format!(", valid until {year:04}-{month:02}-{day:02}");
    }
    Some(words)
}

/// The common name, if it is that of a machine: people's names are not told.
fn common_name(mut name: Der<'_>) -> Option<String> {
    while let Some(mut set) = name.expect(SET) {
        let mut pair = set.expect(SEQUENCE)?;
        if pair.expect(OID)?.bytes != [0x55, 4, 3] {
            continue;
        }
        let text = pair.next()?.body;
        let host = |byte: &u8| byte.is_ascii_alphanumeric() || b"*.-_".contains(byte);
        let is_host = text.bytes.contains(&b'.') && text.bytes.iter().all(host);
        let short = text.beyond == 0 && text.bytes.len() <= NAME_MAX;
        return (is_host && short).then(|| String::from_utf8_lossy(text.bytes).into_owned());
    }
    None
}

/// Year, month and day of a time.
fn date(validity: &mut Der<'_>) -> Option<[u64; 3]> {
    let item = validity.next()?;
    let number = |digits: &[u8]| str::from_utf8(digits).ok()?.parse::<u64>().ok();
    let (year, rest) = match item.tag {
        UTC_TIME => {
            let (digits, rest) = item.body.bytes.split_at_checked(2)?;
            let year = number(digits)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (digits, rest) = item.body.bytes.split_at_checked(4)?;
            (number(digits)?, rest)
        }
        _ => return None,
    };
    let (month, day) = (number(rest.get(..2)?)?, number(rest.get(2..4)?)?);
    super::super::dates::exists(year, month, day).then_some([year, month, day])
}
