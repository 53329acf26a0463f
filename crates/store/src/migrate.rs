//! Migrations: an ordered list of SQL texts that only grows. Each is recorded with its checksum, so that
//! a book made by a changed build is noticed, and a newer book is refused instead of half understood.

use crate::error::StoreError;

/// One step of the schema's history. Its version is its place in the list, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    pub fn checksum(&self) -> String {
        blake3::hash(self.sql.as_bytes()).to_hex()[..32].to_owned()
    }
}

/// A migration that the book says it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Applied {
    pub version: i64,
    pub checksum: String,
}

/// The migrations still to apply, with their versions; or why the book cannot be used.
pub(crate) fn pending<'a>(
    known: &'a [Migration],
    applied: &[Applied],
) -> Result<Vec<(i64, &'a Migration)>, StoreError> {
    let newest = applied.iter().map(|a| a.version).max().unwrap_or(0);
    if newest > known.len() as i64 {
        return Err(StoreError::NewerSchema { found: newest, known: known.len() as i64 });
    }
    for a in applied {
        let migration = usize::try_from(a.version - 1).ok().and_then(|index| known.get(index));
        if migration.is_none_or(|migration| migration.checksum() != a.checksum) {
            let name = migration.map_or("unknown", |migration| migration.name).to_owned();
            return Err(StoreError::ChangedMigration { version: a.version, name });
        }
    }
    Ok((1..).zip(known).filter(|(version, _)| !applied.iter().any(|a| a.version == *version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Migration] =
        &[Migration { name: "one", sql: "SELECT 1" }, Migration { name: "two", sql: "SELECT 2" }];

    fn applied(version: i64) -> Applied {
        Applied { version, checksum: KNOWN[version as usize - 1].checksum() }
    }

    #[test]
    fn what_is_missing_is_applied_in_order() {
        let versions =
            |applied: &[Applied]| pending(KNOWN, applied).unwrap().iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!(versions(&[]), [1, 2]);
        assert_eq!(versions(&[applied(1)]), [2]);
        assert_eq!(versions(&[applied(1), applied(2)]), Vec::<i64>::new());
    }

    #[test]
    fn a_newer_or_changed_book_is_refused() {
        let newer = Applied { version: 3, checksum: String::new() };
        assert!(matches!(pending(KNOWN, &[newer]), Err(StoreError::NewerSchema { found: 3, known: 2 })));
        let changed = Applied { version: 1, checksum: "0".into() };
        assert!(matches!(pending(KNOWN, &[changed]), Err(StoreError::ChangedMigration { version: 1, .. })));
    }
}
