//! What a client says to PostgreSQL, followed closely enough to see a COMMIT go by.
//!
//! Only message types, lengths and the names of statements and portals are looked at. Nothing is held but
//! the beginning of the message at hand, whatever its length.

use std::collections::BTreeSet;

/// Bytes of a message that are looked at: names and the text of a short statement are at its beginning.
const LOOKED_AT_MAX: usize = 1_024;
/// Codes in the place of a protocol version that are followed by another startup message.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// Type and length.
const HEADER: usize = 5;
/// A startup message has a length and a code, and no type.
const STARTUP_HEADER: usize = 8;

/// Follows one connection from its first byte.
#[derive(Default)]
pub struct Frontend {
    started: bool,
    /// The beginning of the message at hand.
    head: Vec<u8>,
    /// Bytes of it that are still to come, once its header is known.
    left: Option<usize>,
    /// Prepared statements and portals that are a COMMIT; the unnamed one has the empty name.
    statements: BTreeSet<Vec<u8>>,
    portals: BTreeSet<Vec<u8>>,
}

impl Frontend {
    /// Takes the next bytes. `Some` with how many of them belong to what comes before the first COMMIT in
    /// them: negative when it began in earlier bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Option<isize> {
        let mut at = 0;
        let mut commit = None;
        while at < bytes.len() {
            let began = at as isize - self.head.len() as isize;
            let Some(left) = self.left else {
                let header = if self.started { HEADER } else { STARTUP_HEADER };
                let part = (header - self.head.len()).min(bytes.len() - at);
                self.head.extend_from_slice(&bytes[at..at + part]);
                at += part;
                if self.head.len() == header {
                    self.left = Some(self.body());
                    self.end_if_whole(began, &mut commit);
                }
                continue;
            };
            let part = left.min(bytes.len() - at);
            let kept = part.min(LOOKED_AT_MAX.saturating_sub(self.head.len()));
            self.head.extend_from_slice(&bytes[at..at + kept]);
            at += part;
            self.left = Some(left - part);
            self.end_if_whole(began, &mut commit);
        }
        commit
    }

    /// The length of the body behind the header at hand.
    fn body(&self) -> usize {
        let (length_at, header) = if self.started { (1, HEADER) } else { (0, STARTUP_HEADER) };
        let length = number(&self.head[length_at..]) as usize;
        (length + length_at).saturating_sub(header)
    }

    fn end_if_whole(&mut self, began: isize, commit: &mut Option<isize>) {
        if self.left != Some(0) {
            return;
        }
        let head = std::mem::take(&mut self.head);
        self.left = None;
        if !self.started {
            self.started = ![SSL_REQUEST, GSS_REQUEST].contains(&number(&head[4..]));
        } else if self.is_commit(head[0], &head[HEADER..]) {
            commit.get_or_insert(began);
        }
    }

    /// Remembers what is prepared and bound; true when this message executes a COMMIT.
    fn is_commit(&mut self, kind: u8, body: &[u8]) -> bool {
        let (first, rest) = text(body);
        match kind {
            b'Q' => return says_commit(first),
            b'P' => note(&mut self.statements, first, says_commit(text(rest).0)),
            b'B' => {
                let is_commit = self.statements.contains(text(rest).0);
                note(&mut self.portals, first, is_commit);
            }
            b'E' => return self.portals.contains(first),
            b'C' => {
                let (names, name) = match first.split_first() {
                    Some((b'S', name)) => (&mut self.statements, name),
                    Some((_, name)) => (&mut self.portals, name),
                    None => return false,
                };
                names.remove(name);
            }
            _ => {}
        }
        false
    }
}

fn note(names: &mut BTreeSet<Vec<u8>>, name: &[u8], is_commit: bool) {
    if is_commit {
        names.insert(name.to_vec());
    } else {
        names.remove(name);
    }
}

fn says_commit(sql: &[u8]) -> bool {
    let sql = sql.trim_ascii();
    sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end().eq_ignore_ascii_case(b"commit")
}

/// Text up to its ending zero, and what is behind it.
fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn startup(code: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
    }

    /// One connection's bytes, and where in them a COMMIT begins.
    fn conversation() -> (Vec<u8>, usize) {
        let mut bytes = [startup(SSL_REQUEST, b""), startup(196_608, b"user\0x\0\0")].concat();
        bytes.extend(message(b'Q', b"SELECT 'COMMIT'\0"));
        bytes.extend(message(b'P', b"s1\0COMMIT\0\0\0"));
        bytes.extend(message(b'P', b"s2\0SELECT 1\0\0\0"));
        bytes.extend(message(b'S', b""));
        bytes.extend(message(b'B', &[b"\0s2\0".as_slice(), &[7; 5_000]].concat()));
        bytes.extend(message(b'E', b"\0\0\0\0\0"));
        bytes.extend(message(b'B', b"\0s1\0\0\0\0\0\0\0"));
        let commit = bytes.len();
        bytes.extend(message(b'E', b"\0\0\0\0\0"));
        bytes.extend(message(b'S', b""));
        (bytes, commit)
    }

    #[test]
    fn finds_the_execution_of_a_prepared_commit() {
        let (bytes, commit) = conversation();
        assert_eq!(Frontend::default().take(&bytes), Some(isize::try_from(commit).unwrap()));
    }

    #[test]
    fn finds_it_however_the_bytes_are_cut() {
        let (bytes, commit) = conversation();
        for size in [1, 2, 3, 7, 100, 1_000] {
            let mut frontend = Frontend::default();
            let mut found = Vec::new();
            for (index, part) in bytes.chunks(size).enumerate() {
                found.extend(frontend.take(part).map(|at| (index * size) as isize + at));
            }
            assert_eq!(found, [isize::try_from(commit).unwrap()], "in parts of {size}");
        }
    }

    #[test]
    fn finds_a_simple_one_and_forgets_what_is_closed() {
        let mut frontend = Frontend { started: true, ..Frontend::default() };
        assert_eq!(frontend.take(&message(b'Q', b" commit ;\0")), Some(0));
        assert_eq!(frontend.take(&message(b'Q', b"ROLLBACK\0")), None);
        let prepare = [message(b'P', b"c\0COMMIT\0\0\0"), message(b'B', b"p\0c\0")].concat();
        assert_eq!(frontend.take(&prepare), None);
        assert_eq!(frontend.take(&message(b'E', b"p\0\0\0\0\0")), Some(0));
        frontend.take(&message(b'C', b"Pp\0"));
        assert_eq!(frontend.take(&message(b'E', b"p\0\0\0\0\0")), None);
    }
}
