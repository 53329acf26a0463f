//! What the declared type of a column allows its values to be.

/// Kinds of types, by what may be in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing is declared, or any text.
    Text,
    /// Whole numbers: an identifier may be kept in one.
    Integer,
    /// Dates and times: a date of birth, and nothing else.
    Date,
    /// Truth values, fractions, amounts, places: nothing that a label names.
    Measure,
    /// Identifiers that a machine made.
    Uuid,
    /// Documents, lists and bytes, in which values occur.
    Nested,
}

/// How the names of types begin, in small letters. The first that fits counts.
const KINDS: &[(&str, Kind)] = &[
    ("bool", Kind::Measure),
    ("bit", Kind::Measure),
    ("tinyint(1)", Kind::Measure),
    ("year", Kind::Measure),
    ("float", Kind::Measure),
    ("double", Kind::Measure),
    ("real", Kind::Measure),
    ("money", Kind::Measure),
    ("smallmoney", Kind::Measure),
    ("interval", Kind::Measure),
    ("point", Kind::Measure),
    ("geo", Kind::Measure),
    ("polygon", Kind::Measure),
    ("line", Kind::Measure),
    ("lseg", Kind::Measure),
    ("box", Kind::Measure),
    ("path", Kind::Measure),
    ("circle", Kind::Measure),
    ("date", Kind::Date),
    ("time", Kind::Date),
    ("smalldatetime", Kind::Date),
    ("uuid", Kind::Uuid),
    ("uniqueidentifier", Kind::Uuid),
    ("rowversion", Kind::Uuid),
    ("json", Kind::Nested),
    ("xml", Kind::Nested),
    ("hstore", Kind::Nested),
    ("bytea", Kind::Nested),
    ("blob", Kind::Nested),
    ("tinyblob", Kind::Nested),
    ("mediumblob", Kind::Nested),
    ("longblob", Kind::Nested),
    ("binary", Kind::Nested),
    ("varbinary", Kind::Nested),
    ("image", Kind::Nested),
    ("array", Kind::Nested),
    ("tinyint", Kind::Integer),
    ("smallint", Kind::Integer),
    ("mediumint", Kind::Integer),
    ("bigint", Kind::Integer),
    ("int", Kind::Integer),
    ("serial", Kind::Integer),
    ("bigserial", Kind::Integer),
    ("smallserial", Kind::Integer),
];

impl Kind {
    pub fn of(type_name: &str) -> Kind {
        let name = type_name.trim().to_ascii_lowercase();
        if name.ends_with("[]") {
            return Kind::Nested;
        }
        if name.starts_with("numeric") || name.starts_with("decimal") || name.starts_with("number") {
            return of_numeric(&name);
        }
        // What is longer than the beginning is another word, unless it says a size or a variant.
        let fits = |start: &str| name.starts_with(start) && (start != "int" || !name.starts_with("interval"));
        KINDS.iter().find(|(start, _)| fits(start)).map_or(Kind::Text, |(_, kind)| *kind)
    }
}

/// Without digits behind the point, a number may be an identifier.
fn of_numeric(name: &str) -> Kind {
    let scale = name.split_once(',').map(|(_, scale)| scale.trim_start());
    match scale.and_then(|scale| scale.split(|c: char| !c.is_ascii_digit()).next()) {
        Some(digits) if digits.parse::<u32>().is_ok_and(|digits| digits > 0) => Kind::Measure,
        _ => Kind::Integer,
    }
}
